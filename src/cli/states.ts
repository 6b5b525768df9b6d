import type { JobState } from '../job/states';

export const JOB_STATES: readonly JobState[] = [
  ...(['pending', 'scheduled', 'available', 'active'] as const),
  ...(['retryable', 'completed', 'cancelled', 'discarded'] as const),
];
