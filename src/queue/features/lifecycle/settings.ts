/** The settings of one queue: pause, concurrency, timeouts, retention, and its layer of the retry policy. */

import { writeMeta } from '../../../durable/sql';
import { conflict, mayNotShorten } from '../../../job/errors';
import { checkRetryLayer } from '../../../job/retry/validate';
import {
  below,
  changed,
  keepsLess,
  modeOf,
  over,
  type QueueConfig,
  type QueueDefaults,
  type QueueMode,
  type SettingsChange,
} from '../../../job/settings';
import type { QueueStatus } from '../../../rpc/receipts';
import { countDead, setEvicting } from '../../store/jobs';
import { overridesChanged } from '../../store/limits/changes';
import { forgetQueueStarts } from '../../store/limits/queue-limit';
import type { QueueState } from '../../store/state';

/** Changes the mode, durably. Idempotent. @throws {ApiError} 409 while the queue is being deleted */
export function setMode(q: QueueState, mode: QueueMode, now: number): QueueStatus {
  if (q.removal) throw conflict(`Queue ${q.name} is being deleted.`, { queue: q.name, current_state: 'deleting' });
  const before = modeOf(q);
  if (before !== mode) {
    q.paused = mode === 'paused';
    q.draining = mode === 'draining';
    q.pausedChangedAt = now;
    writeMeta(q.sql, 'paused', { paused: q.paused, at: now, ...(q.draining && { draining: true }) });
    if (mode === 'paused') q.events.add('queue.paused', q.name, now, {});
    else if (before === 'paused') q.events.add('queue.resumed', q.name, now, {});
    if (before === 'paused') q.arrived(now);
  }
  const status = { name: q.name, paused: q.paused, draining: q.draining, changed_at: q.pausedChangedAt };
  return before === mode ? { ...status, unchanged: true } : status;
}

/** Pauses or resumes. @throws {ApiError} as {@link setMode} */
export function setPaused(q: QueueState, paused: boolean, now: number): QueueStatus {
  return setMode(q, paused ? 'paused' : 'active', now);
}

/**
 * Merges a change that the HTTP layer has validated.
 * @param mayPurge false: ended jobs must be kept for as long as now; a queue that never had a job keeps none
 * @throws {ApiError} 422 for a retry policy that is none, 403 for a retention that is lowered
 */
export function configure(q: QueueState, change: SettingsChange, mayPurge = true): QueueConfig {
  if (change.default_retry) checkRetryLayer(change.default_retry, 'default_retry');
  const own = changed(q.own, change);
  const less =
    mayPurge || q.nextSequence === 1
      ? undefined
      : keepsLess(q.settings, over(own, below(q.defaults)), q.storage.ofDeployment);
  if (less !== undefined) throw mayNotShorten(less);
  writeMeta(q.sql, 'config', own);
  apply(q, own, q.defaults);
  return own;
}

/** Takes over what the deployment says for all queues, unless it is known already. One row written. */
export function takeDefaults(q: QueueState, defaults: QueueDefaults): void {
  if (q.defaults && q.defaults.version >= defaults.version) return;
  const before = q.defaults;
  writeMeta(q.sql, 'defaults', defaults);
  const inForce = (known: QueueDefaults | undefined) => JSON.stringify([below(known), known?.maintenance]);
  if (inForce(before) === inForce(defaults)) q.setSettings(q.own, defaults);
  else apply(q, q.own, defaults);
  overridesChanged(q, before);
}

function apply(q: QueueState, own: QueueConfig, defaults: QueueDefaults | undefined): void {
  const { settings: before, maxDeadLetters } = q;
  q.setSettings(own, defaults);
  if (q.maxDeadLetters < maxDeadLetters && countDead(q) > q.maxDeadLetters) setEvicting(q, true);
  if (before.rate_limit && !q.settings.rate_limit) forgetQueueStarts(q);
  // The size is counted only while a bound asks for it.
  q.depth.forget();
  // More concurrency or another rate may start more jobs, and another retention may make ended ones due for removal.
  q.callWorkers();
  q.wake(0);
}
