/**
 * The order of jobs: priority, moment of availability, sequence number. Immediate default-priority jobs are in *the
 * line*, in key order without index entries; all others in the *due index*, one seek per priority. Both merge blocks
 * and rows, and each other at the default priority.
 *
 * A {@link Scan} remembers what holds nothing more for its consumer, in memory only: losing it costs reads.
 */
import { LIMIT } from '../../durable/sql';
import { RANK_BIT, sequenceOf } from '../../job/ids';
import type { Blocks } from './blocks';
import {
  compare,
  compareInLine,
  nextIn,
  type Position,
  positionInLine,
  positionOf,
  prioritiesIn,
  START,
} from './due-index';
import type { GroupGates } from './groups/gates';
import { type Stream, selectInTurns } from './groups/select';
import { isInLine, type JobRow, STANDS_IN_LINE, STATE } from './job-row';
import { ownRow, ROW_COLUMNS, readRows } from './own-rows';
import { Rank, type RankPage, type RankPlace } from './rank';
import { JobSelection, LINE, MAX_TAKEN_CHARS, type RankName, type Scan, type Verdict } from './scan';
import type { Turn } from './sizes';

interface Reading {
  priority: number;
  /** Others whose jobs are read with them, in the same order. */
  alsoOf: readonly number[];
  /** Epoch ms. */
  now: number;
  /** Are the bodies of jobs in blocks needed? */
  bodies: boolean;
}

export interface Ranks {
  sql: SqlStorage;
  blocks: Pick<Blocks, 'line' | 'due' | 'retries' | 'row' | 'read'>;
  /** Priorities that may have rows in the due index. */
  priorities: Set<number>;
}

/** Priorities present in the due index: one seek each. */
export const readPriorities = ({ sql, blocks }: Pick<Ranks, 'sql' | 'blocks'>): Set<number> =>
  new Set([...blocks.due.priorities(), ...blocks.retries.priorities(), ...prioritiesIn(sql, 'jobs')]);

/** Queries of {@link readPage}, put together once: every claim needs them. */
const seek = (where: string) => `SELECT ${ROW_COLUMNS} FROM jobs WHERE ${where} ${LIMIT}`;
const SEEKS = {
  line: seek(`key > ? AND key < ? AND ${STANDS_IN_LINE} ORDER BY key`),
  sameAttempt: seek('priority = ? AND due_at = ? AND attempt = ? AND key > ? ORDER BY key'),
  sameMoment: seek('priority = ? AND due_at = ? AND attempt > ? ORDER BY attempt, key'),
  later: seek('priority = ? AND due_at > ? AND due_at <= ? ORDER BY due_at, attempt, key'),
};

/** Reads rows by one seek after the other until there are `limit`, or more of their bodies than one claim may take. */
function readPage(sql: SqlStorage, limit: number, seeks: { query: string; bindings: number[] }[]): RankPage {
  const rows: JobRow[] = [];
  let chars = 0;
  for (const { query, bindings } of seeks) {
    for (const row of readRows(sql, query, ...bindings, limit - rows.length)) {
      rows.push(row);
      chars += row.body.length;
      if (chars >= MAX_TAKEN_CHARS) return { rows, last: false };
    }
    if (rows.length === limit) return { rows, last: false };
  }
  return { rows, last: true };
}

/** Jobs in blocks, as many as {@link readPage} would read. */
function pageOf(jobs: Iterable<JobRow>, limit: number): RankPage {
  const rows: JobRow[] = [];
  let chars = 0;
  for (const row of jobs) {
    rows.push(row);
    chars += row.body.length;
    if (rows.length === limit || chars >= MAX_TAKEN_CHARS) return { rows, last: false };
  }
  return { rows, last: true };
}

/** The end of a page that is not the last: jobs after it must not be taken before the rest of it. */
const endOf = ({ rows, last }: RankPage): JobRow | undefined => (last ? undefined : rows.at(-1));

/** Jobs of one rank that lie in several places. @param inOrder compares rows by their rank's order */
function merged(pages: readonly RankPage[], limit: number, inOrder: (a: JobRow, b: JobRow) => number): RankPage {
  const [only, ...others] = pages.filter(({ rows, last }) => !last || rows.length > 0);
  if (!only) return { rows: [], last: true };
  if (others.length === 0) return only;
  const ends = pages.flatMap((page) => endOf(page) ?? []);
  const rows = pages.flatMap((page) => page.rows).filter((row) => ends.every((end) => inOrder(row, end) <= 0));
  return { rows: rows.sort(inOrder).slice(0, limit), last: ends.length === 0 && rows.length <= limit };
}

function readLine({ sql, blocks }: Ranks, after: number, limit: number, bodies: boolean): RankPage {
  const inBlocks = pageOf(blocks.line.after(after, bodies), limit);
  const end = endOf(inBlocks)?.key ?? RANK_BIT;
  const own = readPage(sql, limit, [{ query: SEEKS.line, bindings: [after, end] }]);
  return merged([inBlocks, own], limit, (a, b) => a.key - b.key);
}

/** The next jobs of the due index, up to a moment. @param after where each of its priorities is read from */
function readDue(ranks: Ranks, reading: Reading, after: Position, limit: number): RankPage {
  const { priority, alsoOf } = reading;
  const pages = [priority, ...alsoOf].flatMap((each) =>
    pagesOfDue(ranks, { ...reading, priority: each }, after, limit),
  );
  return merged(pages, limit, (a, b) => compare(positionOf(a), positionOf(b)));
}

function pagesOfDue(
  { sql, blocks }: Ranks,
  { priority, now, bodies }: Reading,
  after: Position,
  limit: number,
): RankPage[] {
  const inBlocks = pageOf(blocks.due.inTurn(priority, after, now, bodies), limit);
  const again = pageOf(blocks.retries.inTurn(priority, after, endOf(inBlocks)?.due_at ?? now), limit);
  const until = endOf(again)?.due_at ?? endOf(inBlocks)?.due_at ?? now;
  // One comparison of the whole position would read all jobs of its millisecond again: there may be very many.
  const sameMoment = [
    { query: SEEKS.sameAttempt, bindings: [priority, after.at, after.attempt, after.key] },
    { query: SEEKS.sameMoment, bindings: [priority, after.at, after.attempt] },
  ];
  const own = readPage(sql, limit, [
    ...(after.at > START.at && after.at <= until ? sameMoment : []),
    { query: SEEKS.later, bindings: [priority, after.at, until] },
  ]);
  return [inBlocks, again, own];
}

function placeIn(scan: Scan, rank: RankName): Pick<RankPlace, 'behind' | 'makeBehind' | 'wentBack'> {
  const wentBack = () => {
    // What follows was read ahead, and must not be there twice.
    const turns = scan.turns.get(rank === LINE ? 0 : rank);
    if (turns) turns.isStale = true;
  };
  return { behind: () => scan.behind.get(rank), makeBehind: () => scan.behindAt(rank), wentBack };
}

const lineRank = (ranks: Ranks, scan: Scan, bodies: boolean, find: Find): Rank =>
  new Rank(
    {
      ...placeIn(scan, LINE),
      read: (after, limit) => readLine(ranks, after.key, limit, bodies),
      positionOf: positionInLine,
      order: compareInLine,
      find: ({ key }) => {
        const row = find(key);
        return row && isInLine(row) ? row : undefined;
      },
      moveCursor: ({ key }) => {
        scan.line = key;
      },
    },
    { ...START, key: scan.line },
  );

function dueRank(ranks: Ranks, scan: Scan, reading: Reading, find: Find): Rank {
  const { priority, alsoOf } = reading;
  return new Rank(
    {
      ...placeIn(scan, priority),
      read: (after, limit) => readDue(ranks, reading, after, limit),
      positionOf,
      order: compare,
      find: (position) => {
        const row = find(position.key);
        if (row?.state !== STATE.waiting || row.due_at === null) return undefined;
        if (row.priority !== priority && !alsoOf.includes(row.priority)) return undefined;
        if (compare(positionOf(row), position) !== 0) return undefined;
        if (row.due_at <= reading.now) return row;
        // The clock was set back: it is read again when its moment comes again.
        scan.entered(priority, position);
        return undefined;
      },
      moveCursor: (position) => scan.due.set(priority, position),
    },
    scan.due.get(priority) ?? START,
  );
}

/** Reads the job with a key, unless it runs, has completed or is no more. */
type Find = (key: number) => JobRow | undefined;

/** The ready jobs of one priority in order: those of the due index, merged with the line at the default priority. */
class ReadyJobs implements Stream {
  private readonly due: Rank | undefined;
  private readonly line: Rank | undefined;

  constructor(ranks: Ranks, scan: Scan, reading: Reading, find: Find) {
    const { priority, alsoOf, bodies } = reading;
    this.due = ranks.priorities.has(priority) || alsoOf.length > 0 ? dueRank(ranks, scan, reading, find) : undefined;
    this.line = priority === 0 ? lineRank(ranks, scan, bodies, find) : undefined;
  }

  get hasHeld(): boolean {
    return this.due?.held === true || this.line?.held === true;
  }

  get mustGoBack(): boolean {
    return this.due?.mustGoBack === true || this.line?.mustGoBack === true;
  }

  peek(pageSize: number): JobRow | undefined {
    return this.first(this.due?.peek(pageSize), this.line?.peek(pageSize));
  }

  pass(row: JobRow, verdict: Verdict): boolean {
    return this.rankOf(row)?.pass(row, verdict) === true;
  }

  again(): JobRow | undefined {
    return this.first(this.due?.again(), this.line?.again());
  }

  isAgain(row: JobRow): boolean {
    return this.rankOf(row)?.isAgain(row) === true;
  }

  private first(due: JobRow | undefined, line: JobRow | undefined): JobRow | undefined {
    return due && (!line || comesFirst(due, line)) ? due : line;
  }

  private rankOf(row: JobRow): Rank | undefined {
    return row.due_at === null ? this.line : this.due;
  }
}

/**
 * The next jobs for a consumer, highest priority first; groups may take turns inside one.
 * @param look called once for each row in turn @param limit jobs to take at most
 * @param starting jobs by group taken by another selection that shares their leases
 */
export function selectReady(
  ranks: Ranks & {
    gates?: GroupGates;
    leases?: { active: ReadonlyMap<number, unknown> };
    turn?: Turn;
  },
  scan: Scan,
  now: number,
  limit: number,
  look: (row: JobRow) => Verdict,
  starting = new Map<string, number>(),
): JobRow[] {
  const selection = new JobSelection(limit, look, starting, scan.memory.sizes, ranks.turn);
  const { sql, blocks, gates, leases } = ranks;
  // A job that was read ahead may run meanwhile, by another cursor: if it comes back, it is read again.
  const isRunning = (key: number) => leases?.active.has(key) === true;
  const find = (key: number) => (isRunning(key) ? undefined : (blocks.row(key) ?? ownRow(sql, key)));
  const passedOver = () => {
    scan.exact = false;
  };
  scan.emptied = true;
  let isStale = false;
  let mustGoBack = false;
  for (const priority of inTurn(ranks.priorities)) {
    // Jobs of groups that wait with a priority from before the order was strict: none of it counts.
    const alsoOf = gates?.isStrict && priority === 0 ? [...ranks.priorities].filter((other) => other !== 0) : [];
    const ready = new ReadyJobs(ranks, scan, { priority, alsoOf, now, bodies: !gates?.rules }, find);
    const hasHeld = gates?.rules
      ? selectInTurns(
          { gates, blocks, find, isRunning, passedOver, scan },
          scan.turnsAt(priority, gates.rules, gates.holding),
          ready,
          { priority, now },
          selection,
        )
      : selectInOrder(ready, selection);
    scan.emptied &&= !selection.isFull && !hasHeld;
    isStale = scan.rereads(priority);
    // What was not read yet of this priority comes first.
    mustGoBack = ready.mustGoBack;
    if (selection.isFull || selection.isCutShort || isStale || mustGoBack) break;
  }
  scan.isCutShort = selection.isCutShort;
  // If only held rows were read, the next selection would read the same again.
  scan.unfinished =
    isStale || mustGoBack || selection.isCutShort || (selection.isFull && !selection.isSated && selection.hasMoved);
  return selection.taken;
}

const DEFAULT_ONLY: readonly number[] = [0];

const inTurn = (priorities: ReadonlySet<number>): readonly number[] =>
  priorities.size === 0 ? DEFAULT_ONLY : [...new Set([...priorities, 0])].sort((a, b) => b - a);

/** Takes jobs as they come. @returns whether it left something for later */
function selectInOrder(ready: ReadyJobs, selection: JobSelection): boolean {
  for (let looked = 0; !selection.isFull; looked++) {
    // The more it passes over, the more it reads at once.
    const row = ready.peek(Math.min(Math.max(selection.left + 4, looked), 128));
    if (!row || ready.mustGoBack) break;
    if (ready.pass(row, selection.look(row))) selection.hasMoved = true;
  }
  return ready.hasHeld;
}

/** Did the job of the due index become available before the job in the line? */
export function comesFirst(due: Pick<JobRow, 'due_at' | 'key'>, line: Pick<JobRow, 'enqueued_at' | 'key'>): boolean {
  const difference = (due.due_at as number) - line.enqueued_at;
  return difference < 0 || (difference === 0 && sequenceOf(due.key) < sequenceOf(line.key));
}

/** The first moment after `now` at which a job of the due index becomes available, or undefined. */
export function nextDue(ranks: Ranks, now: number): number | undefined {
  let next = Number.POSITIVE_INFINITY;
  for (const priority of ranks.priorities) {
    for (const at of [ranks.blocks.due.nextDue(priority, now), nextIn(ranks.sql, 'jobs', priority, now)]) {
      if (at !== undefined && at < next) next = at;
    }
  }
  next = Math.min(next, ranks.blocks.retries.nextDue(now) ?? next);
  return next < Number.POSITIVE_INFINITY ? next : undefined;
}
