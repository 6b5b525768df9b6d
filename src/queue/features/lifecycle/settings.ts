/**
 * The settings of one queue: pause, concurrency, timeouts, retention, its layer of the retry policy, and what an
 * operator says of one group.
 */
import { writeMeta } from '../../../durable/sql';
import { conflict, mayNotShorten } from '../../../job/errors';
import { type GroupChange, type GroupOverrides, withGroupOverride } from '../../../job/group';
import { own } from '../../../job/own';
import { checkRetryLayer } from '../../../job/retry/validate';
import type { QueueStatus } from '../../../rpc/receipts';
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
} from '../../../settings';
import { refuseRemoved } from '../../jobs/may-enqueue';
import { GROUP_OVERRIDES } from '../../store/configuration';
import { setEvicting } from '../../store/jobs';
import { overridesChanged } from '../../store/limits/changes';
import { forgetQueueStarts } from '../../store/limits/queue-limit';
import type { Configured, QueueParts, Stored, Woken } from '../../store/parts';

/** Changes the mode, durably. Idempotent. @throws {ApiError} 409 while the queue is being deleted */
export function setMode(q: QueueParts, mode: QueueMode, now: number): QueueStatus {
  refuseRemoved(q);
  const before = modeOf(q.config);
  if (before !== mode) {
    q.config.paused = mode === 'paused';
    q.config.draining = mode === 'draining';
    q.config.pausedChangedAt = now;
    writeMeta(q.store.sql, 'paused', {
      paused: q.config.paused,
      at: now,
      ...(q.config.draining && { draining: true }),
    });
    if (mode === 'paused') q.observed.events.add('queue.paused', q.name, now, {});
    else if (before === 'paused') q.observed.events.add('queue.resumed', q.name, now, {});
    if (before === 'paused') q.wake.arrived(now);
  }
  const status = {
    name: q.name,
    paused: q.config.paused,
    draining: q.config.draining,
    changed_at: q.config.pausedChangedAt,
  };
  return before === mode ? { ...status, unchanged: true } : status;
}

/**
 * Merges a validated change. @param mayPurge false: retentions must not get shorter; a queue without jobs has none
 * @throws {ApiError} 422 for an invalid retry policy, 403 for a retention that is lowered
 */
export function configure(q: Stored & Configured & Woken, change: SettingsChange, mayPurge = true): QueueConfig {
  if (change.default_retry) checkRetryLayer(change.default_retry, 'default_retry');
  const own = changed(q.config.own, change);
  const less =
    mayPurge || q.store.nextSequence === 1
      ? undefined
      : keepsLess(q.config.settings, over(own, below(q.config.defaults)), q.config.variables.maxStorageBytes);
  if (less !== undefined) throw mayNotShorten(less);
  writeMeta(q.store.sql, 'config', own);
  apply(q, own, q.config.defaults);
  return own;
}

/** Puts other settings, and another mode, in the place of the queue's own. @throws {ApiError} 422, 409 */
export function replaceSettings(q: QueueParts, own: QueueConfig, mode: QueueMode, now: number): void {
  if (JSON.stringify(own) !== JSON.stringify(q.config.own)) {
    if (own.default_retry) checkRetryLayer(own.default_retry, 'default_retry');
    writeMeta(q.store.sql, 'config', own);
    apply(q, own, q.config.defaults);
  }
  setMode(q, mode, now);
}

/** Takes over the deployment's settings for all queues, unless they are known. One row written. */
export function takeDefaults(q: Stored & Configured & Woken, defaults: QueueDefaults): void {
  if (q.config.defaults && q.config.defaults.version >= defaults.version) return;
  const before = q.config.defaults;
  writeMeta(q.store.sql, 'defaults', defaults);
  const inForce = (known: QueueDefaults | undefined) => JSON.stringify([below(known), known?.maintenance]);
  if (inForce(before) === inForce(defaults)) q.config.set(q.config.own, defaults);
  else apply(q, q.config.own, defaults);
  overridesChanged(q, before);
}

function apply(q: Stored & Configured & Woken, own: QueueConfig, defaults: QueueDefaults | undefined): void {
  const { settings: before, maxDeadLetters } = q.config;
  q.config.set(own, defaults);
  if (q.config.maxDeadLetters < maxDeadLetters && q.store.counts.countDead() > q.config.maxDeadLetters)
    setEvicting(q, true);
  if (before.rate_limit && !q.config.settings.rate_limit) forgetQueueStarts(q);
  if (before.groups && !q.config.groups?.periods) q.store.gates.starts.clear();
  // Who has read ahead by other rules reads again.
  if (JSON.stringify(before.groups) !== JSON.stringify(q.config.settings.groups)) regrouped(q);
  // The size is counted only while a bound needs it.
  q.store.depth.forget();
  // More concurrency or another rate may start more jobs, and another retention may make ended ones due for removal.
  q.wake.callWorkers();
  q.wake.at(0);
}

/**
 * Changes an override of one group; null removes it. One row written. @returns false: nothing changed
 * @throws {ApiError} 409 where the queue says nothing of its groups, or too many have settings of their own; 422
 */
export function overrideGroup(q: QueueParts, group: string, change: GroupChange | null, now: number): boolean {
  const { groups, groupOverrides: before } = q.config;
  if (!groups && change !== null) {
    throw conflict(
      `Queue ${q.name} does not serve its jobs by group.`,
      { queue: q.name },
      `Set groups with PUT /ojs/v1/queues/${q.name}/config.`,
    );
  }
  const after = withGroupOverride(before, groups?.order, group, change);
  if (JSON.stringify(own(after, group)) === JSON.stringify(own(before, group))) return false;
  writeMeta(q.store.sql, GROUP_OVERRIDES, isEmpty(after) ? undefined : after);
  q.config.setGroups(after);
  const rules = q.config.groups;
  if (groups?.periods && !rules?.periods) q.store.gates.starts.clear();
  // Jobs of a paused group were passed over, and its turns had other shares: all is read again.
  const isRead =
    groups?.isPaused(group) === rules?.isPaused(group) && groups?.weightOf(group) === rules?.weightOf(group);
  if (!isRead) regrouped(q);
  else q.store.gates.mayContinue(group);
  // It may start more jobs than before.
  q.wake.arrived(now);
  return true;
}

/** Puts other overrides in the place of all that there are. @throws {ApiError} as {@link overrideGroup} */
export function replaceGroups(q: QueueParts, changes: Readonly<Record<string, GroupChange>>): void {
  const order = q.config.groups?.order;
  let after: GroupOverrides = {};
  for (const [group, change] of Object.entries(changes)) after = withGroupOverride(after, order, group, change);
  if (JSON.stringify(after) === JSON.stringify(q.config.groupOverrides)) return;
  writeMeta(q.store.sql, GROUP_OVERRIDES, isEmpty(after) ? undefined : after);
  q.config.setGroups(after);
  regrouped(q);
}

/** Groups are paused or resumed, or have other shares: what was read of them is read again. */
function regrouped({ store }: Stored): void {
  store.cursors.reset();
}

const isEmpty = (overrides: GroupOverrides): boolean => Object.keys(overrides).length === 0;
