/** What rows cost. */

/** List price of a million rows written, US dollars. */
export const DOLLARS_PER_MILLION_ROWS = 1;

export const dollarsOf = (rows: number): number => (rows * DOLLARS_PER_MILLION_ROWS) / 1_000_000;
