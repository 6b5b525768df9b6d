/** The first message to a follower of a job. */
import type { FollowedJob } from '../../rpc/follow';
import type { StoredQueue } from '../store/parts';
import { mustFind, viewOf } from './find';

/** The job as it is now. @throws {ApiError} 404 */
export function followedJob(q: StoredQueue, id: string, now: number): FollowedJob {
  const { type, state, attempt, history } = viewOf(q, mustFind(q, id), now).record;
  const ended_at = history.completed_at ?? history.cancelled_at ?? history.discarded_at;
  return { id, type, state, attempt, ...(ended_at !== undefined && { ended_at }) };
}
