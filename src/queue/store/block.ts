/**
 * One block: jobs with the same place, in one row. `data` is a JSON array with an entry for each sequence number, so
 * that SQLite finds a job by position; `0`: no job of this block:
 *
 *     [[1700000000000,{"type":"email.send",…}],0,[1700000000000,{…},"an id that its producer chose"]]
 *
 * An entry is creation time, body, chosen id. `heads` suffices to cut out a body: types, moments, lengths of bodies:
 *
 *     [["email.send",1700000000000,57,-1,61,"an id that its producer chose"]]
 *
 * Negative: that many numbers without a job; text: the id of the job before. `["acme"]`: group of the following jobs,
 * `[]`: none; `["acme","mail"]` adds their limit key, `[null,"mail"]` has it alone.
 */
import type { Fragment } from '../../durable/sql';
import { grouped } from '../../job/size';
import { type JobRow, STATE } from './job-row';

/** Characters of a block at most, unless a single job is larger. A row holds 2 MB, a character up to three bytes. */
const MAX_CHARS = 256 * 1024;

/** Sequence numbers that a block spans at most, and the longest run of them that may belong to none of its jobs. */
const MAX_SPAN = 4096;
export const MAX_GAP = 16;

/** Characters that may join the newest block, or be joined. Each join rewrites it, so it should fit one SQLite page. */
export const MAX_JOINING = 4 * 1024;
const MAX_JOINED = 3_400;

export interface BlockPlace {
  priority: number;
  /** When they become available, epoch ms; null: they are in the line. */
  due_at: number | null;
}

export interface BlockJob extends BlockPlace, Pick<JobRow, 'key' | 'type' | 'body' | 'alias' | 'group'> {
  /** When it was made, epoch ms. */
  at: number;
  limit_key?: string | null;
}

/** A row of `blocks` or `due_blocks` without its data. */
export type BlockRow = { first: number; span: number; gone: string | null; heads: string } & Partial<BlockPlace>;

export interface NewBlock extends BlockPlace {
  first: number;
  span: number;
  jobs: number;
  heads: string;
  data: string;
}

/** Columns in which such jobs differ. */
const GIVEN = [
  'key',
  'alias',
  'type',
  'created_at',
  'enqueued_at',
  'priority',
  'due_at',
  'attempt',
  'claims',
  'history',
  'body',
] as const;

/** Jobs of blocks as a table like `jobs`, for the same conditions. Pass few: a value holds 2 MB. */
export function asTable(rows: readonly JobRow[]): Fragment {
  const given = rows.map((row) => GIVEN.map((column) => row[column] ?? ''));
  const [only] = given;
  const source =
    given.length === 1
      ? `SELECT ${GIVEN.map((column) => `? AS ${column}`).join(', ')}`
      : `SELECT ${GIVEN.map((column, at) => `value ->> '$[${at}]' AS ${column}`).join(', ')} FROM json_each(?)`;
  const sql = `(SELECT key, nullif(alias, '') AS alias, ${STATE.waiting} AS state, type, priority,
    nullif(due_at, '') AS due_at, attempt, claims, created_at, enqueued_at, NULL AS expires_at, NULL AS ended_at,
    body, nullif(history, '') AS history, NULL AS limit_key, NULL AS holds_group,
    NULL AS keep_until FROM (${source}))`;
  return { sql, bindings: only && given.length === 1 ? only : [JSON.stringify(given)] };
}

export function rowOf({ key, type, at, body, alias, priority, due_at, group, limit_key = null }: BlockJob): JobRow {
  const row: JobRow = {
    key,
    alias,
    state: STATE.waiting,
    type,
    priority,
    due_at,
    attempt: 0,
    claims: 0,
    created_at: at,
    enqueued_at: at,
    expires_at: null,
    ended_at: null,
    body,
    history: null,
    limit_key,
    holds_group: null,
  };
  if (group !== undefined) row.group = group;
  return row;
}

/** The type of a job whose block cannot be read. It becomes a dead letter when its turn comes. */
const UNREADABLE = 'unreadable';

/** Whose the next jobs are, and the key that limits them. */
type Owner = [group?: string | null, key?: string];

type Group = [type: string, at: number, ...rest: (number | string | Owner)[]];

const ownerOf = ({ group, limit_key }: Pick<BlockJob, 'group' | 'limit_key'>): Owner =>
  limit_key ? [group ?? null, limit_key] : group === undefined ? [] : [group];

/** The text of jobs in key order, without the outer brackets. @param start the first sequence number */
export function encode(jobs: readonly BlockJob[], start: number): { heads: string; data: string } {
  const groups: Group[] = [];
  const entries: string[] = [];
  let group: Group | undefined;
  let owner: Owner = [];
  let next = start;
  for (const job of jobs) {
    const { key, type, at, body, alias } = job;
    if (group?.[0] !== type || group[1] !== at) {
      group = [type, at];
      groups.push(group);
      owner = [];
    }
    if (key > next) group.push(next - key);
    for (; next < key; next++) entries.push('0');
    next++;
    const whose = ownerOf(job);
    if (whose[0] !== owner[0] || whose[1] !== owner[1]) group.push(whose);
    owner = whose;
    group.push(body.length);
    if (alias === null) entries.push(`[${at},${body}]`);
    else {
      group.push(alias);
      entries.push(`[${at},${body},${JSON.stringify(alias)}]`);
    }
  }
  return { heads: JSON.stringify(groups).slice(1, -1), data: entries.join(',') };
}

/** Jobs in the order of their keys, in parts of one block each. All jobs of a part have the same place. */
export const parted = (jobs: readonly BlockJob[]): Iterable<readonly [BlockJob, ...BlockJob[]]> =>
  grouped(
    jobs,
    ({ body }) => body.length,
    MAX_CHARS,
    MAX_SPAN,
    (part, { key, due_at, priority }) => {
      const [first] = part;
      const { key: before } = part.at(-1) as BlockJob;
      const isNear = key - before <= MAX_GAP && key - first.key < MAX_SPAN;
      return isNear && due_at === first.due_at && priority === first.priority;
    },
  );

/** Approximate memory of a block, a job of it, and the group of consecutive jobs, bytes. */
const BLOCK_BYTES = 1024;
const ENTRY_BYTES = 56;
const OWNER_BYTES = 40;

export class Block {
  readonly first: number;
  readonly place: BlockPlace;
  span = 0;
  /** Jobs in it that are not over: they wait or run, and have no row of their own. */
  left = 0;
  /** Offsets of jobs of which no other trace is left. */
  readonly gone = new Set<number>();
  chars = 1;
  /** Its data, once a body was asked for. */
  data: string | undefined;
  /** Is the data known to take a byte in memory for each character, not two? */
  isAscii = false;
  isUnreadable = false;

  private readonly types: string[] = [];
  private readonly moments: number[] = [];
  private readonly starts: number[] = [];
  /** Of the bodies; 0 where there is no job. */
  private readonly lengths: number[] = [];
  private readonly live: boolean[] = [];
  private readonly aliases = new Map<number, string>();
  /** Whose jobs are that have a group or a key, by offset, and how many times another one follows. */
  private readonly owners: (Owner | undefined)[] = [];
  private ownerChanges = 0;

  constructor({ first, span, gone, heads, priority = 0, due_at = null }: BlockRow) {
    this.first = first;
    this.place = { priority, due_at };
    try {
      this.read(heads);
      if (this.span !== span) throw new Error('It spans other numbers than it should.');
    } catch {
      this.setUnreadable(span);
    }
    for (const offset of numbersIn(gone)) this.vanish(first + offset);
  }

  /** Bytes in memory without its data, about. */
  get headBytes(): number {
    return BLOCK_BYTES + ENTRY_BYTES * this.span + OWNER_BYTES * this.ownerChanges;
  }

  /** Bytes of its data in memory, at most. */
  get dataBytes(): number {
    return (this.isAscii ? 1 : 2) * (this.data?.length ?? 0);
  }

  get end(): number {
    return this.first + this.span;
  }

  spans(key: number): boolean {
    return key >= this.first && key < this.end;
  }

  holds(key: number): boolean {
    return this.live[key - this.first] === true;
  }

  had(key: number): boolean {
    return (this.lengths[key - this.first] ?? 0) !== 0;
  }

  /** The job is over, or has a row of its own. */
  over(key: number): void {
    if (!this.holds(key)) return;
    this.live[key - this.first] = false;
    this.left--;
  }

  /** The job is over, and no other table shows it. @returns whether that is new */
  vanish(key: number): boolean {
    const offset = key - this.first;
    if (!this.had(key) || this.gone.has(offset)) return false;
    this.over(key);
    this.gone.add(offset);
    return true;
  }

  isJoinedBy(jobs: readonly BlockJob[]): boolean {
    const gap = (jobs[0] as BlockJob).key - this.end;
    const chars = jobs.reduce((sum, { body }) => sum + body.length, 0);
    const fits = chars <= MAX_JOINING && this.chars + chars <= MAX_JOINED && this.span + gap + jobs.length <= MAX_SPAN;
    return fits && gap >= 0 && gap <= MAX_GAP && !this.isUnreadable;
  }

  /** Jobs have joined. @param heads as {@link encode} gives them, with brackets */
  append(heads: string, data: string): void {
    this.read(heads);
    if (this.data === undefined) return;
    this.data = `${this.data.slice(0, -1)},${data}]`;
    this.isAscii = false;
  }

  /** Keys of the jobs that are not over, from `from` on. */
  *keys(from = this.first): Generator<number> {
    for (let offset = Math.max(0, from - this.first); offset < this.span; offset++) {
      if (this.live[offset]) yield this.first + offset;
    }
  }

  /** The job as a row. @param body is it needed? Then the data must have been read */
  row(key: number, body = true): JobRow {
    const offset = key - this.first;
    const at = this.moments[offset] as number;
    const start = this.starts[offset] as number;
    const { priority, due_at } = this.place;
    const [group, limit_key] = this.owners[offset] ?? [];
    return rowOf({
      key,
      type: this.types[offset] as string,
      at,
      body: this.isUnreadable || !body ? '' : (this.data ?? '').slice(start, start + (this.lengths[offset] as number)),
      alias: this.aliases.get(offset) ?? null,
      priority,
      due_at,
      limit_key: limit_key ?? null,
      ...(typeof group === 'string' && { group }),
    });
  }

  private read(heads: string): void {
    const groups = JSON.parse(heads) as Group[];
    // Where the next entry begins: after the bracket, or after the comma behind the entry before it.
    let position = this.span === 0 ? 1 : this.chars;
    for (const [type, at, ...rest] of groups) {
      const before = `[${at},`.length;
      let owner: Owner | undefined;
      for (const part of rest) {
        if (typeof part === 'object') {
          owner = part.length > 0 ? part : undefined;
          this.ownerChanges++;
        } else if (typeof part === 'string') {
          this.aliases.set(this.span - 1, part);
          position += JSON.stringify(part).length + 1;
        } else if (part > 0) {
          if (owner !== undefined) this.owners[this.span] = owner;
          this.add(type, at, position + before, part);
          position += before + part + 2;
        } else {
          for (let n = 0; n > part; n--) this.add('', 0, position, 0);
          position += -2 * part;
        }
      }
    }
    this.chars = position;
  }

  private add(type: string, at: number, start: number, length: number): void {
    this.types.push(type);
    this.moments.push(at);
    this.starts.push(start);
    this.lengths.push(length);
    this.live.push(length > 0);
    this.span++;
    if (length > 0) this.left++;
  }

  private setUnreadable(span: number): void {
    this.isUnreadable = true;
    for (const list of [this.types, this.moments, this.starts, this.lengths, this.live]) list.length = 0;
    this.aliases.clear();
    this.owners.length = 0;
    this.ownerChanges = 0;
    this.span = 0;
    this.left = 0;
    for (let n = 0; n < span; n++) this.add(UNREADABLE, 0, 0, 1);
  }
}

/** What a column `gone` lists. Of a damaged text, what can be read: these jobs must not come back. */
export const numbersIn = (gone: string | null): number[] => gone?.match(/\d+/g)?.map(Number) ?? [];

/** Where else jobs of a block may be by now. */
export interface Elsewhere {
  /** Keys of jobs that complete in the running transaction, and of those from one to another in retry blocks. */
  keys(from?: number, end?: number): Iterable<number>;
  /** No job with a higher sequence number has completed and is kept. */
  archivedUntil(): number;
}

export const ALL_BLOCKS = { sql: '1', bindings: [] };
