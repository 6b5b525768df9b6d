/** Which jobs a queue accepts: none while it drains, is being deleted or is full, and only those of its types. */
import type { Enqueuer } from '../../job/attempt/outcome';
import { ApiError, conflict, invalidRequest, refusal } from '../../job/errors';
import type { Configured, Named, StoredQueue } from '../store/parts';
import { refuseWhenFull } from '../store/storage';

/** A queue that drains, is being deleted, or has full storage accepts no jobs. @throws {ApiError} 409; 503 full */
export function refuseNewcomers(q: StoredQueue): void {
  if (!q.config.draining && !q.config.removal) {
    refuseWhenFull(q);
    return;
  }
  const state = q.config.removal ? 'deleting' : 'draining';
  const { data } = conflict(`Queue ${q.name} is ${state} and accepts no jobs.`, {
    queue: q.name,
    current_state: state,
    expected_state: 'active or paused',
  });
  throw new ApiError({ ...data, hint: 'Resume the queue, or enqueue into another one.' });
}

/** May the handler of a target enqueue there? @throws {ApiError} 403 */
export function refuseElsewhere({ name, mayEnqueue }: Enqueuer, queue: string): void {
  if (mayEnqueue === undefined || mayEnqueue.includes('*') || mayEnqueue.includes(queue)) return;
  const message = `${name} may not enqueue in queue ${queue}: its mapping in HANDLERS does not list it in may_enqueue.`;
  throw refusal(403, 'forbidden', message, { details: { queue } });
}

/** @throws {ApiError} 409 while the queue is being deleted */
export function refuseRemoved(q: Named & Configured): void {
  if (!q.config.removal) return;
  throw conflict(`Queue ${q.name} is being deleted.`, { queue: q.name, current_state: 'deleting' });
}

/** Is the type among those the queue accepts? @throws {ApiError} 400 */
export function checkType(q: Named & Configured, type: string): void {
  const allowed = q.config.settings.allowed_job_types;
  if (allowed === undefined || allowed.some((pattern) => fits(type, pattern))) return;
  throw invalidRequest('type', `Queue ${q.name} accepts no jobs of type ${type}.`, { queue: q.name, allowed });
}

/** A pattern is a type, or the beginning of one followed by `*`. */
const fits = (type: string, pattern: string): boolean =>
  pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern;
