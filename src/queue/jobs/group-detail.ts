/** A queue's groups: what waits and runs, counted on request by bounded reads, what limits them and holds them up. */

import { formatDuration } from '../../job/duration';
import { defined } from '../../job/envelope/fields';
import { getOrInsert } from '../../job/get-or-insert';
import { type GroupOrder, WEIGHTS } from '../../job/group';
import { own } from '../../job/own';
import { namedGroup, type WaitingFor, waiting } from '../../job/waiting';
import type { GroupDetail, GroupsRequest, GroupsView, GroupView } from '../../rpc/groups';
import { eachAvailable } from '../read/available';
import { QUIET } from '../store/groups/turns';
import { groupOfRow, type JobRow, STATE } from '../store/job-row';
import type { Named, Stored, StoredQueue } from '../store/parts';
import { rowByKey } from '../store/row-lookup';
import { availableSince, idOf } from '../store/rows';
import { longestWaitingOf } from './group-room';
import { roomFor } from './limit-check';

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

/** Jobs looked at for one answer in each kind of blocks. */
const MAX_HEADS = 25_000;

type CountedGroup = Pick<GroupView, 'waiting' | 'limited' | 'oldest'>;

interface Waiting {
  group: string | undefined;
  since: number;
  isLimited: boolean;
}

/** The groups that have jobs which wait or run, or that are held up. Writes nothing. */
export function groups(q: Named & Stored, { offset, limit }: GroupsRequest, now: number): GroupsView {
  const { gates, leases } = q.store;
  const counted = new Map<string, CountedGroup>();
  const ofGroup = (group: string) => getOrInsert(counted, group, (): CountedGroup => ({ waiting: 0, limited: 0 }));
  let [waiting, ungrouped] = [0, 0];
  const complete = eachWaiting(q, now, ({ group, since, isLimited }) => {
    if (group === undefined) {
      ungrouped++;
      return;
    }
    const of = ofGroup(group);
    waiting++;
    of.waiting++;
    if (isLimited) of.limited++;
    of.oldest = Math.min(of.oldest ?? since, since);
  });
  let running = 0;
  for (const [group, count] of leases.runningByGroup) {
    ofGroup(group);
    running += count;
  }
  for (const [group] of gates.holding) ofGroup(group);
  // One that was paused must be found, to be resumed.
  for (const group of gates.rules?.overridden ?? []) ofGroup(group);
  // Noisy groups have more waiting jobs than all others, so their number is the whole order.
  const sorted = [...counted].sort(([a, of], [b, other]) => other.waiting - of.waiting || (a < b ? -1 : 1));
  const order: GroupOrder | undefined = gates.rules?.order;
  const shown = sorted.slice(offset, offset + limit);
  const blockers = blockersOf(q, new Set(shown.map(([group]) => group)));
  return {
    ...(order !== undefined && { order }),
    groups: shown.map(([group, of]) => viewOf(q, group, of, blockers.get(group))),
    total: sorted.length,
    waiting,
    running,
    ungrouped,
    complete,
  };
}

/** A group as it was counted. @param blocker the job that must end before another one starts */
export const viewOf = (
  { store: { gates } }: Stored,
  group: string,
  of: CountedGroup,
  blocker: string | undefined,
): GroupView => ({
  ...{ group, ...of, running: gates.runningOf(group) },
  ...{ weight: gates.rules?.weightOf(group) ?? WEIGHTS.default, noisy: isNoisy(of), paused: gates.isPaused(group) },
  ...(blocker !== undefined && { blocked_by: blocker }),
});

const isNoisy = ({ waiting }: CountedGroup): boolean => waiting > QUIET;

/** In a strict order: ids of the jobs that must end before others of these groups start. */
function blockersOf(q: Named & Stored, groups: ReadonlySet<string>): Map<string, string> {
  const { gates, leases } = q.store;
  const found = new Map<string, string>();
  if (!gates.isStrict) return found;
  const keys = new Map<string, number>();
  for (const group of groups) {
    const key = gates.holderOf(group);
    if (key !== undefined) keys.set(group, key);
  }
  for (const { key, group } of leases.active.values())
    if (group !== undefined && groups.has(group)) keys.set(group, key);
  for (const [group, key] of keys) {
    const row = rowByKey(q.store, key);
    if (row) found.set(group, idOf(q.route, row));
  }
  return found;
}

/** Visits the jobs that are available. @returns were these all? */
function eachWaiting(q: Stored, now: number, visit: (job: Waiting) => void): boolean {
  const exceeds = roomOfKeys(q, now);
  return eachAvailable(q, now, MAX_HEADS, ({ group, since, limitKey }) => {
    visit({ group, since, isLimited: exceeds(limitKey) });
  });
}

/** Counts available jobs by the keys that limit them: is there more than room for? */
function roomOfKeys({ store }: Stored, now: number) {
  const left = new Map<string, number>();
  return (key: string | null): boolean => {
    if (key === null) return false;
    const running = store.leases.runningByKey.get(key) ?? 0;
    const room = left.get(key) ?? store.limiters.find(key)?.room(running, now) ?? Number.POSITIVE_INFINITY;
    left.set(key, room - 1);
    return room <= 0;
  };
}

/** The group of an available job may start no other one: paused, rate used up, or others run or must end first. */
export function waitsForGroup(q: Named & Stored, row: JobRow, now: number): WaitingFor | undefined {
  const group = q.store.gates.rules && groupOfRow(row);
  return group === undefined ? undefined : groupWaits(q, group, row, availableSince(row), now);
}

/** What says which holds of its group a job is subject to. */
type Start = Pick<JobRow, 'key' | 'attempt' | 'history'>;

/** Any job of a group that has not begun. */
const NEXT: Start = { key: 0, attempt: 0, history: null };

/** Why this job may not start because of its group. @param since when it became available, epoch ms */
function groupWaits(q: Named & Stored, group: string, row: Start, since: number, now: number): WaitingFor | undefined {
  const held = groupHeld(q, group, row, since, now);
  return held ?? (q.store.gates.isStrict ? waitsForFirst(q, group, row, since, now) : undefined);
}

/** What holds the whole group; not the limit key of its first job, which only {@link groupWaits} reads. */
function groupHeld(q: Named & Stored, group: string, row: Start, since: number, now: number): WaitingFor | undefined {
  const { gates } = q.store;
  const named = namedGroup(group);
  const held = (reason: WaitingFor['reason'], detail: string, until?: number): WaitingFor => ({
    ...waiting(reason, detail, since, until),
    group,
  });
  const hold = gates.holdOf(group, row, 0, now);
  switch (hold?.by) {
    case 'pause':
      return held('group_paused', `An operator has paused ${named}: it hands out no jobs until it is resumed.`);
    case 'rate': {
      const { limit, period_ms } = gates.limitsOf(group)?.rate ?? { limit: 0, period_ms: 0 };
      const detail = `${limit} jobs of ${named} have started within ${formatDuration(period_ms)}, as many as its queue allows.`;
      return held('group', detail, hold.opensAt);
    }
    case 'concurrency':
      return held('group', `${gates.runningOf(group)} jobs of ${named} run, as many as its queue allows.`);
    case 'order':
      return waitsForEarlier(q, group, since);
    default:
      return undefined;
  }
}

/** In a strict order, the first job of its group waits for its key. Reads a bounded part of the backlog. */
function waitsForFirst(
  q: Named & Stored,
  group: string,
  row: Pick<JobRow, 'key'>,
  since: number,
  now: number,
): WaitingFor | undefined {
  const [key] = longestWaitingOf(q, new Map([[group, 1]]), new Set()).keys.get(group) ?? [];
  const first = key === undefined || key === row.key ? undefined : rowByKey(q.store, key);
  if (!first || availableSince(first) > now || roomFor(q, first, now) > 0) return undefined;
  return behindEarlier(q, group, first, 'waits for its limit', since);
}

function waitsForEarlier(q: Named & Stored, group: string, since: number): WaitingFor | undefined {
  const { gates, leases } = q.store;
  const running = Array.from(leases.active.values()).find((active) => active.group === group)?.key;
  const key = running ?? gates.holderOf(group);
  const earlier = key === undefined ? undefined : rowByKey(q.store, key);
  if (!earlier) return undefined;
  if (earlier.state === STATE.held) {
    const detail = `An operation over several queues has a job of ${namedGroup(group)}, and is being decided.`;
    return { ...waiting('group', detail, since), group };
  }
  return behindEarlier(q, group, earlier, running === undefined ? 'has begun and waits to continue' : 'runs', since);
}

function behindEarlier(q: Named, group: string, earlier: JobRow, why: string, since: number): WaitingFor {
  const id = idOf(q.route, earlier);
  const detail = `An earlier job of ${namedGroup(group)}, ${id}, ${why}. One job of a group runs at a time here, in the order of enqueue.`;
  return { ...waiting('group', detail, since), job_id: id, group };
}
