/** One group by its name: what waits and runs, what limits it, and why it starts no job. */
import { defined } from '../../job/envelope/fields';
import { WEIGHTS } from '../../job/group';
import { own } from '../../job/own';
import type { GroupDetail, GroupsRequest, GroupsView } from '../../rpc/groups';
import { blockersOf, type CountedGroup, eachWaiting, groups, viewOf } from '../read/groups';
import type { Named, Stored, StoredQueue } from '../store/parts';
import { groupHeld, groupWaits, NEXT } from './group-waiting';

export const unknownGroup = (group: string): GroupDetail => ({
  ...{ group, waiting: 0, limited: 0, running: 0, weight: WEIGHTS.default, noisy: false, paused: false },
  ...{ limits: {}, complete: true },
});

/** One group, with what limits it and what it waits for. Writes nothing. */
export function group(q: StoredQueue, name: string, now: number): GroupDetail {
  const { gates } = q.store;
  const counted: CountedGroup = { waiting: 0, limited: 0 };
  const complete = eachWaiting(q, now, ({ group, since, isLimited }) => {
    if (group !== name) return;
    counted.waiting++;
    if (isLimited) counted.limited++;
    counted.oldest = Math.min(counted.oldest ?? since, since);
  });
  const { concurrency, rate, max_waiting } = gates.limitsOf(name) ?? {};
  const waits = groupWaits(q, name, NEXT, counted.oldest ?? now, now);
  return {
    ...viewOf(q, name, counted, blockersOf(q, new Set([name])).get(name)),
    limits: defined({ concurrency, rate, max_waiting }),
    ...defined({ override: own(q.config.groupOverrides, name), waiting_for: waits }),
    complete,
  };
}

/** The groups of a queue, each with what holds it. */
export function groupList(q: Named & Stored, request: GroupsRequest, now: number): GroupsView {
  const found = groups(q, request, now);
  const explained = found.groups.map((view) => {
    const waiting_for = groupHeld(q, view.group, NEXT, view.oldest ?? now, now);
    return { ...view, ...(waiting_for && { waiting_for }) };
  });
  return { ...found, groups: explained };
}
