/** A queue's groups: what waits and runs, counted on request by bounded reads, what limits them and holds them up. */
import { defined } from '../../job/envelope/fields';
import { getOrInsert } from '../../job/get-or-insert';
import { type GroupOrder, WEIGHTS } from '../../job/group';
import { own } from '../../job/own';
import type { GroupDetail, GroupsRequest, GroupsView, GroupView } from '../../rpc/groups';
import { eachAvailable } from '../read/available';
import { QUIET } from '../store/groups/turns';
import type { Named, Stored, StoredQueue } from '../store/parts';
import { rowByKey } from '../store/row-lookup';
import { idOf } from '../store/rows';
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
