/**
 * Choosing jobs where the groups of a queue take turns. The jobs that are ready are read ahead, without bodies, into
 * the {@link Turns} of the consumer. Then one lane after the other names its next job, and the job's row decides.
 */
import { plainKey } from '../../../job/limits/policy';
import { type Position, START } from '../due-index';
import { groupOfRow, type JobRow, STATE } from '../job-row';
import { isTooLate } from '../rows';
import type { JobSelection, Scan, Verdict } from '../scan';
import type { GroupGates, Hold } from './gates';
import type { Turns } from './turns';

/** The ready jobs of one priority in order. */
export interface Stream {
  peek(pageSize: number): JobRow | undefined;
  pass(row: JobRow, verdict: Verdict): boolean;
  /** May jobs start that were passed over? They come before those that follow. */
  readonly mustGoBack: boolean;
  /** The next one of those that have waited for their keys and were read before, if its key may have room. */
  again(): JobRow | undefined;
  /** Is it such a one? */
  isAgain(row: JobRow): boolean;
}

/** Jobs read at once. */
const PAGE = 256;

interface Source {
  readonly gates: GroupGates;
  readonly blocks: { readonly read: number };
  /** The job with this key, unless it runs, has completed or is no more. */
  find(key: number): JobRow | undefined;
  isRunning(key: number): boolean;
  /** Jobs of a paused group were read that wait: the line is not taken up to here. */
  passedOver(): void;
  readonly scan: Pick<Scan, 'readsAgain' | 'looksAgain' | 'waits' | 'yields' | 'memory'>;
}

/** @returns whether it left something for later */
export function selectInTurns(
  { gates, blocks, find, isRunning, passedOver, scan }: Source,
  turns: Turns,
  ready: Stream,
  { priority, now }: { priority: number; now: number },
  selection: JobSelection,
): boolean {
  const { starting } = selection;
  const keys = new Set<number>();
  const asked = new Set<number>();
  const readBefore = blocks.read;
  const { sizes } = scan.memory;
  const room = scan.memory.roomFor(turns.held);
  const wantsMore = (): boolean => turns.wantsMore(selection.left, room, sizes);
  let ahead = 0;
  let ownRows = 0;
  let isAllRead = false;
  const mayRead = (): boolean =>
    ahead < sizes.ahead && ownRows < sizes.aheadRows && blocks.read - readBefore < sizes.aheadBlocks;
  const holdOf = (row: JobRow, group: string | undefined): Hold | undefined =>
    group === undefined ? undefined : gates.holdOf(group, row, starting.get(group) ?? 0, now);
  /** It does not take the room of its key that it was read again for: jobs of other groups may have it. */
  const yields = (row: JobRow): void => {
    if (scan.yields(row, priority)) isAllRead = false;
  };
  /** Too many jobs hold their groups up to be known from the start. Those of groups that were read are found here. */
  const findsHolders = (group: string | undefined): boolean => {
    if (group === undefined || !gates.areFoundLater) return false;
    const holders = gates.holdersOf(group).filter((key) => !asked.has(key) && !isRunning(key) && !turns.isAsleep(key));
    for (const key of holders) {
      asked.add(key);
      turns.putBack({ ...START, key }, group, true);
    }
    return holders.length > 0;
  };
  const read = (row: JobRow): void => {
    const isAgain = ready.isAgain(row);
    ready.pass(row, 'pass');
    turns.isStale ||= ready.mustGoBack;
    selection.hasMoved = true;
    ahead++;
    if (row.body !== '') ownRows++;
    const group = groupOfRow(row);
    // It is read, or was, with those of the priority that counts.
    if (gates.priorityOf(group, row.priority) !== priority) return;
    const position = positionOf(row);
    if (isAgain && isShared(row, group) && holdOf(row, group)) yields(row);
    else if (isAgain) scan.readsAgain(row.key);
    // One that runs takes another place if it comes back.
    if (isRunning(row.key)) return;
    // Others of its group have waited with it, and it is still the first one of them.
    if (isAgain && gates.isStrict && group !== undefined) {
      turns.freed(group);
      return;
    }
    // A job that others wait for is known without being read, see `Scan.turnsAt`, unless there are too many.
    if (gates.isStrict && row.holds_group !== null) {
      if (gates.areFoundLater) turns.putBack(position, group, true);
      return;
    }
    // However many they are, they take no memory; once their group is resumed, all are read again.
    if (group !== undefined && gates.isPaused(group)) passedOver();
    // A rate delays no job whose start was counted before: it goes before those that it delays.
    else if (isAgain || (group !== undefined && gates.goesOn(group, row))) turns.putBack(position, group);
    // The line is read in the order of its numbers, whatever the clock showed.
    else if (!gates.isStrict || row.due_at === null || !turns.isLate(position)) turns.add(position, group);
    // Others were read before it that became available later: all are read again, in order.
    else turns.isStale = true;
  };
  const readAhead = (): void => {
    while (mayRead() && !turns.isStale && wantsMore()) {
      const row = ready.peek(PAGE);
      isAllRead = row === undefined;
      if (!row) return;
      read(row);
    }
  };
  // More waits than this selection may read ahead: quiet groups may be among it.
  const isBehind = (): boolean => !isAllRead && !mayRead() && wantsMore();
  turns.begin(selection.left, now);
  // However many others were read ahead.
  for (let count = 0; count < selection.left && mayRead(); count++) {
    const row = ready.again();
    if (!row) break;
    read(row);
  }
  readAhead();
  while (!selection.isFull && !turns.isStale) {
    const lane = turns.next(selection.left);
    if (!lane) {
      const before = ahead;
      if (!isAllRead) readAhead();
      if (ahead > before) continue;
      // None of those that were read may start, but one of the next ones may.
      selection.isCutShort = !isAllRead && !mayRead();
      break;
    }
    if (isBehind() && turns.isTooEarly(lane)) {
      turns.setLaneAside(lane);
      continue;
    }
    const key = lane.first as number;
    const { group } = lane;
    const row = keys.has(key) ? undefined : find(key);
    // One that ended since, and begins again, stands where it was put then.
    const isOver = lane.isFirstHolder && row?.holds_group === null;
    if (!row || isOver || gates.priorityOf(group, row.priority) !== priority || !isReady(row, now)) {
      if (row && gates.priorityOf(group, row.priority) === priority && sleeps(row, now))
        turns.sleep(lane, positionOf(row));
      else turns.drop(lane);
      selection.passed(row ?? NOTHING);
      selection.hasMoved = true;
      continue;
    }
    const isAgain = row.limit_key !== null && scan.looksAgain(key);
    const hold = holdOf(row, group);
    if (hold) {
      if (hold.by === 'pause') {
        turns.forget(lane);
        passedOver();
      } else if (hold.by === 'rate') turns.close(lane, hold.opensAt);
      else if (!findsHolders(group)) turns.block(lane);
      if (isAgain && isShared(row, group)) yields(row);
      continue;
    }
    const verdict = selection.look(row);
    if (verdict === 'stop') {
      if (isAgain) scan.readsAgain(key);
      break;
    }
    if (verdict === 'wait') scan.waits(row, priority);
    else if (verdict !== 'take' && isAgain) yields(row);
    if (verdict === 'hold') {
      if (gates.isStrict && group !== undefined) turns.setLaneAside(lane);
      else turns.setAside(lane, positionOf(row));
      continue;
    }
    selection.hasMoved = true;
    if (verdict === 'take') {
      keys.add(key);
      if (group !== undefined) starting.set(group, (starting.get(group) ?? 0) + 1);
      turns.taken(lane);
    } else if (gates.isStrict && group !== undefined && !isTooLate(row, now)) turns.block(lane);
    else {
      // Once is enough: one that ended and runs again may stand in its old place, too. What waits may be read again.
      if (verdict !== 'wait') keys.add(key);
      turns.drop(lane);
    }
  }
  turns.end(isBehind());
  return !turns.isEmpty || (!isAllRead && !selection.isFull);
}

/** Do jobs of other groups count under its key, as far as its name shows? */
const isShared = ({ limit_key: key }: JobRow, group: string | undefined): boolean =>
  key !== null && group !== undefined && plainKey(key) !== group;

const NOTHING = { body: '' };

function isReady(row: JobRow, now: number): boolean {
  if (row.state !== STATE.waiting || row.ended_at !== null) return false;
  return row.due_at === null || row.due_at <= now;
}

/** Does the job wait for its next moment, and all others of its group for its end? */
function sleeps(row: JobRow, now: number): row is JobRow & { due_at: number } {
  if (row.holds_group === null || row.state !== STATE.waiting) return false;
  return row.due_at !== null && row.due_at > now;
}

const positionOf = ({ due_at, enqueued_at, attempt, key }: JobRow): Position => ({
  at: due_at ?? enqueued_at,
  attempt,
  key,
});
