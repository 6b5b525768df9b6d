/**
 * The order in which jobs are taken: priority, then the moment of becoming available, then the sequence number.
 *
 * Two places hold waiting jobs. Immediate jobs of default priority are in *the line*: they are taken in key order and
 * have no index entry. All others are in the *due index*, read by one seek per priority. Both merge jobs in blocks with
 * jobs that have rows of their own. At the default priority, line and due index are merged by the moment at which each
 * job became available.
 *
 * A {@link Scan} remembers how far each rank holds nothing more for its consumer. So a claim reads little more than it
 * takes, however many jobs wait, run, or are scheduled. It is memory only: losing it costs reads, never correctness.
 */
import { LIMIT } from '../../durable/sql';
import { RANK_BIT, sequenceOf } from '../../job/ids';
import type { Blocks } from './blocks';
import { ROW_COLUMNS, readRows } from './columns';
import { compare, nextIn, type Position, prioritiesIn, START } from './due-index';
import { type JobRow, STATE } from './job-row';

/** How far one consumer has read each rank. */
export class Scan {
  /** Everything in the line up to this key is taken, or never for this consumer. */
  line = 0;
  /** True while nothing was passed over that another consumer might want. */
  exact = true;
  readonly due = new Map<number, Position>();
  /** The last selection left nothing behind that its consumer wants. */
  emptied = false;
  /** The last selection ended because it had read enough, and moved on: the next one continues there. */
  unfinished = false;

  /** A row enters the due index: it must not be behind the cursor, but nothing before it need be read again. */
  entered(priority: number, position: Position): void {
    const cursor = this.due.get(priority);
    if (cursor && compare(position, cursor) <= 0) this.due.set(priority, { ...position, key: position.key - 1 });
  }

  /** Moves to the position of another scan. */
  copy(other: Scan): void {
    this.line = other.line;
    this.exact = false;
    this.due.clear();
    for (const [priority, position] of other.due) this.due.set(priority, position);
  }

  /** Starts over: after an error, or when what the consumer wants has changed. */
  reset(head = 0): void {
    this.line = head;
    this.exact = true;
    this.due.clear();
  }
}

/** What to do with a row that was read. */
export type Verdict =
  /** Claim it. */
  | 'take'
  /** Never for this consumer while the row stays as it is: running, expired, or of a type that is not pushed. */
  | 'pass'
  /** For this consumer, but not now. */
  | 'hold'
  /** The same, and the selection can end. */
  | 'stop';

/** Characters of job bodies taken at most by one selection, unless one job alone is larger: a message holds 32 MiB. */
const MAX_TAKEN_CHARS = 8 * 1024 * 1024;

/**
 * Bounds what one selection reads, in rows and in characters of bodies, so that jobs it may not take cannot make a
 * claim expensive. A selection that reaches them is {@link Scan.unfinished}.
 */
const MAX_READ = 4096;
const MAX_READ_CHARS = 32 * 1024 * 1024;

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
  blocks: Pick<Blocks, 'line' | 'due'>;
  /** Priorities that may have rows in the due index. */
  priorities: Set<number>;
}

/** Priorities present in the due index: one seek each. */
export function readPriorities({ sql, blocks }: Omit<Ranks, 'priorities'>): Set<number> {
  return new Set([...blocks.due.priorities(), ...prioritiesIn(sql, 'jobs')]);
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

/** Jobs in blocks, merged with those that have rows of their own. @param inOrder compares rows by their rank's order */
function merged(inBlocks: Page, own: Page, limit: number, inOrder: (a: JobRow, b: JobRow) => number): Page {
  if (own.last && own.rows.length === 0) return inBlocks;
  const ends = [endOf(inBlocks), endOf(own)].filter((end) => end !== undefined);
  const rows = [...inBlocks.rows, ...own.rows].filter((row) => ends.every((end) => inOrder(row, end) <= 0));
  return { rows: rows.sort(inOrder).slice(0, limit), last: ends.length === 0 && rows.length <= limit };
}

/** The next jobs of the line. */
function readLine({ sql, blocks }: Ranks, after: number, limit: number): Page {
  const inBlocks = pageOf(blocks.line.after(after), limit);
  const end = endOf(inBlocks)?.key ?? RANK_BIT;
  const where = `key > ? AND key < ? AND state = ${STATE.waiting} AND due_at IS NULL ORDER BY key`;
  const own = readPage(sql, limit, [{ where, bindings: [after, end] }]);
  return merged(inBlocks, own, limit, (a, b) => a.key - b.key);
}

/** The next jobs of the due index at a priority, up to a moment. */
function readDue({ sql, blocks }: Ranks, priority: number, after: Position, now: number, limit: number): Page {
  const inBlocks = pageOf(blocks.due.inTurn(priority, after, now), limit);
  const until = endOf(inBlocks)?.due_at ?? now;
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
  return merged(inBlocks, own, limit, (a, b) => compare(positionOf(a), positionOf(b)));
}

/** Position of a row in its part of the due index. */
export function positionOf({ due_at, attempt, key }: Pick<JobRow, 'due_at' | 'attempt' | 'key'>): Position {
  return { at: due_at as number, attempt, key };
}

function lineRank(ranks: Ranks, scan: Scan): Rank {
  return new Rank(
    (after, limit) => readLine(ranks, after.key, limit),
    { ...START, key: scan.line },
    (row) => ({ at: row.enqueued_at, attempt: 0, key: row.key }),
    (position) => {
      scan.line = position.key;
    },
  );
}

function dueRank(ranks: Ranks, scan: Scan, priority: number, now: number): Rank {
  return new Rank(
    (after, limit) => readDue(ranks, priority, after, now, limit),
    scan.due.get(priority) ?? START,
    positionOf,
    (position) => scan.due.set(priority, position),
  );
}

/**
 * The next jobs for a consumer, in order.
 * @param look looks at each row in turn; called once for each
 * @param limit how many to take at most
 */
export function selectReady(
  ranks: Ranks,
  scan: Scan,
  now: number,
  limit: number,
  look: (row: JobRow) => Verdict,
): JobRow[] {
  const taken: JobRow[] = [];
  let read = 0;
  let readChars = 0;
  let chars = 0;
  let stopped = false;
  let moved = false;
  const pageSize = () => Math.min(Math.max(limit - taken.length, 1) + 4, 128);
  const visit = (rank: Rank, row: JobRow): void => {
    const verdict = look(row);
    read++;
    readChars += row.body.length;
    if (rank.pass(row, verdict)) moved = true;
    stopped = verdict === 'stop';
    if (verdict !== 'take') return;
    taken.push(row);
    chars += row.body.length;
  };
  const sated = () => stopped || taken.length >= limit || chars >= MAX_TAKEN_CHARS;
  const full = () => sated() || read >= MAX_READ || readChars >= MAX_READ_CHARS;
  scan.emptied = true;
  const priorities = [...new Set([...ranks.priorities, 0])].sort((a, b) => b - a);
  for (const priority of priorities) {
    const due = ranks.priorities.has(priority) ? dueRank(ranks, scan, priority, now) : undefined;
    const line = priority === 0 ? lineRank(ranks, scan) : undefined;
    while (!full()) {
      const fromDue = due?.peek(pageSize());
      const fromLine = line?.peek(pageSize());
      if (fromDue && (!fromLine || comesFirst(fromDue, fromLine))) visit(due as Rank, fromDue);
      else if (fromLine) visit(line as Rank, fromLine);
      else break;
    }
    scan.emptied &&= !full() && !due?.held && !line?.held;
    if (full()) break;
  }
  // If only held rows were read, the next selection would read the same again.
  scan.unfinished = full() && !sated() && moved;
  return taken;
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
  return next < Number.POSITIVE_INFINITY ? next : undefined;
}
