/**
 * Why a fire enqueued nothing. `overlap_skip`: the previous job has not ended. `waiting_full`: too many fires wait for
 * that already. `missed`: the time was missed, and the policy drops it. `unique`: the unique policy found an existing
 * job. `refused`: the queue did not accept the job.
 */
export type SkipReason = 'overlap_skip' | 'waiting_full' | 'missed' | 'unique' | 'refused';
