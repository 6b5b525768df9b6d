/** The ids of jobs: always the same, so that a test may compare what was made of them. */
export const idOf = (at: number): string => `01900000-0000-7000-8000-${String(at + 1).padStart(12, '0')}`;
