/**
 * The order in which jobs are taken: priority, then the moment of becoming available, then the sequence number.
 *
 * Two places hold waiting jobs. Immediate jobs of default priority stand in *the line*: they are taken in key order and
 * have no index entry; most of them are in blocks, a few have rows of their own. All others stand in the *due index*, read by one seek per priority. At the default priority the
 * two are merged by the moment at which each job became available.
 *
 * A {@link Scan} remembers how far each lane holds nothing more for its consumer, so that a claim reads what it takes and
 * little else, however many jobs wait, run, or are scheduled for later. It is memory only: losing it costs reads, never
 * correctness.
 */
import { LANE_BIT, sequenceOf } from '../../job/ids';
import { type JobRow, ROW_COLUMNS, readRows, STATE } from './columns';

/** Where a row stands in its part of the due index. */
export interface Position {
  at: number;
  attempt: number;
  key: number;
}

/** Before every position. */
export const START: Position = { at: Number.MIN_SAFE_INTEGER, attempt: -1, key: -1 };

/** Which of two positions of the due index comes first? Below zero: the first one. */
export function compare(a: Position, b: Position): number {
  return a.at - b.at || a.attempt - b.attempt || a.key - b.key;
}

/** How far one consumer has read each lane. */
export class Scan {
  /** Everything in the line up to this key is taken, or never for this consumer. */
  line = 0;
  /** True while nothing was passed over that another consumer might want. */
  exact = true;
  readonly due = new Map<number, Position>();
  /** The last selection left nothing behind that its consumer wants. */
  emptied = false;
  /** The last selection ended because it had read enough, and came further: the next one goes on from there. */
  unfinished = false;

  /** A row was put into the due index: it must not lie behind the cursor, and what lies before it need not be read again. */
  entered(priority: number, position: Position): void {
    const cursor = this.due.get(priority);
    if (cursor && compare(position, cursor) <= 0) this.due.set(priority, { ...position, key: position.key - 1 });
  }

  /** Goes to where another one stands. */
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
  /** Never for this consumer as the row stands: running, expired, or of a type that is not pushed. */
  | 'pass'
  /** For this consumer, but not now. */
  | 'hold'
  /** The same, and it need not see more. */
  | 'stop';

/** Characters of job bodies taken at most by one selection, unless one job alone is larger: a message holds 32 MiB. */
const MAX_TAKEN_CHARS = 8 * 1024 * 1024;

/**
 * What one selection reads at most, in rows and in characters of job bodies, so that jobs which it may not take cannot
 * make a claim expensive. A selection that ends so is {@link Scan.unfinished}.
 */
const MAX_READ = 4096;
const MAX_READ_CHARS = 32 * 1024 * 1024;

/** Rows of a lane in order, and whether nothing follows them. */
interface Page {
  rows: JobRow[];
  last: boolean;
}

/** One lane being read in order, a page at a time. */
class Lane {
  private page: JobRow[] = [];
  private next = 0;
  private exhausted = false;
  /** It held something back for its consumer. */
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

export interface Lanes {
  sql: SqlStorage;
  blocks: { after(key: number, bodies?: boolean): Iterable<JobRow> };
  /** Priorities that may have rows in the due index. */
  priorities: Set<number>;
}

/** Priorities present in the due index: one seek each. */
export function readPriorities(sql: SqlStorage): Set<number> {
  const found = new Set<number>();
  let below: number | null = 1000;
  while (below !== null) {
    const row: { p: number | null } = sql
      .exec<{ p: number | null }>(
        'SELECT max(priority) AS p FROM jobs WHERE due_at IS NOT NULL AND priority < ?',
        below,
      )
      .one();
    below = row.p;
    if (below !== null) found.add(below);
  }
  return found;
}

/** Reads rows by one seek after the other until there are `limit`, or more of their bodies than one claim may take. */
function readPage(sql: SqlStorage, limit: number, seeks: { where: string; bindings: number[] }[]): Page {
  const rows: JobRow[] = [];
  let chars = 0;
  for (const { where, bindings } of seeks) {
    const query = `SELECT ${ROW_COLUMNS} FROM jobs WHERE ${where} LIMIT ?`;
    for (const row of readRows(sql, query, ...bindings, limit - rows.length)) {
      rows.push(row);
      chars += row.body.length;
      if (chars >= MAX_TAKEN_CHARS) return { rows, last: false };
    }
    if (rows.length === limit) return { rows, last: false };
  }
  return { rows, last: true };
}

/** The next jobs of the line: those in blocks, and between them those with rows of their own. */
function readLine({ sql, blocks }: Lanes, after: number, limit: number): Page {
  const rows: JobRow[] = [];
  let chars = 0;
  for (const row of blocks.after(after)) {
    rows.push(row);
    chars += row.body.length;
    if (rows.length === limit || chars >= MAX_TAKEN_CHARS) break;
  }
  const isFull = rows.length === limit || chars >= MAX_TAKEN_CHARS;
  const end = isFull ? (rows.at(-1) as JobRow).key : LANE_BIT;
  const own = readPage(sql, limit, [
    {
      where: `key > ? AND key < ? AND state = ${STATE.waiting} AND due_at IS NULL ORDER BY key`,
      bindings: [after, end],
    },
  ]);
  if (own.rows.length === 0) return { rows, last: !isFull };
  const bound = own.last ? end : (own.rows.at(-1) as JobRow).key;
  const all = [...own.rows, ...rows.filter(({ key }) => key <= bound)].sort((a, b) => a.key - b.key);
  return { rows: all.slice(0, limit), last: own.last && !isFull && all.length <= limit };
}

function lineLane(lanes: Lanes, scan: Scan): Lane {
  return new Lane(
    (after, limit) => readLine(lanes, after.key, limit),
    { ...START, key: scan.line },
    (row) => ({ at: row.enqueued_at, attempt: 0, key: row.key }),
    (position) => {
      scan.line = position.key;
    },
  );
}

function dueLane(lanes: Lanes, scan: Scan, priority: number, now: number): Lane {
  return new Lane(
    (after, limit) => {
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
      return readPage(lanes.sql, limit, [
        ...(after.at > START.at && after.at <= now ? sameMoment : []),
        {
          where: 'priority = ? AND due_at > ? AND due_at <= ? ORDER BY due_at, attempt, key',
          bindings: [priority, after.at, now],
        },
      ]);
    },
    scan.due.get(priority) ?? START,
    (row) => ({ at: row.due_at as number, attempt: row.attempt, key: row.key }),
    (position) => scan.due.set(priority, position),
  );
}

/**
 * The next jobs for a consumer, in order.
 * @param look looks at each row in turn; called once for each
 * @param limit how many to take at most
 */
export function selectReady(
  lanes: Lanes,
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
  const visit = (lane: Lane, row: JobRow): void => {
    const verdict = look(row);
    read++;
    readChars += row.body.length;
    if (lane.pass(row, verdict)) moved = true;
    stopped = verdict === 'stop';
    if (verdict !== 'take') return;
    taken.push(row);
    chars += row.body.length;
  };
  const sated = () => stopped || taken.length >= limit || chars >= MAX_TAKEN_CHARS;
  const full = () => sated() || read >= MAX_READ || readChars >= MAX_READ_CHARS;
  scan.emptied = true;
  const priorities = [...new Set([...lanes.priorities, 0])].sort((a, b) => b - a);
  for (const priority of priorities) {
    const due = lanes.priorities.has(priority) ? dueLane(lanes, scan, priority, now) : undefined;
    const line = priority === 0 ? lineLane(lanes, scan) : undefined;
    while (!full()) {
      const fromDue = due?.peek(pageSize());
      const fromLine = line?.peek(pageSize());
      if (fromDue && (!fromLine || comesFirst(fromDue, fromLine))) visit(due as Lane, fromDue);
      else if (fromLine) visit(line as Lane, fromLine);
      else break;
    }
    scan.emptied &&= !full() && !due?.held && !line?.held;
    if (full()) break;
  }
  // Where nothing but held rows was read, the next selection would read the same again.
  scan.unfinished = full() && !sated() && moved;
  return taken;
}

/** Did the job of the due index become available before the job in the line? */
export function comesFirst(due: Pick<JobRow, 'due_at' | 'key'>, line: Pick<JobRow, 'enqueued_at' | 'key'>): boolean {
  const difference = (due.due_at as number) - line.enqueued_at;
  return difference < 0 || (difference === 0 && sequenceOf(due.key) < sequenceOf(line.key));
}

/** The first moment after `now` at which a job of the due index becomes available, or undefined. */
export function nextDue(lanes: Lanes, now: number): number | undefined {
  let next: number | undefined;
  for (const priority of lanes.priorities) {
    const row = lanes.sql
      .exec<{ due_at: number }>(
        'SELECT due_at FROM jobs WHERE priority = ? AND due_at > ? ORDER BY due_at LIMIT 1',
        priority,
        now,
      )
      .toArray()[0];
    if (row && (next === undefined || row.due_at < next)) next = row.due_at;
  }
  return next;
}
