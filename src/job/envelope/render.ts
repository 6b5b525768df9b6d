/** Writes a job as its envelope, for answers, deliveries and events. Absent members stay absent. */

import { firstStart } from '../history';
import { optionsThat } from '../options';
import type { Coalesced, JobBody, JobErrorEntry, JobRecord, JobView, Receipt, UnusedClaims } from '../record';
import { renderRetention } from '../retention';
import { describeRetry, resolveRetry } from '../retry/resolve';
import { formatInstant, parseTimestamp } from '../time';
import type { WaitingFor } from '../waiting';
import type { EnvelopeError, EnvelopeWaiting, JobEnvelope } from '../wire';
import { parseExactly } from './exact';
import { defined, given, parseObject, setDefined } from './fields';
import { shown } from './nesting';

/** In an envelope: the names of the members that the application has added to its job. */
export const UNKNOWN_MEMBERS: unique symbol = Symbol('members of the application');

export type Envelope = Record<string, unknown>;

/** What a body says beside its arguments. */
export type Head = Omit<JobBody, 'args'>;

export type Variables = NonNullable<Parameters<typeof resolveRetry>[0]['variables']>;

/**
 * The envelope of a job. @param body the parsed `view.record.body`, when the caller has it already
 * @param room of the answer, if it is about several jobs
 * @throws {ApiError} 500 when the retry variables contradict each other
 */
export function renderJob(view: JobView, variables: Variables, body?: JobBody, room?: PolicyRoom): JobEnvelope {
  const { record, layers } = view;
  const written = body ?? writtenBody(record);
  const policy = policyOf(variables, layers, written);
  const { id, type, queue, state, priority, attempt } = record;
  const { args, meta, extra } = written;
  const { max_attempts } = policy;
  const envelope: Envelope = {
    specversion: '1.0',
    id,
    type,
    queue,
    state,
    args,
    meta,
    priority,
    attempt,
    max_attempts,
  };
  setDefined(envelope, 'retry', written.retry);
  if (room?.takes(policy) ?? true) envelope.retry_effective = policy.retry_effective;
  if (!isMinimal(written)) addOptions(envelope, written);
  addCourse(envelope, record, written);
  // The second spread keeps a stored unknown member from shadowing a name that the envelope has gained since.
  const unknown = extra && Object.keys(extra).filter((name) => !(name in envelope));
  const whole = unknown ? { ...envelope, ...extra, ...envelope, [UNKNOWN_MEMBERS]: unknown } : envelope;
  return whole as object as JobEnvelope;
}

function addOptions(envelope: Envelope, written: JobBody): void {
  for (const name of SHOWN) setDefined(envelope, name, written[name]);
  if (written.retention) envelope.retention = renderRetention(written.retention);
  if (written.coalesced) envelope.coalesced = renderCoalesced(written.coalesced);
  const { workflow, parent_results } = written;
  if (workflow) envelope.workflow_id = workflow.id;
  // Also of a job that was imported without its workflow.
  setDefined(envelope, 'parent_results', workflow ? (parent_results ?? []) : parent_results);
}

const renderCoalesced = ({ calls, since }: Coalesced) => ({ calls, since: formatInstant(since) });

const SHOWN = optionsThat('shown');

/** What a body consists of that says nothing but what to run, and when. */
const PLAIN: ReadonlySet<string> = new Set(['type', 'args', 'meta', 'scheduled_at']);

export function isMinimal(body: Head): boolean {
  for (const name in body) if (!PLAIN.has(name)) return false;
  return true;
}

/** The brief answer to an enqueue: what the server decided or read. @param body as sent @throws {ApiError} 500 */
export function renderReceipt(
  { record, layers, coalesced }: JobView & { coalesced?: Coalesced },
  variables: Variables,
  body: JobBody,
): Receipt {
  const { id, state, created_at } = record;
  const { max_attempts } = policyOf(variables, layers, body);
  const receipt: Receipt = { id, state, max_attempts, created_at: formatInstant(created_at) };
  setDefined(receipt, 'scheduled_at', instant(startOf(record, body)));
  setDefined(receipt, 'expires_at', expiry(body));
  for (const name of READ) setDefined(receipt, name, body[name]);
  if (body.retention) receipt.retention = renderRetention(body.retention);
  setDefined(receipt, 'coalesced', given(coalesced ?? body.coalesced, renderCoalesced));
  return receipt;
}

/** Options that the server changes while reading, except times. */
const READ = optionsThat('receipt').filter((name) => name !== 'scheduled_at' && name !== 'expires_at');

/** The stored body. An unreadable one shows as a job without arguments, so that it does not break a list. */
export function writtenBody(record: JobRecord): JobBody {
  const body = parseObject(record.body, parseExactly);
  if (body) return body as unknown as JobBody;
  return { type: record.type, args: [], meta: {} };
}

export interface ShownPolicy {
  max_attempts: number;
  retry_effective: Record<string, unknown>;
  /** Both as members in JSON, from the first use on. */
  text?: string;
}

export function textOfPolicy(shown: ShownPolicy): string {
  const { max_attempts, retry_effective } = shown;
  shown.text ??= JSON.stringify({ max_attempts, retry_effective }).slice(1, -1);
  return shown.text;
}

/** Characters of effective retry policies in one answer. */
const MAX_POLICY_CHARS = 1024 * 1024;

/** Bounds the retry policies in one answer: a thousand jobs may share a long one. The first jobs show theirs. */
export class PolicyRoom {
  private chars = 0;

  takes(shown: ShownPolicy): boolean {
    this.chars += textOfPolicy(shown).length;
    return this.chars <= MAX_POLICY_CHARS;
  }
}

/** Cache of effective policies of jobs that set none, by their lower layers, which jobs of one type share. */
const common = new WeakMap<Variables, WeakMap<object, ShownPolicy>>();

export function policyOf(variables: Variables, layers: JobView['layers'], body: Head): ShownPolicy {
  const isCommon = !body.retry && body.max_attempts === undefined;
  const key = layers.job_type || layers.queue ? layers : variables;
  const known = isCommon ? common.get(variables)?.get(key) : undefined;
  if (known) return known;
  const policy = resolveRetry({ variables, ...layers, job: jobLayer(body) });
  const shown = { max_attempts: policy.max_attempts, retry_effective: describeRetry(policy) };
  if (isCommon) {
    const those = common.get(variables) ?? new WeakMap<object, ShownPolicy>();
    common.set(variables, those.set(key, shown));
  }
  return shown;
}

export function renderError(entry: JobErrorEntry): EnvelopeError {
  const { attempt, code, type, message, retryable, details, stack, worker_id, target } = entry;
  const { occurred_at, duration_ms, backoff_ms, reason } = entry;
  return {
    ...{ attempt, code, type, message },
    ...defined({ retryable, details, stack, worker_id, target }),
    ...{ occurred_at: formatInstant(occurred_at), duration_ms, backoff_ms, reason },
  };
}

function renderUnused({ count, at, worker_id }: UnusedClaims): Envelope {
  return { count, last_at: formatInstant(at), ...defined({ worker_id }) };
}

export function renderWaiting({ reason, since, until, detail, ...about }: WaitingFor): EnvelopeWaiting {
  return { reason, since: formatInstant(since), ...defined({ until: instant(until) }), detail, ...about };
}

const jobLayer = (body: Head): Record<string, unknown> =>
  body.max_attempts === undefined ? (body.retry ?? {}) : { ...body.retry, max_attempts: body.max_attempts };

const instant = (ms: number | undefined): string | undefined => (ms === undefined ? undefined : formatInstant(ms));

/** The expiry, as the producer wrote it unless it has been changed since. */
const expiry = ({ expires_at, expires_at_written: text }: Head): string | undefined =>
  text !== undefined && parseTimestamp(text) === expires_at ? text : instant(expires_at);

/** When it is to run, and how it has fared; members that do not apply are left out. */
export function addCourse(envelope: Envelope, record: JobRecord, written: Head): void {
  envelope.created_at = formatInstant(record.created_at);
  envelope.enqueued_at = formatInstant(record.enqueued_at);
  setDefined(envelope, 'scheduled_at', instant(startOf(record, written)));
  setDefined(envelope, 'expires_at', expiry(written));
  if (record.waiting_for) envelope.waiting_for = renderWaiting(record.waiting_for);
  if (!isUntouched(record)) Object.assign(envelope, defined(historyMembers(record)));
}

/** When it is to run for the first time, epoch ms; undefined: at once. */
export const startOf = ({ state, due_at }: JobRecord, { scheduled_at }: Head) =>
  state === 'scheduled' ? (due_at ?? scheduled_at) : scheduled_at;

/** Has nothing happened to the job yet? Most of those that are rendered are new. */
export function isUntouched(record: JobRecord): boolean {
  const { attempt, state, history, result, progress, checkpoint, steps, delivery_id } = record;
  if (attempt > 0 || (state !== 'available' && state !== 'scheduled')) return false;
  if ((result ?? progress ?? checkpoint ?? steps ?? delivery_id) !== undefined) return false;
  for (const _ in history) return false;
  return true;
}

function historyMembers(record: JobRecord): Envelope {
  const { state, history, lease, progress, progress_data, checkpoint, delivery_id, lease_ms, chunk } = record;
  const waitsForRetry = state === 'retryable';
  const first = firstStart(history);
  return {
    started_at: instant(history.started_at),
    first_started_at: first === history.started_at ? undefined : instant(first),
    completed_at: instant(history.completed_at),
    cancelled_at: instant(history.cancelled_at),
    discarded_at: instant(history.discarded_at),
    discard_reason: state === 'discarded' ? history.reason : undefined,
    dead_letter: state === 'discarded' ? history.dead_letter : undefined,
    error: history.error && state !== 'completed' ? renderError(history.error) : undefined,
    errors: history.errors && history.errors.length > 0 ? history.errors.map(renderError) : undefined,
    result: record.result === undefined ? undefined : shown(parseExactly(record.result)),
    retry_delay_ms: waitsForRetry || state === 'active' ? history.retry_delay_ms : undefined,
    next_attempt_at: waitsForRetry ? instant(record.due_at) : undefined,
    worker_id: state === 'active' ? record.worker_id : undefined,
    last_heartbeat_at: instant(lease?.renewed_at),
    lease_expires_at: instant(lease?.expires_at),
    undo: record.undo ?? given(history.undo_job, (job_id) => ({ job_id })),
    unused_claims: history.unused && state !== 'completed' ? renderUnused(history.unused) : undefined,
    ...{ progress, progress_data, checkpoint },
    steps: given(record.steps, JSON.parse),
    ...{ delivery_id, lease_ms, chunk },
  };
}
