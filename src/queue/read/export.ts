/**
 * A queue as lines of a file, in sequence order. A job keeps its number for life, so whatever moves between pages,
 * each is in at most one page, and missing only when gone.
 */
import type { StoredJob, StoredState } from '../../export/stored-job';
import { MAX_SHOWN_DEPTH, nestingDepth, shown } from '../../job/envelope/nesting';
import { conflict } from '../../job/errors';
import { sequenceOf } from '../../job/ids';
import { own } from '../../job/own';
import { JOB_STATES, type JobState } from '../../job/states';
import type { ExportPage, ExportRequest, ExportStart } from '../../rpc/export';
import { modeOf } from '../../settings';
import { archivedAfter, farResult } from '../store/archive';
import { SHARE } from '../store/batches';
import { type JobRow, readableBody, STATE } from '../store/job-row';
import type { Named, Stored, StoredQueue } from '../store/parts';
import { rowByKey, withRows } from '../store/row-lookup';
import { type ArchivedJob, idOf, idOfArchived } from '../store/rows';
import { scan } from './scan';

/** Jobs of a page at most, those looked at for it, and characters of its lines unless a single one is longer. */
const PAGE_JOBS = 5_000;
const PAGE_BUDGET = 20_000;
const PAGE_CHARS = 1024 * 1024;

const ROWS = 100;

/** @throws {ApiError} 409 while the queue is being deleted */
export function beginExport(q: StoredQueue): ExportStart {
  if (q.config.removal) {
    throw conflict(`Queue ${q.name} is being deleted.`, { queue: q.name, current_state: 'deleting' });
  }
  const { store, config } = q;
  const undecided = store.outbox.has(SHARE) ? store.outbox.count(SHARE) : 0;
  const { own, groupOverrides: groups } = config;
  return { until: store.nextSequence - 1, config: own, mode: modeOf(config), groups, undecided };
}

const OPEN: readonly JobState[] = JOB_STATES.filter((state) => state !== 'completed' && state !== 'cancelled');
const ALL_BUT_COMPLETED: readonly JobState[] = JOB_STATES.filter((state) => state !== 'completed');

export function exportPage(
  q: StoredQueue,
  { after, until, ended, limit = PAGE_JOBS }: ExportRequest,
  now: number,
): ExportPage {
  const filter = { states: [...(ended ? ALL_BUT_COMPLETED : OPEN)] };
  const keys: number[] = [];
  const request = { filter, from: after, ascending: true, limit: Math.min(limit, PAGE_JOBS), budget: PAGE_BUDGET };
  const { next = until } = scan(q, request, now, ({ key }) => keys.push(key));
  const archived = ended ? archivedAfter(q.store.sql, after, Math.min(next, until), PAGE_CHARS) : undefined;
  const top = Math.min(next, until, archived?.until ?? until);
  const page = new Page(top);
  page.leaveOut('damaged', archived?.damaged ?? 0);
  const stored = keys.filter((key) => sequenceOf(key) <= top);
  const entries = merged(stored, archived?.jobs ?? []);
  for (let from = 0; from < entries.length && !page.isFull; from += ROWS) {
    const part = entries.slice(from, from + ROWS);
    const own = part.flatMap((entry) => (typeof entry === 'number' ? [entry] : []));
    withRows(q.store, own, () => {
      for (const entry of part) {
        if (page.isFull) return;
        if (typeof entry === 'number') addRow(q, page, entry, ended);
        else addArchived(q, page, entry);
      }
    });
  }
  const { lines, jobs, not_kept, position } = page;
  return { lines: lines.join(''), jobs, not_kept, ...(position < until && { next: position }) };
}

function merged(keys: readonly number[], archived: readonly ArchivedJob[]): (number | ArchivedJob)[] {
  if (archived.length === 0) return [...keys];
  const numberOf = (entry: number | ArchivedJob) => sequenceOf(typeof entry === 'number' ? entry : entry.k);
  return [...keys, ...archived].sort((a, b) => numberOf(a) - numberOf(b));
}

class Page {
  readonly lines: string[] = [];
  readonly jobs: ExportPage['jobs'] = {};
  readonly not_kept: ExportPage['not_kept'] = {};
  private chars = 0;
  private last = 0;

  /** @param top everything up to this number is in the page, unless it becomes full */
  constructor(private readonly top: number) {}

  get isFull(): boolean {
    return this.chars >= PAGE_CHARS;
  }

  get position(): number {
    return this.isFull ? this.last : this.top;
  }

  /** The next job. @param texts members that are JSON already; of these the body is the last one */
  add(key: number, job: Omit<StoredJob, 'body' | 'history' | 'checkpoint' | 'run'>, texts: Texts): void {
    const { body, ...others } = texts;
    const members = Object.entries({ ...others, body: this.bodyOf(body) });
    const written = members.flatMap(([name, text]) => (text === undefined ? [] : [`"${name}":${this.cut(text)}`]));
    const line = `{"job":${JSON.stringify(job).slice(0, -1)},${written.join(',')}}}\n`;
    this.lines.push(line);
    this.chars += line.length;
    this.jobs[job.state] = (this.jobs[job.state] ?? 0) + 1;
    this.passed(key);
  }

  passed(key: number): void {
    this.last = sequenceOf(key);
  }

  leaveOut(what: string, count = 1): void {
    if (count > 0) this.not_kept[what] = (own(this.not_kept, what) ?? 0) + count;
  }

  textOf(value: unknown): string {
    const kept = shown(value);
    if (kept !== value) this.leaveOut('too_deep');
    return JSON.stringify(kept);
  }

  private cut(text: string): string {
    return nestingDepth(text, MAX_SHOWN_DEPTH) <= MAX_SHOWN_DEPTH ? text : this.textOf(JSON.parse(text));
  }

  /** A workflow stays where it is: its job becomes one of its own. */
  private bodyOf(text: string): string {
    const body = text.includes('"workflow":') ? readableBody({ body: text }) : undefined;
    if (!body?.workflow) return text;
    this.leaveOut('workflow');
    const { workflow: _, ...rest } = body;
    return JSON.stringify(rest);
  }
}

type Texts = Partial<Record<'history' | 'checkpoint' | 'run', string | undefined>> & { body: string };

const STATES: Readonly<Record<number, StoredState>> = {
  [STATE.waiting]: 'waiting',
  [STATE.pending]: 'pending',
  [STATE.cancelled]: 'cancelled',
  [STATE.discarded]: 'discarded',
  [STATE.dead]: 'dead',
};

function addRow(q: Named & Stored, page: Page, key: number, ended: boolean): void {
  const found = rowByKey(q.store, key);
  const row = found && q.store.locks.seen(found);
  const state = row && STATES[row.state];
  page.passed(key);
  if (!row || state === undefined || (state === 'discarded' && !ended)) return;
  if (!readableBody(row)) {
    page.leaveOut('damaged');
    return;
  }
  const active = q.store.leases.active.get(key);
  const { type, priority, attempt, created_at, enqueued_at } = row;
  const job = {
    ...{ id: idOf(q.route, row), type, state, priority, attempt, claims: active?.claim ?? row.claims },
    ...{ created_at, enqueued_at },
    ...(row.due_at !== null && { due_at: row.due_at }),
    ...(row.expires_at !== null && { expires_at: row.expires_at }),
    ...(row.ended_at !== null && { ended_at: row.ended_at }),
    ...(row.holds_group !== null && q.store.gates.isStrict && { holds: true as const }),
  };
  page.add(key, job, { history: historyText(row), checkpoint: checkpointText(q, key), body: row.body });
}

/** A history that cannot be read counts as none. */
const historyText = ({ history }: JobRow): string | undefined =>
  history !== null && readableBody({ body: history }) ? history : undefined;

function checkpointText(q: Stored, key: number): string | undefined {
  const checkpoint = q.store.checkpoints.copy(key);
  if (!checkpoint) return undefined;
  const { content, ...others } = checkpoint;
  return `${JSON.stringify(others).slice(0, -1)},"content":${content}}`;
}

function addArchived(q: Named & Stored, page: Page, stored: ArchivedJob): void {
  const { k, t: type, p: priority, n: attempt, c: claims, at, f, e: errors, push, w, g, pg, l: log } = stored;
  const [created_at, enqueued_at, started_at, ended_at] = at;
  const job = {
    ...{ id: idOfArchived(q.route, stored), type, state: 'completed' as const, priority, attempt, claims },
    ...{ created_at, enqueued_at, ended_at },
  };
  const history = { first_started_at: f, errors, log };
  const result = farResult(q.store.sql, stored) ?? ('r' in stored ? page.textOf(stored.r) : undefined);
  const run = page.textOf({ started_at, timeout_ms: push, worker_id: w, target: g, progress: pg });
  page.add(k, job, {
    history: Object.values(history).some((value) => value !== undefined) ? page.textOf(history) : undefined,
    checkpoint: stored.cp ? checkpointText(q, k) : undefined,
    run: result === undefined ? run : `${run.slice(0, -1)},"result":${result}}`,
    body: page.textOf(stored.b),
  });
}
