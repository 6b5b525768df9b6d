/** Which jobs a queue accepts: none while it drains, is being deleted or is full, and only those of its types. */
import { recallAnswer, rememberAnswer } from '../../durable/inbox';
import type { Enqueuer } from '../../job/attempt/outcome';
import { conflict, invalidRequest, refusal, unavailable } from '../../job/errors';
import { decodeId, isUuidV7 } from '../../job/ids';
import { type SentJobs, unpack } from '../../job/message';
import type { NewJob } from '../../job/record';
import { MAX_TICKET_AGE_MS } from '../../rpc/queue';
import type { EnqueuedJob } from '../../rpc/receipts';
import { type SchemaMode, schemasChanged, schemaValidation, warningOf } from '../../schemas/misfit';
import { isOutdated } from '../../schemas/stamp';
import type { Configured, Named, Stored, StoredQueue } from '../store/parts';
import { refuseWhenFull } from '../store/storage';

/** A queue that drains, is being deleted, or has full storage accepts no jobs. @throws {ApiError} 409; 503 full */
export function refuseNewcomers(q: StoredQueue): void {
  if (!q.config.draining && !q.config.removal) {
    refuseWhenFull(q);
    return;
  }
  const state = q.config.removal ? 'deleting' : 'draining';
  const details = { queue: q.name, current_state: state, expected_state: 'active or paused' };
  const hint = 'Resume the queue, or enqueue into another one.';
  throw conflict(`Queue ${q.name} is ${state} and accepts no jobs.`, details, hint);
}

/** May the handler of a target enqueue there? @throws {ApiError} 403 */
export function refuseElsewhere({ name, mayEnqueue }: Enqueuer, queue: string): void {
  if (mayEnqueue === undefined || mayEnqueue.includes('*') || mayEnqueue.includes(queue)) return;
  const message = `${name} may not enqueue in queue ${queue}: its mapping in HANDLERS does not list it in may_enqueue.`;
  throw refusal(403, 'forbidden', message, { details: { queue } });
}

/** @throws {ApiError} 409 while the queue is being deleted */
export function refuseRemoved(q: Named & Configured): void {
  if (!q.config.removal) return;
  throw conflict(`Queue ${q.name} is being deleted.`, { queue: q.name, current_state: 'deleting' });
}

/** Is the type among those the queue accepts? @throws {ApiError} 400 */
export function checkType(q: Named & Configured, type: string): void {
  const allowed = q.config.settings.allowed_job_types;
  if (allowed === undefined || allowed.some((pattern) => fits(type, pattern))) return;
  throw invalidRequest('type', `Queue ${q.name} accepts no jobs of type ${type}.`, { queue: q.name, allowed });
}

/** A pattern is a type, or the beginning of one followed by `*`. */
const fits = (type: string, pattern: string): boolean =>
  pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern;

/** A producer repeats a request within this time, ms. */
const REMEMBER_MS = 90 * 86_400_000;

/** No key of a client has a line break, so none equals one of these. */
const requestOf = (id: string) => ({ key: `departed\n${id}`, hash: '' });

/** The job has moved away: a repeated old request must not create it again. Only this queue knows such an id. */
export function rememberDeparted(q: Stored, id: string, now: number): void {
  rememberAnswer(q.store.inbox, requestOf(id), true, now, REMEMBER_MS);
}

export const hasDeparted = (q: Stored, id: string, now: number): boolean =>
  recallAnswer(q.store.inbox, requestOf(id), now) !== undefined;

/** Refuses a ticket that was given up, or is too old to be remembered. @throws {ApiError} 503 */
export function refuseGivenUp(q: Stored, ticket: string, now: number): void {
  const tooOld = isUuidV7(ticket) && now - decodeId(ticket).time > MAX_TICKET_AGE_MS;
  if (tooOld || recallAnswer(q.store.inbox, answerAbout(ticket), now) !== undefined) throw tookTooLong();
}

export function giveUp(q: Stored, ticket: string, now: number): void {
  rememberAnswer(q.store.inbox, answerAbout(ticket), 'aborted', now);
}

const answerAbout = (ticket: string) => ({ key: `ticket ${ticket}`, hash: '' });

/** 503: the ticket was given up. */
export const tookTooLong = (): Error => unavailable('The batch timed out; nothing was changed.');

const MAX_WARNED = 10;

/** The jobs that a producer sent. @throws {ApiError} 503 if validated by outdated schemas; their sender handles that */
export function taken(q: Configured, sent: SentJobs): NewJob[] {
  const jobs = unpack(sent);
  const stamp = q.config.defaults?.schemas;
  if (stamp && jobs.some(({ validated }) => isOutdated(validated?.stamp, stamp))) throw schemasChanged();
  return jobs;
}

/** A schema applies from the moment on at which the queue received it. */
const modeOf = ({ config: { settings, defaults } }: Configured): SchemaMode =>
  defaults?.schemas === undefined ? 'off' : (settings.schemas ?? 'warn');

/** @throws {ApiError} 400 if the queue is strict */
export function refuseMisfit(q: Configured, { type, validated }: NewJob): void {
  if (validated?.misfits && modeOf(q) === 'strict') throw schemaValidation(type, validated.misfits);
}

export function warnOfMisfits(q: Configured, enqueued: readonly EnqueuedJob[], jobs: readonly NewJob[]): void {
  if (modeOf(q) !== 'warn') return;
  let left = MAX_WARNED;
  for (const [index, { type, validated }] of jobs.entries()) {
    const job = enqueued[index];
    if (!validated?.misfits || !job || job.deduplicated || left-- <= 0) continue;
    const warning = warningOf(type, validated.misfits);
    job.warning = job.warning === undefined ? warning : `${warning} ${job.warning}`;
  }
}
