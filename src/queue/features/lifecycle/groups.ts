/** What an operator says of one group: limits, its weight, a pause. */
import { writeMeta } from '../../../durable/sql';
import { conflict } from '../../../job/errors';
import { type GroupChange, type GroupOverrides, withGroupOverride } from '../../../job/group';
import { own } from '../../../job/own';
import { GROUP_OVERRIDES } from '../../store/configuration';
import type { QueueParts, Stored } from '../../store/parts';

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
export function regrouped({ store }: Stored): void {
  store.cursors.reset();
}

const isEmpty = (overrides: GroupOverrides): boolean => Object.keys(overrides).length === 0;
