/** The settings of one queue: pause, concurrency, timeouts, retention, and its layer of the retry policy. */
import { checkRetryLayer } from '../job/retry/validate';
import type { QueueConfig, QueueStatus } from './api';
import { writeMeta } from './schema';
import type { QueueState } from './state';

/** Pauses or resumes; a paused queue takes jobs and gives none out. Idempotent. */
export function setPaused(q: QueueState, paused: boolean, now: number): QueueStatus {
  if (q.paused !== paused) {
    q.paused = paused;
    q.pausedChangedAt = now;
    writeMeta(q.sql, 'paused', { paused, at: now });
    q.events.add(paused ? 'queue.paused' : 'queue.resumed', q.name, now, {});
    if (!paused) q.arrived(now);
  }
  return { name: q.name, paused, changed_at: q.pausedChangedAt };
}

/** A change of settings; `null` members return to the default. */
export type SettingsChange = { [K in keyof QueueConfig]?: QueueConfig[K] | null };

/** Merges a change that the HTTP layer has validated. @throws {ApiError} 422 for a retry policy that is none */
export function configure(q: QueueState, change: SettingsChange): QueueConfig {
  if (change.default_retry) checkRetryLayer(change.default_retry, 'default_retry');
  const merged: Record<string, unknown> = { ...q.settings };
  for (const [name, value] of Object.entries(change)) {
    if (value === null) delete merged[name];
    else if (name === 'retention' || name === 'dead_letter') merged[name] = Object.assign({}, merged[name], value);
    else if (value !== undefined) merged[name] = value;
  }
  q.settings = merged as QueueConfig;
  writeMeta(q.sql, 'config', q.settings);
  // More concurrency may start more jobs, and another retention may make ended ones due for removal.
  q.workArrived = true;
  q.wake(0);
  return q.settings;
}
