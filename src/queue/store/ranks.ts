/**
 * The order in which jobs are taken: priority, then the moment of becoming available, then the sequence number.
 *
 * Two places hold waiting jobs. Immediate jobs of default priority are in *the line*: they are taken in key order and
 * have no index entry. All others are in the *due index*, read by one seek per priority. Both merge jobs in blocks with
 * jobs that have rows of their own; the due index has two kinds of blocks. At the default priority, line and due index
 * are merged by the moment at which each job became available.
 *
 * A {@link Scan} remembers how far each rank holds nothing more for its consumer. So a claim reads little more than it
 * takes, however many jobs wait, run, or are scheduled. It is memory only: losing it costs reads, never correctness.
 */
import { LIMIT } from '../../durable/sql';
import { RANK_BIT, sequenceOf } from '../../job/ids';
import type { Blocks } from './blocks';
import { ownRow, ROW_COLUMNS, readRows } from './columns';
import { compare, nextIn, type Position, prioritiesIn, START } from './due-index';
import type { GroupGates } from './groups/gates';
import { type Stream, selectInTurns } from './groups/select';
import { type JobRow, STATE } from './job-row';
import { JobSelection, MAX_TAKEN_CHARS, type Scan, type Verdict } from './scan';

/** What is read of the ranks. */
interface Reading {
  priority: number;
  /** Epoch ms. */
  now: number;
  /** Are the bodies of jobs in blocks needed? */
  bodies: boolean;
}

/** Rows of a rank in order, and whether nothing follows them. */
interface Page {
  rows: JobRow[];
  last: boolean;
}

/** One rank being read in order, a page at a time. */
class Rank {
  private page: JobRow[] = [];
  private next = 0;
  private exhausted = false;
  /** It held a row back for its consumer. */
  held = false;

  constructor(
    private readonly read: (after: Position, limit: number) => Page,
    private after: Position,
    private readonly positionOf: (row: JobRow) => Position,
    private readonly moveCursor: (position: Position) => void,
  ) {}

  peek(pageSize: number): JobRow | undefined {
    if (this.next === this.page.length && !this.exhausted) {
      const { rows, last } = this.read(this.after, pageSize);
      this.page = rows;
      this.next = 0;
      this.exhausted = last;
    }
    return this.page[this.next];
  }

  /** @returns whether the cursor moved past the row */
  pass(row: JobRow, verdict: Verdict): boolean {
    this.next++;
    this.after = this.positionOf(row);
    if (verdict === 'hold' || verdict === 'stop') this.held = true;
    if (!this.held) this.moveCursor(this.after);
    return !this.held;
  }
}

export interface Ranks {
  sql: SqlStorage;
  blocks: Pick<Blocks, 'line' | 'due' | 'retries' | 'row' | 'read'>;
  /** Priorities that may have rows in the due index. */
  priorities: Set<number>;
}

/** Priorities present in the due index: one seek each. */
export function readPriorities({ sql, blocks }: Pick<Ranks, 'sql' | 'blocks'>): Set<number> {
  return new Set([...blocks.due.priorities(), ...blocks.retries.priorities(), ...prioritiesIn(sql, 'jobs')]);
}

/** Reads rows by one seek after the other until there are `limit`, or more of their bodies than one claim may take. */
function readPage(sql: SqlStorage, limit: number, seeks: { where: string; bindings: number[] }[]): Page {
  const rows: JobRow[] = [];
  let chars = 0;
  for (const { where, bindings } of seeks) {
    const query = `SELECT ${ROW_COLUMNS} FROM jobs WHERE ${where} ${LIMIT}`;
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
function pageOf(jobs: Iterable<JobRow>, limit: number): Page {
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
const endOf = ({ rows, last }: Page): JobRow | undefined => (last ? undefined : rows.at(-1));

/** Jobs of one rank that lie in several places. @param inOrder compares rows by their rank's order */
function merged(pages: readonly Page[], limit: number, inOrder: (a: JobRow, b: JobRow) => number): Page {
  const [only, ...others] = pages.filter(({ rows, last }) => !last || rows.length > 0);
  if (!only) return { rows: [], last: true };
  if (others.length === 0) return only;
  const ends = pages.flatMap((page) => endOf(page) ?? []);
  const rows = pages.flatMap((page) => page.rows).filter((row) => ends.every((end) => inOrder(row, end) <= 0));
  return { rows: rows.sort(inOrder).slice(0, limit), last: ends.length === 0 && rows.length <= limit };
}

/** The next jobs of the line. @param bodies are those of blocks needed? */
function readLine({ sql, blocks }: Ranks, after: number, limit: number, bodies: boolean): Page {
  const inBlocks = pageOf(blocks.line.after(after, bodies), limit);
  const end = endOf(inBlocks)?.key ?? RANK_BIT;
  const where = `key > ? AND key < ? AND state = ${STATE.waiting} AND due_at IS NULL ORDER BY key`;
  const own = readPage(sql, limit, [{ where, bindings: [after, end] }]);
  return merged([inBlocks, own], limit, (a, b) => a.key - b.key);
}

/** The next jobs of the due index at a priority, up to a moment. @param bodies are those of blocks needed? */
function readDue({ sql, blocks }: Ranks, { priority, now, bodies }: Reading, after: Position, limit: number): Page {
  const inBlocks = pageOf(blocks.due.inTurn(priority, after, now, bodies), limit);
  const again = pageOf(blocks.retries.inTurn(priority, after, endOf(inBlocks)?.due_at ?? now), limit);
  const until = endOf(again)?.due_at ?? endOf(inBlocks)?.due_at ?? now;
  // One comparison of the whole position would read all jobs of its millisecond again: there may be very many.
  const sameMoment = [
    {
      where: 'priority = ? AND due_at = ? AND attempt = ? AND key > ? ORDER BY key',
      bindings: [priority, after.at, after.attempt, after.key],
    },
    {
      where: 'priority = ? AND due_at = ? AND attempt > ? ORDER BY attempt, key',
      bindings: [priority, after.at, after.attempt],
    },
  ];
  const own = readPage(sql, limit, [
    ...(after.at > START.at && after.at <= until ? sameMoment : []),
    {
      where: 'priority = ? AND due_at > ? AND due_at <= ? ORDER BY due_at, attempt, key',
      bindings: [priority, after.at, until],
    },
  ]);
  return merged([inBlocks, again, own], limit, (a, b) => compare(positionOf(a), positionOf(b)));
}

/** Position of a row in its part of the due index. */
export function positionOf({ due_at, attempt, key }: Pick<JobRow, 'due_at' | 'attempt' | 'key'>): Position {
  return { at: due_at as number, attempt, key };
}

function lineRank(ranks: Ranks, scan: Scan, bodies: boolean): Rank {
  return new Rank(
    (after, limit) => readLine(ranks, after.key, limit, bodies),
    { ...START, key: scan.line },
    (row) => ({ at: row.enqueued_at, attempt: 0, key: row.key }),
    (position) => {
      scan.line = position.key;
    },
  );
}

function dueRank(ranks: Ranks, scan: Scan, reading: Reading): Rank {
  return new Rank(
    (after, limit) => readDue(ranks, reading, after, limit),
    scan.due.get(reading.priority) ?? START,
    positionOf,
    (position) => scan.due.set(reading.priority, position),
  );
}

/** The ready jobs of one priority in order: those of the due index, merged with the line at the default priority. */
class ReadyJobs implements Stream {
  private readonly due: Rank | undefined;
  private readonly line: Rank | undefined;

  constructor(ranks: Ranks, scan: Scan, reading: Reading) {
    const { priority, bodies } = reading;
    this.due = ranks.priorities.has(priority) ? dueRank(ranks, scan, reading) : undefined;
    this.line = priority === 0 ? lineRank(ranks, scan, bodies) : undefined;
  }

  /** Was a row held back for the consumer? */
  get hasHeld(): boolean {
    return this.due?.held === true || this.line?.held === true;
  }

  peek(pageSize: number): JobRow | undefined {
    const due = this.due?.peek(pageSize);
    const line = this.line?.peek(pageSize);
    return due && (!line || comesFirst(due, line)) ? due : line;
  }

  pass(row: JobRow, verdict: Verdict): boolean {
    return (row.due_at === null ? this.line : this.due)?.pass(row, verdict) === true;
  }
}

/**
 * The next jobs for a consumer, in order: those of the highest priority first. Where the queue says so, groups take
 * turns among the jobs of one priority.
 * @param look looks at each row in turn; called once for each
 * @param limit how many to take at most
 * @param starting jobs by group that another selection has taken, where they get their leases together
 */
export function selectReady(
  ranks: Ranks & {
    gates?: GroupGates;
    leases?: { active: ReadonlyMap<number, unknown> };
    cursors?: { readonly held: number };
  },
  scan: Scan,
  now: number,
  limit: number,
  look: (row: JobRow) => Verdict,
  starting = new Map<string, number>(),
): JobRow[] {
  const selection = new JobSelection(limit, look, starting);
  const { sql, blocks, gates, leases } = ranks;
  // A job that was read ahead may run meanwhile, by another cursor: if it comes back, it is read again.
  const isRunning = (key: number) => leases?.active.has(key) === true;
  const find = (key: number) => (isRunning(key) ? undefined : (blocks.row(key) ?? ownRow(sql, key)));
  const passedOver = () => {
    scan.exact = false;
  };
  scan.emptied = true;
  let isStale = false;
  const priorities = [...new Set([...ranks.priorities, 0])].sort((a, b) => b - a);
  for (const priority of priorities) {
    const ready = new ReadyJobs(ranks, scan, { priority, now, bodies: !gates?.rules });
    const hasHeld = gates?.rules
      ? selectInTurns(
          { gates, blocks, find, isRunning, held: ranks.cursors?.held ?? 0, passedOver },
          scan.turnsAt(priority, gates.rules, gates.holding),
          ready,
          { priority, now },
          selection,
        )
      : selectInOrder(ready, selection);
    scan.emptied &&= !selection.isFull && !hasHeld;
    isStale = scan.rereads(priority);
    if (selection.isFull || isStale) break;
  }
  scan.isCutShort = selection.isCutShort;
  // If only held rows were read, the next selection would read the same again.
  scan.unfinished = isStale || selection.isCutShort || (selection.isFull && !selection.isSated && selection.hasMoved);
  return selection.taken;
}

/** Takes jobs as they come. @returns whether it left something for later */
function selectInOrder(ready: ReadyJobs, selection: JobSelection): boolean {
  while (!selection.isFull) {
    const row = ready.peek(Math.min(Math.max(selection.left, 1) + 4, 128));
    if (!row) break;
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
