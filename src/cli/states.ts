/** The states of a job, as commands name them. */
import type { JobState } from '../job/states';

export const JOB_STATES: readonly JobState[] = [
  ...(['pending', 'scheduled', 'available', 'active'] as const),
  ...(['retryable', 'completed', 'cancelled', 'discarded'] as const),
];
