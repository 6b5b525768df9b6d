/** Changes a waiting job: start, place, retry policy, retention. One row, two when its due index entry changes. */
import { mustBeAfterStart } from '../../job/envelope/option-readers';
import { invalidPolicy, mayNotShorten } from '../../job/errors';
import { groupOf } from '../../job/group';
import { optionsThat } from '../../job/options';
import type { JobBody, JobHistory, JobView, RetryInput } from '../../job/record';
import { ENDS, type End, mergeRetention, ownRetentionMs } from '../../job/retention';
import { checkRetry } from '../../job/retry/validate';
import type { PatchRequest } from '../../rpc/operations';
import { mustFind, viewOfRow } from '../read/find';
import { bodyOf, historyOf, isInLine, type JobRow, STATE } from '../store/job-row';
import { move } from '../store/jobs';
import type { Configured, QueueParts } from '../store/parts';
import { isSnoozed } from '../store/rows';
import { movable } from './legal-move';

/** Options whose change is only another value in the body. */
const REPLACED = optionsThat('patch', 'plain');

/** Changes a job. @throws {ApiError} 404; 409 when it runs or has ended; 422 for an invalid retry policy */
export function patch(q: QueueParts, request: PatchRequest, now: number): JobView {
  const { row, state } = movable(q, request.id, mustFind(q, request.id), 'patch', ' and cannot be changed.', now);
  const body = bodyOf(row);
  const isFixed = (request.priority ?? 0) !== 0 && q.store.gates.isStrict && groupOf(body) !== undefined;
  if (isFixed) throw invalidPolicy('priority', 'orders nothing here: the queue serves groups in strict order.');
  changePolicy(q, row, body, request);
  for (const name of REPLACED) setMember(body, name, request[name]);
  changeRetention(q, body, request);
  setMember(body, 'expires_at', request.expires_at);
  const after: JobRow = { ...row };
  if (request.priority !== undefined) after.priority = request.priority ?? 0;
  if (request.expires_at !== undefined) after.expires_at = request.expires_at;
  if (request.scheduled_at !== undefined) {
    const start = request.scheduled_at !== null && request.scheduled_at > now ? request.scheduled_at : undefined;
    // A retryable job keeps the time its producer asked for: only its next attempt moves.
    if (state !== 'retryable') setMember(body, 'scheduled_at', start ?? null);
    if (row.state === STATE.waiting) after.due_at = dueAfter(row, state === 'available', start, now);
  }
  if (isInLine(row) && after.priority !== 0) after.due_at ??= row.enqueued_at;
  checkTimes(Math.max(request.scheduled_at ?? 0, body.scheduled_at ?? 0), after.expires_at, request, now);
  after.body = JSON.stringify(body);
  if (sameRow(row, after)) return viewOfRow(q, row, now);
  const { priority, due_at, expires_at } = after;
  // An available job waits for nothing, also if it is rescheduled.
  const history = state === 'available' ? undefined : snoozedUntil(row, due_at);
  const change = { priority, due_at, expires_at, body: after.body, ...(history && { history }) };
  return viewOfRow(q, move(q, row, 'patch', change, now), now);
}

/** A change that names the past as the expiry ends the job at once. @throws {ApiError} 422 when it could never start */
function checkTimes(start: number, expiry: number | null, request: PatchRequest, now: number): void {
  const field = request.expires_at ? 'expires_at' : 'scheduled_at';
  if (request[field] && expiry !== null && expiry > now && start > now) mustBeAfterStart(expiry, start, field);
}

/** The history of a job whose handler now continues at another moment; it still waits for its signal. */
function snoozedUntil(row: JobRow, until: number | null): JobHistory | undefined {
  const history = row.due_at === until || until === null ? {} : historyOf(row);
  if (!history.snoozed || !isSnoozed(row, history)) return undefined;
  return { ...history, snoozed: { ...history.snoozed, until: until as number } };
}

/** When the job becomes available. One that is available and stays so keeps its place. */
function dueAfter(row: JobRow, available: boolean, start: number | undefined, now: number): number | null {
  if (start !== undefined) return start;
  return available ? row.due_at : now;
}

function changePolicy(q: Configured, row: JobRow, body: JobBody, { retry, max_attempts }: PatchRequest): void {
  if (retry === undefined && max_attempts === undefined) return;
  if (retry === null) {
    delete body.retry;
    if (max_attempts === undefined) delete body.max_attempts;
  } else if (retry !== undefined) {
    const merged = mergePolicies(body.retry ?? {}, retry);
    if ('max_attempts' in retry) delete body.max_attempts;
    setMember(body, 'retry', Object.keys(merged).length > 0 ? merged : null);
  }
  if (max_attempts !== undefined) {
    if (body.retry) {
      const { max_attempts: _, ...rest } = body.retry;
      setMember(body, 'retry', Object.keys(rest).length > 0 ? rest : null);
    }
    setMember(body, 'max_attempts', max_attempts);
  }
  checkRetry(q.config.retryLayers(row.type, body));
}

/** Merges the job's own retention. @throws {ApiError} 403 if that shortens it, and the caller may not */
function changeRetention(q: Configured, body: JobBody, { retention, mayPurge = true }: PatchRequest): void {
  if (retention === undefined) return;
  const keptFor = (end: End) => ownRetentionMs(body.retention, end) ?? q.config.keptFor(body.type, body, end);
  const before = ENDS.map(keptFor);
  setMember(body, 'retention', (retention && mergeRetention(body.retention, retention)) ?? null);
  const less = mayPurge ? undefined : ENDS.find((end, index) => keptFor(end) < (before[index] as number));
  if (less !== undefined) throw mayNotShorten(`retention.${less}`);
}

const SAME_FIELD = [
  ['backoff_strategy', 'backoff_type', 'strategy', 'backoff'],
  ['initial_interval', 'initial_interval_ms'],
  ['max_interval', 'max_interval_ms'],
  ['offset', 'offset_ms'],
];

/** Given members replace existing ones, under either name; `null`: not given, or "no cap". */
function mergePolicies(old: RetryInput, change: RetryInput): RetryInput {
  const replaced = new Set(Object.keys(change));
  for (const names of SAME_FIELD)
    if (names.some((name) => name in change)) for (const name of names) replaced.add(name);
  const kept = Object.entries(old).filter(([name]) => !replaced.has(name));
  const given = Object.entries(change).filter(([name, value]) => value !== null || name.startsWith('max_interval'));
  return Object.fromEntries([...kept, ...given]);
}

function setMember<K extends keyof JobBody>(body: JobBody, name: K, value: JobBody[K] | null | undefined): void {
  if (value === null) delete body[name];
  else if (value !== undefined) body[name] = value;
}

const sameRow = (a: JobRow, b: JobRow): boolean =>
  (['priority', 'due_at', 'expires_at', 'body'] as const).every((name) => a[name] === b[name]);

/** `pending` → `available`, or `scheduled` when its time has not come. @throws {ApiError} 404, 409 */
export function activate(q: QueueParts, id: string, now: number): JobView {
  const { row } = movable(q, id, mustFind(q, id), 'activate', ', not pending.', now);
  const availableAt = Math.max(now, bodyOf(row).scheduled_at ?? now);
  const after = move(q, row, 'activate', { state: STATE.waiting, enqueued_at: now, availableAt }, now);
  return viewOfRow(q, after, now);
}

/** A job that waits, for its time, its retry or to be activated, becomes available now. @throws {ApiError} 404, 409 */
export function runNow(q: QueueParts, id: string, now: number): JobView {
  if (mustFind(q, id).row?.state === STATE.pending) activate(q, id, now);
  return patch(q, { id, scheduled_at: null }, now);
}
