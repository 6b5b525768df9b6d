/**
 * Reads a job as a producer sends it; nothing else decides whether one is valid. `options` wins over the top level,
 * `null` counts as absent (except `type`, `args`); server-managed members are ignored, unknown ones stored and echoed.
 */
import { type Bounds, onlyName } from '../bounds';
import { invalidRequest, unsupported } from '../errors';
import { groupOf } from '../group';
import { suggestion } from '../near-miss';
import { DEFAULT_QUEUE, factsOf, OPTION_NAMES, optionsThat } from '../options';
import type { JobBody, NewJob } from '../record';
import { quote } from '../text';
import { parsePast } from '../time';
import { type Trace, withTrace } from '../trace';
import { fingerprintOf } from '../unique/fingerprint';
import type { UniqueRequest } from '../unique/policy';
import { type UnknownMembers, type Verdict, withoutEffect } from '../unknown-members';
import { optional, type Reader, reader, readObject, readUuidV7, setDefined, withinBytes } from './fields';
import { isJobType, MAX_ENVELOPE_BYTES, TYPE_RULE } from './names';
import { type JobBeingRead, OPTION_READERS, readInstant } from './option-readers';

/** Members that only the server writes. A client's values are dropped. */
const SERVER_MANAGED = [
  ...['state', 'attempt', 'created_at', 'enqueued_at', 'started_at', 'first_started_at', 'completed_at'],
  ...['cancelled_at', 'discarded_at', 'error', 'errors', 'result', 'retry_delay_ms', 'next_attempt_at'],
  ...['discard_reason', 'dead_letter', 'retry_effective', 'worker_id', 'last_heartbeat_at', 'lease_expires_at'],
  ...['progress', 'progress_data', 'checkpoint', 'steps', 'delivery_id', 'lease_ms', 'chunk', 'coalesced'],
  ...['workflow_id', 'parent_results'],
];

/** Members of the top level only, beside the options of which that is so. */
const BESIDE_OPTIONS = ['specversion', 'id', 'type', 'args', 'options'] as const;

export const JOB_MEMBERS: ReadonlySet<string> = new Set([...SERVER_MANAGED, ...OPTION_NAMES, ...BESIDE_OPTIONS]);

export const IN_OPTIONS = OPTION_NAMES.filter((name) => !factsOf(name).beside);

const KNOWN_OPTIONS: ReadonlySet<string> = new Set(IN_OPTIONS);
const MISPLACED: ReadonlySet<string> = new Set([...BESIDE_OPTIONS, ...optionsThat('beside')]);
const unknownOption = withoutEffect(IN_OPTIONS);

const aboutOption: Verdict = (name) =>
  MISPLACED.has(name) ? 'has no effect there: it belongs next to options.' : unknownOption(name);

/** Members of the top level may be the application's own: only one that is probably a slip is worth a warning. */
const aboutMember: Verdict = (name) => {
  const meant = suggestion(name, [...OPTION_NAMES, 'options']);
  return meant === '' ? undefined : `is not known and is only kept with the job.${meant}`;
};

/** Notes the options that no job has. @param path of `options`, with a dot at its end */
export function noteUnknownOptions(unknown: UnknownMembers, options: Record<string, unknown>, path: string): void {
  unknown.note(options, KNOWN_OPTIONS, path, aboutOption);
}

export interface ParseContext {
  /** Epoch ms; relative times count from here. */
  now: number;
  /** Path of the job in the request, e.g. `jobs[3]`; absent: the request is the job. */
  path?: string;
  /** Where a job goes that names no queue. Default: {@link DEFAULT_QUEUE}. */
  queue?: string;
  /** Of the key that enqueues: where they leave one queue or group, a job that names none has that one. */
  bounds?: Bounds;
  /** The trace of the request; a job that names none belongs to it. */
  trace?: Trace;
  /** Reads the URL that a job names as its target. Absent: none may. */
  readTarget?: Reader<string>;
  /** Gets the members that nothing reads, and what else has no effect. */
  unknown?: UnknownMembers;
  /** The job was accepted before, and is read again: its times may have passed meanwhile. */
  accepted?: boolean;
}

/** A validated job, the queue it goes to, and its body before it became text. */
export interface ParsedJob {
  queue: string;
  job: NewJob;
  body: JobBody;
  /** The unique policy, until {@link withFingerprint} has turned it into `job.unique`. */
  unique?: UniqueRequest;
}

const READERS = OPTION_NAMES.map((name) => ({
  name,
  read: OPTION_READERS[name] as (value: unknown, field: string, job: JobBeingRead) => unknown,
  beside: factsOf(name).beside === true,
}));

/**
 * Validates one job. `details.field` is the member's path as the client wrote it.
 * @throws {ApiError} 400 for a malformed member; 413 for one that is too large; 422 for a retry policy out of range,
 * an expiry before the start, and unsupported features
 */
export function parseJob(input: Record<string, unknown>, ctx: ParseContext): ParsedJob {
  const { now, trace, readTarget } = ctx;
  const prefix = ctx.path === undefined ? '' : `${ctx.path}.`;
  const options = readObject(input.options ?? {}, `${prefix}options`);
  checkSpecVersion(input.specversion, `${prefix}specversion`);
  const type = readType(input.type, `${prefix}type`);
  const id = optional(input, 'id', readUuidV7, prefix);
  const body: JobBody = { type, args: readArgs(input.args, `${prefix}args`), meta: withTrace({}, trace) };
  const read: JobBeingRead = {
    now,
    prefix,
    trace,
    readTarget,
    unknown: ctx.unknown,
    accepted: ctx.accepted === true,
    inOptions: false,
    body,
    queue: ctx.queue ?? onlyName(ctx.bounds?.queues) ?? DEFAULT_QUEUE,
    priority: 0,
    pending: false,
    start: undefined,
    startInOptions: false,
    unique: undefined,
    limit: undefined,
  };
  readOptions(input, options, read);
  if (groupOf(body) === undefined) setDefined(body, 'group', onlyName(ctx.bounds?.groups));
  if (id !== undefined && read.unique?.policy.on_conflict === 'accumulate') {
    const why = 'a newcomer may become a part of another job. Repeat the request under an Idempotency-Key instead';
    throw invalidRequest(`${prefix}id`, `${prefix}id cannot be combined with jobs that accumulate: ${why}.`);
  }
  if (read.start !== undefined && read.start > now) body.scheduled_at = read.start;
  setDefined(body, 'extra', unknownMembers(input));
  if (ctx.unknown) {
    noteUnknownOptions(ctx.unknown, options, `${prefix}options.`);
    ctx.unknown.note(body.extra ?? {}, JOB_MEMBERS, prefix, aboutMember);
  }
  const text = JSON.stringify(body);
  withinBytes(text, MAX_ENVELOPE_BYTES, ctx.path ?? 'body');

  const { retry, max_attempts } = body;
  const job: NewJob = { type, priority: read.priority, body: text };
  setDefined(job, 'id', id);
  setDefined(job, 'scheduledAt', body.scheduled_at);
  setDefined(job, 'expiresAt', body.expires_at);
  setDefined(job, 'pending', read.pending || undefined);
  setDefined(job, 'retry', max_attempts === undefined ? retry : { ...retry, max_attempts });
  setDefined(job, 'limit', read.limit);
  setDefined(job, 'group', groupOf(body));
  const parsed: ParsedJob = { queue: read.queue, job, body };
  setDefined(parsed, 'unique', read.unique && ctx.bounds ? apart(read.unique, parsed, ctx.bounds) : read.unique);
  return parsed;
}

/** A key that is bound by queues or groups must not meet, nor change, the jobs of others. */
function apart({ policy, dimensions }: UniqueRequest, { queue, job }: ParsedJob, bounds: Bounds): UniqueRequest {
  const own = { ...(bounds.queues && { queue }), ...(bounds.groups && { group: job.group }) };
  return { policy, dimensions: { ...dimensions, ...own } };
}

/** Reads the options that are there: of `options`, else of the top level, unless it is absent or null in both. */
function readOptions(input: Record<string, unknown>, options: Record<string, unknown>, job: JobBeingRead): void {
  const body = job.body as unknown as Record<string, unknown>;
  for (const { name, read, beside } of READERS) {
    const inside = beside ? undefined : options[name];
    job.inOptions = inside !== undefined && inside !== null;
    const value = job.inOptions ? inside : input[name];
    if (value === undefined || value === null) continue;
    const kept = read(value, job.inOptions ? `${job.prefix}options.${name}` : job.prefix + name, job);
    if (kept !== undefined) body[name] = kept;
  }
}

/** Fills in the fingerprint of a job's unique policy; hashing is asynchronous, {@link parseJob} is not. */
export async function withFingerprint(parsed: ParsedJob): Promise<ParsedJob> {
  if (parsed.unique === undefined) return parsed;
  const { unique, ...rest } = parsed;
  const fingerprint = await fingerprintOf(unique.dimensions);
  const body: JobBody = { ...parsed.body, fingerprint };
  const job: NewJob = { ...parsed.job, unique: { fingerprint, ...unique.policy }, body: JSON.stringify(body) };
  return { ...rest, job, body };
}

function checkSpecVersion(value: unknown, field: string): void {
  if (value === undefined || value === null) return;
  const major = typeof value === 'string' ? /^(\d+)(\.\d+)*$/.exec(value)?.[1] : undefined;
  if (major === undefined) throw invalidRequest(field, `${field} must be a version such as "1.0".`);
  if (Number(major) !== 1)
    throw unsupported(`${field} ${quote(String(value))} is not supported; this server speaks 1.0.`, { field });
}

function readType(value: unknown, field: string): string {
  if (value === undefined) throw invalidRequest(field, `${field} is required.`);
  if (typeof value === 'string' && isJobType(value)) return value;
  throw invalidRequest(field, `${field} ${TYPE_RULE}.`);
}

function readArgs(value: unknown, field: string): unknown[] {
  if (value === undefined) throw invalidRequest(field, `${field} is required; send [] for a job without arguments.`);
  if (Array.isArray(value)) return value;
  throw invalidRequest(field, `${field} must be an array.`);
}

/** A time, or a duration from `now` on; returns epoch ms. */
export function readTime(now: number): Reader<number> {
  return (value, field) => readInstant(value, field, { now });
}

/** A time, or a duration before `now`; returns epoch ms. */
export const readPast = (now: number): Reader<number> =>
  reader(
    (value) => parsePast(value, now),
    'must be an RFC 3339 time with a zone, or a duration before now such as "24h"',
  );

/** `Object.fromEntries` defines its members, so that a key named `__proto__` is an ordinary one. */
function unknownMembers(input: Record<string, unknown>): Record<string, unknown> | undefined {
  const unknown = Object.keys(input).filter((name) => !JOB_MEMBERS.has(name));
  return unknown.length === 0 ? undefined : Object.fromEntries(unknown.map((name) => [name, input[name]]));
}
