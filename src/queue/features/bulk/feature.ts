/**
 * Operations on all jobs that match a filter, which outlive their request, in steps of one transaction, which also
 * records the progress in `tasks`: the outbox relay resumes it where it stopped, and it counts no job twice. Later jobs
 * are not part of it.
 */

import { recallAnswer, rememberAnswer } from '../../../durable/inbox';
import { STANDBY_MS } from '../../../durable/outbox';
import { derived, type MessageKind } from '../../../durable/outbox-relay';
import { column, put, rows } from '../../../durable/sql';
import { waitAtMost } from '../../../durable/wait';
import { looksInside, madeUntil, tooManyLookedAt, tooManyMatches } from '../../../job/filter';
import { removalMoment } from '../../../job/retention';
import { refuseLockedItems } from '../../../job/undecided';
import {
  ACTS_ON,
  type BulkAction,
  type BulkAnswer,
  type BulkItem,
  MAX_ERRORS,
  MAX_ITEMS,
  type MatchingRequest,
  type OperationRequest,
  type OperationView,
} from '../../../rpc/operations';
import type { Feature, Host } from '../../feature';
import { act, actOnKey, checkItem } from '../../jobs/bulk-act';
import { type Hit, scan } from '../../read/scan';
import { deleteArchived, pruneArchive } from '../../store/archive';
import type { Named, QueueParts, Stored, StoredQueue, Woken } from '../../store/parts';
import { rowByKey } from '../../store/row-lookup';
import { type ArchivedJob, idOf, idOfArchived } from '../../store/rows';

export class BulkOperations implements Feature {
  /** The next step of the oldest operation, derived from its record. */
  readonly messages: readonly MessageKind[];
  private readonly waiting = new Set<{ id: string; done: () => void }>();
  private open: string[];

  constructor(private readonly host: Host) {
    this.open = column(host.q.store.sql, 'SELECT id FROM tasks WHERE done_at IS NULL');
    const steps = derived({
      kind: 'step of operation',
      open: () => this.open.slice(0, 1),
      deliver: (id) => this.step(id),
    });
    this.messages = [steps];
  }

  due(): number | undefined {
    const first = oldestTask(this.host.q);
    return first === undefined ? undefined : removalMoment(first, REMEMBER_MS);
  }

  tidy(now: number): void {
    forgetTasks(this.host.q, now);
  }

  began(id: string): void {
    const { wakeAt, now, relay } = this.host;
    if (!this.open.includes(id)) this.open.push(id);
    wakeAt(now() + STANDBY_MS);
    relay().start();
  }

  /** The operation, at its end or after `waitMs`. */
  async view(id: string, waitMs: number, withItems = false): Promise<OperationView | undefined> {
    const { q } = this.host;
    const first = viewTask(q, id, withItems);
    if (!first || first.done || waitMs <= 0) return first;
    const ended = new Promise<void>((resolve) => this.waiting.add({ id, done: resolve }));
    await waitAtMost(this.host.after, waitMs, ended);
    return viewTask(q, id, withItems);
  }

  private async step(id: string): Promise<void> {
    const { q, write } = this.host;
    let done: boolean;
    try {
      done = await write((now) => stepTask(q, id, now));
    } catch (error) {
      done = await write((now) => noteFailure(q, id, now));
      if (!done) throw error;
    }
    if (done) this.finished(id);
    // Requests that came meanwhile go first.
    else await scheduler.wait(0);
  }

  finished(id: string): void {
    this.open = this.open.filter((other) => other !== id);
    for (const entry of this.waiting) {
      if (entry.id !== id) continue;
      this.waiting.delete(entry);
      entry.done();
    }
  }
}

/** Jobs looked at in one step, for each that it may change. */
const LOOKS = 10;

/** Retention of finished operations, ms. */
const REMEMBER_MS = 24 * 3_600_000;

/** An operation that fails this many times in the same step is given up. */
const MAX_FAILURES = 5;

interface Task extends Omit<OperationView, 'done'>, Omit<OperationRequest, 'items'> {
  /** Where the next step continues; absent: at the beginning. */
  position?: number;
  /** Jobs with numbers from here on came later. */
  end: number;
  /** Whole chunks of the archive are being deleted. */
  chunks?: true;
  failures?: number;
}

/** Notes a new operation; a known one is skipped. Two rows written over its life, besides its steps. */
export function createTask(q: Stored, request: OperationRequest, now: number): void {
  if (readTask(q, request.id)) return;
  const { action, createdUntil } = request;
  const filter = createdUntil === undefined ? request.filter : madeUntil(request.filter, createdUntil);
  const allowed = ACTS_ON[action];
  const states = (filter.states ?? allowed).filter((state) => allowed.includes(state));
  const { ended, aged, ...others } = filter;
  const plain = !looksInside(others);
  // Chunks know when their newest job ended: without other conditions they need not be read.
  const chunks = plain && (action === 'delete' || action === 'purge') && states.includes('completed');
  const task: Task = {
    ...newTask(request.id, action, now),
    ...{ filter: { ...filter, states }, end: q.store.nextSequence },
    ...(request.items && { items: [] }),
    ...(chunks && ended?.min === undefined && aged?.min === undefined && { chunks: true as const }),
  };
  write(q, task, states.length === 0 ? now : null);
}

function newTask(id: string, action: BulkAction, now: number): Task {
  const counts = { matched: 0, succeeded: 0, skipped: 0, failed: 0, errors: [] };
  return { id, action, filter: {}, ...counts, started_at: now, end: 0 };
}

function write(q: Stored, task: Task, doneAt: number | null): void {
  put(q.store.sql, 'tasks', { id: task.id, data: JSON.stringify(task), done_at: doneAt });
}

type TaskRow = { data: string; done_at: number | null };

function readTask(q: Stored, id: string): { task: Task; done: boolean } | undefined {
  const [row] = rows<TaskRow>(q.store.sql, 'SELECT data, done_at FROM tasks WHERE id = ?', id);
  return row && { task: JSON.parse(row.data) as Task, done: row.done_at !== null };
}

/** An operation for clients. @param withItems also list the results of the first jobs, if they were noted */
export function viewTask(q: Stored, id: string, withItems = false): OperationView | undefined {
  const found = readTask(q, id);
  if (!found) return undefined;
  const view = viewOf(found.task, found.done);
  const { items } = found.task;
  return { ...view, ...(withItems && items && { items }) };
}

function viewOf(task: Task, done: boolean): OperationView {
  const { id, action, matched, succeeded, skipped, failed, errors, started_at, aborted } = task;
  const counts = { matched, succeeded, skipped, failed, errors };
  return { id, action, done, ...counts, started_at, ...(aborted && { aborted }) };
}

const MAX_SHOWN = 50;

export function viewTasks(q: Stored): OperationView[] {
  const query = 'SELECT data, done_at FROM tasks ORDER BY done_at IS NOT NULL, done_at DESC LIMIT ?';
  const found = rows<TaskRow>(q.store.sql, query, MAX_SHOWN);
  return found.map(({ data, done_at }) => viewOf(JSON.parse(data) as Task, done_at !== null));
}

/** Ends an operation where it is. An unknown one is noted as ended, so that it does not begin. One row written. */
export function abortTask(q: Stored & Woken, id: string, action: BulkAction, now: number): OperationView {
  const found = readTask(q, id);
  if (found?.done) return viewOf(found.task, true);
  const task: Task = { ...(found?.task ?? newTask(id, action, now)), aborted: true };
  write(q, task, now);
  q.wake.at(now + REMEMBER_MS);
  return viewOf(task, true);
}

/** Does the next step of an operation. @returns whether it is done */
export function stepTask(q: QueueParts, id: string, now: number): boolean {
  const found = readTask(q, id);
  if (!found || found.done) return true;
  const { task } = found;
  delete task.failures;
  const done = task.chunks ? deleteChunks(q, task) : actOnNext(q, task, now);
  write(q, task, done ? now : null);
  if (done) q.wake.at(now + REMEMBER_MS);
  return done;
}

/** Deletes chunks in which every job is old enough; the steps look at each job of the others. */
function deleteChunks(q: Named & Stored, task: Task): boolean {
  const { ended, aged } = task.filter;
  const until = Math.min(ended?.max ?? task.started_at, aged?.max ?? task.started_at, task.started_at);
  const { jobs, more } = pruneArchive(q.store, until, { visit: (job) => list(task, doneTo(q, job)) });
  task.matched += jobs;
  task.succeeded += jobs;
  if (!more) delete task.chunks;
  return false;
}

function actOnNext(q: QueueParts, task: Task, now: number): boolean {
  const { action } = task;
  // Retried jobs keep their order; deleted ones may be in the archive, which is read backwards.
  const ascending = action === 'cancel' || action === 'retry';
  const hits: Hit[] = [];
  const from = task.position ?? (ascending ? undefined : task.end);
  const limit = q.store.turn.left;
  const step = { filter: task.filter, ascending, limit, budget: LOOKS * limit, from };
  let { next } = scan(q, step, now, (hit) => hits.push(hit));
  const wanted = hits.filter(({ sequence }) => sequence < task.end);
  const archived: number[] = [];
  let last: Hit | undefined;
  for (last of q.store.turn.draw(wanted)) {
    task.matched++;
    const { key, archived: json } = last;
    if (json === undefined) count(task, actOnKey(q, action, key, now));
    else {
      archived.push(key);
      count(task, isListed(task) ? doneTo(q, JSON.parse(json) as ArchivedJob) : undefined);
    }
  }
  if (archived.length > 0) deleteArchived(q.store, archived);
  if (last !== wanted.at(-1)) next = last?.sequence;
  if (next === undefined || (ascending && next >= task.end)) return true;
  task.position = next;
  return false;
}

/** Counts a job and lists it. @param item undefined when the job cannot be named, or need not be */
function count(task: Task, item: BulkItem | undefined): void {
  if (item?.status !== 'failed') {
    task.succeeded++;
    if (item) list(task, item);
    return;
  }
  task.failed++;
  const { job_id, reason = '' } = item;
  const isListed = task.errors.length < MAX_ERRORS;
  if (isListed) task.errors.push({ job_id, error: reason });
  list(task, item, isListed);
}

const isListed = ({ items }: Task): boolean => items !== undefined && items.length < MAX_ITEMS;

/** @param always also beyond the limit */
function list(task: Task, item: BulkItem, always = false): void {
  if (always || isListed(task)) task.items?.push(item);
}

const doneTo = (q: Named, job: ArchivedJob): BulkItem => ({ job_id: idOfArchived(q.route, job), status: 'done' });

/** A step has failed with a defect; after several in a row the operation is given up. @returns whether it is */
function noteFailure(q: Stored, id: string, now: number): boolean {
  const found = readTask(q, id);
  if (!found || found.done) return true;
  const { task } = found;
  task.failures = (task.failures ?? 0) + 1;
  const givenUp = task.failures >= MAX_FAILURES;
  if (givenUp) count(task, { job_id: '', status: 'failed', reason: 'backend_error' });
  write(q, task, givenUp ? now : null);
  return givenUp;
}

/** Forgets operations that finished long ago, some at a time. */
function forgetTasks(q: Stored, now: number): void {
  if ((oldestTask(q) ?? now) > now - REMEMBER_MS) return;
  const due = 'SELECT id FROM tasks WHERE done_at <= ? LIMIT ?';
  rows(q.store.sql, `DELETE FROM tasks WHERE id IN (${due})`, now - REMEMBER_MS, q.store.turn.share);
}

/** When the first remembered operation finished. There are few, so all are looked through. */
const oldestTask = (q: Stored): number | undefined =>
  q.store.sql.exec<{ at: number | null }>('SELECT min(done_at) AS at FROM tasks').one().at ?? undefined;

const MAX_LOOKED = 50_000;

/**
 * The result for each match, oldest first. Without states in the filter, only jobs in suitable states match; a job in
 * a named but unsuitable state blocks the action.
 * @throws {ApiError} 422 when too many match, or too many have to be looked at
 */
export function checkMatching(q: StoredQueue, { action, filter }: MatchingRequest, now: number): BulkItem[] {
  const hits: Hit[] = [];
  const states = filter.states ?? [...ACTS_ON[action]];
  // Backwards, because completed jobs are found only that way.
  const { next } = scan(q, { filter: { ...filter, states }, limit: MAX_ITEMS, budget: MAX_LOOKED }, now, (hit) =>
    hits.push(hit),
  );
  if (next !== undefined)
    throw hits.length === MAX_ITEMS ? tooManyMatches(MAX_ITEMS) : tooManyLookedAt(MAX_LOOKED, q.name);
  return hits.reverse().flatMap((hit): BulkItem[] => {
    const job_id = idOfHit(q, hit);
    if (job_id === undefined) return [];
    if (ACTS_ON[action].includes(hit.state)) return [checkItem(q, action, job_id, now)];
    return [{ job_id, status: 'skipped', reason: hit.state }];
  });
}

/**
 * Acts on all jobs that match, or on none.
 * @throws {ApiError} as {@link checkMatching}; 503 when one of them is locked; 409 for a key of another request
 */
export function bulkMatching(q: QueueParts, request: MatchingRequest, now: number): BulkAnswer {
  const { action, once } = request;
  const earlier = once && recallAnswer<BulkAnswer>(q.store.inbox, once, now);
  if (earlier) return earlier;
  const items = checkMatching(q, request, now);
  refuseLockedItems(items);
  if (items.some(({ status }) => status !== 'done')) return { items, applied: false };
  for (const { job_id } of items) act(q, action, job_id, now);
  const answer: BulkAnswer = { items, applied: true };
  if (once) rememberAnswer(q.store.inbox, once, answer, now);
  return answer;
}

function idOfHit(q: Named & Stored, { key, archived }: Hit): string | undefined {
  if (archived === undefined) {
    const row = rowByKey(q.store, key);
    return row && idOf(q.route, row);
  }
  return idOfArchived(q.route, JSON.parse(archived) as ArchivedJob);
}
