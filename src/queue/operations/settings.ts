/** The settings of one queue: pause, concurrency, timeouts, retention, and its layer of the retry policy. */
import { conflict } from '../../job/errors';
import { checkRetryLayer } from '../../job/retry/validate';
import type { QueueConfig, QueueStatus } from '../api';
import { forgetQueueStarts } from '../limits/queue-limit';
import type { QueueState } from '../state';
import { writeMeta } from '../storage/schema';

/** `paused`: takes jobs and gives none out. `draining`: gives out those it has and takes none. */
export type QueueMode = 'active' | 'paused' | 'draining';

/** The mode a queue is in. */
export function modeOf({ paused, draining }: { paused: boolean; draining?: boolean }): QueueMode {
  return paused ? 'paused' : draining ? 'draining' : 'active';
}

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
  return { name: q.name, paused: q.paused, draining: q.draining, changed_at: q.pausedChangedAt };
}

/** Pauses or resumes. @throws {ApiError} as {@link setMode} */
export function setPaused(q: QueueState, paused: boolean, now: number): QueueStatus {
  return setMode(q, paused ? 'paused' : 'active', now);
}

/** A change of settings; `null` members return to the default. */
export type SettingsChange = { [K in keyof QueueConfig]?: QueueConfig[K] | null };

/** Merges a change that the HTTP layer has validated. @throws {ApiError} 422 for a retry policy that is none */
export function configure(q: QueueState, change: SettingsChange): QueueConfig {
  if (change.default_retry) checkRetryLayer(change.default_retry, 'default_retry');
  if (change.rate_limit === null) forgetQueueStarts(q);
  const merged: Record<string, unknown> = { ...q.settings };
  for (const [name, value] of Object.entries(change)) {
    if (value === null) delete merged[name];
    else if (name === 'retention' || name === 'dead_letter') merged[name] = Object.assign({}, merged[name], value);
    else if (value !== undefined) merged[name] = value;
  }
  q.settings = merged as QueueConfig;
  writeMeta(q.sql, 'config', q.settings);
  // The size is counted only while a bound asks for it.
  q.depth.forget();
  // More concurrency or another rate may start more jobs, and another retention may make ended ones due for removal.
  q.workArrived = true;
  q.wake(0);
  return q.settings;
}
