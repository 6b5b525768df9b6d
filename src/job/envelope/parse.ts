/**
 * Reads a job as a producer sends it; no other code decides whether one is valid. Members may stand in `options` or at
 * the top level (`options` wins, `null` counts as absent, except for `type` and `args`). Members that the server
 * manages are ignored; unknown ones are stored and echoed.
 */
import { invalidPolicy, invalidRequest, unsupported } from '../errors';
import { readLimitPolicy } from '../limits/policy';
import type { JobBody, NewJob, RetryInput } from '../record';
import { readRetention } from '../retention';
import { checkRetryLayer } from '../retry/validate';
import { quote } from '../text';
import { formatInstant, parseInstant, parsePast } from '../time';
import { type Trace, withTrace } from '../trace';
import { fingerprintOf } from '../unique/fingerprint';
import { readUnique, type UniqueRequest } from '../unique/policy';
import { suggestion, type UnknownMembers, type Verdict, withoutEffect } from '../unknown-members';
import {
  isObject,
  type Reader,
  readBoolean,
  reader,
  readInteger,
  readList,
  readMilliseconds,
  readName,
  readObject,
  readQueueName,
  readUuidV7,
  setDefined,
  withinBytes,
} from './fields';
import { isJobType, MAX_ENVELOPE_BYTES, MAX_META_BYTES, TYPE_RULE } from './names';

/** Queue of a job that names none. */
export const DEFAULT_QUEUE = 'default';

const MAX_ATTEMPTS = 2_147_483_647;

/** Members that only the server writes. A client's values are dropped. */
const SERVER_MANAGED = [
  'state',
  'attempt',
  'created_at',
  'enqueued_at',
  'started_at',
  'first_started_at',
  'completed_at',
  'cancelled_at',
  'discarded_at',
  'error',
  'errors',
  'result',
  'retry_delay_ms',
  'next_attempt_at',
  'discard_reason',
  'dead_letter',
  'retry_effective',
  'worker_id',
  'last_heartbeat_at',
  'lease_expires_at',
  'progress',
  'progress_data',
  'checkpoint',
  'steps',
  'delivery_id',
  'lease_ms',
  'workflow_id',
  'parent_results',
] as const;

/** Members that mean the same in `options` and at the top level. */
export const JOB_OPTIONS = [
  'queue',
  'priority',
  'target_url',
  'timeout_ms',
  'visibility_timeout_ms',
  'delay_until',
  'scheduled_at',
  'expires_at',
  'retry',
  'max_attempts',
  'unique',
  'rate_limit',
  'retention',
  'tags',
  'pending',
  'meta',
  'metadata',
] as const;
type OptionName = (typeof JOB_OPTIONS)[number];

/** Members of the top level only. */
const BESIDE_OPTIONS = ['specversion', 'id', 'type', 'args', 'schema', 'version', 'options'] as const;

/** All members of a job. */
export const JOB_MEMBERS: ReadonlySet<string> = new Set([...SERVER_MANAGED, ...JOB_OPTIONS, ...BESIDE_OPTIONS]);

const OPTIONS: ReadonlySet<string> = new Set(JOB_OPTIONS);
const MISPLACED: ReadonlySet<string> = new Set(BESIDE_OPTIONS);
const unknownOption = withoutEffect(JOB_OPTIONS);

/** What an option that is none deserves to be told. */
const aboutOption: Verdict = (name) =>
  MISPLACED.has(name) ? 'has no effect there: it stands beside options.' : unknownOption(name);

/** Members of the top level may be the application's own: only one that is probably a slip is worth a warning. */
const aboutMember: Verdict = (name) => {
  const meant = suggestion(name, [...JOB_OPTIONS, 'options', 'version', 'schema']);
  return meant === '' ? undefined : `is not known and is only kept with the job.${meant}`;
};

/** For members that are stored as written. */
const unread: Reader<unknown> = (value) => value;
const readPriority = readInteger(-100, 100);
const readTags = readList(50, readName(128));

const readSchema: Reader<string | Record<string, unknown>> = (value, field) => {
  if (isObject(value)) return value;
  return readName(2048)(value, field);
};

const readVersion: Reader<number | string> = (value, field) => {
  if (Number.isSafeInteger(value)) return value as number;
  if (typeof value === 'string' && value !== '' && value.length <= 255 && !value.includes('\0')) return value;
  throw invalidRequest(field, `${field} must be an integer or a string of 1 to 255 characters.`);
};

const refuseTarget: Reader<string> = (_, field) => {
  throw invalidRequest(field, `${field} is not offered for schedules and workflows: map the type to the URL instead.`);
};

/** Notes the options that no job has. @param path of `options`, with a dot at its end */
export function noteUnknownOptions(unknown: UnknownMembers, options: Record<string, unknown>, path: string): void {
  unknown.note(options, OPTIONS, path, aboutOption);
}

/** The context in which a job is read. */
export interface ParseContext {
  /** Epoch ms; relative times count from here. */
  now: number;
  /** Path of the job in the request, e.g. `jobs[3]`; absent: the request is the job. */
  path?: string;
  /** Where a job goes that names no queue. Default: {@link DEFAULT_QUEUE}. */
  queue?: string;
  /** The trace of the request; a job that names none belongs to it. */
  trace?: Trace;
  /** Reads the URL that a job names as its target. Absent: none may. */
  readTarget?: Reader<string>;
  /** Gets the members that nothing reads. */
  unknown?: UnknownMembers;
}

/** A validated job, the queue it goes to, and its body before it became text. */
export interface ParsedJob {
  queue: string;
  job: NewJob;
  body: JobBody;
  /** The unique policy, until {@link withFingerprint} has turned it into `job.unique`. */
  unique?: UniqueRequest;
}

/** The members of one job by name, with the path the client wrote them at. */
class Members {
  private readonly options: Record<string, unknown>;

  /** @param prefix of the paths of its members */
  constructor(
    private readonly input: Record<string, unknown>,
    private readonly prefix: string,
  ) {
    this.options = readObject(input.options ?? {}, `${prefix}options`);
  }

  /** The path of a top-level member. */
  at(name: string): string {
    return this.prefix + name;
  }

  /** A member of the top level only, unless it is absent or null. */
  top<T>(name: string, read: Reader<T>): T | undefined {
    const value = this.input[name];
    return value === undefined || value === null ? undefined : read(value, this.prefix + name);
  }

  /** A member of `options`, else of the top level, unless it is absent or null in both. */
  option<T>(name: OptionName, read: Reader<T>): T | undefined {
    const value = this.options[name];
    if (value === undefined || value === null) return this.top(name, read);
    return read(value, `${this.prefix}options.${name}`);
  }

  /** @param extra those of the top level that no job has */
  noteUnknown(unknown: UnknownMembers, extra: Record<string, unknown> = {}): void {
    noteUnknownOptions(unknown, this.options, `${this.prefix}options.`);
    unknown.note(extra, JOB_MEMBERS, this.prefix, aboutMember);
  }

  /** Is the member given in `options`? */
  inOptions(name: OptionName): boolean {
    return (this.options[name] ?? null) !== null;
  }
}

/**
 * Validates one job.
 * @throws {ApiError} 400 for a malformed member, 413 for one that is too large, 422 for a retry policy out of range
 * and for what is not offered; `details.field` is the member's path as the client wrote it.
 */
export function parseJob(input: Record<string, unknown>, ctx: ParseContext): ParsedJob {
  const members = new Members(input, ctx.path === undefined ? '' : `${ctx.path}.`);
  checkSpecVersion(input.specversion, members.at('specversion'));

  const type = readType(input.type, members.at('type'));
  const id = members.top('id', readUuidV7);
  const queue = members.option('queue', readQueueName) ?? ctx.queue ?? DEFAULT_QUEUE;
  const priority = members.option('priority', readPriority) ?? 0;
  const pending = members.option('pending', readBoolean);
  const scheduledAt = readStart(members, ctx.now);
  const expiresAt = members.option('expires_at', readTime(ctx.now));
  const expiresAtWritten = expiresAt === undefined ? undefined : members.option('expires_at', asWritten(expiresAt));
  const { retry, maxAttempts } = readRetry(members);

  const args = readArgs(input.args, members.at('args'));
  const meta = withTrace(members.option('meta', readMeta) ?? {}, ctx.trace);
  const unique = members.option('unique', (value, field) => readUnique(value, field, { type, queue, args, meta }));
  const limit = members.option('rate_limit', (value, field) => readLimitPolicy(value, field, queue));

  const body: JobBody = { type, args, meta };
  setDefined(body, 'target_url', members.option('target_url', ctx.readTarget ?? refuseTarget));
  setDefined(body, 'timeout_ms', members.option('timeout_ms', readMilliseconds));
  setDefined(body, 'visibility_timeout_ms', members.option('visibility_timeout_ms', readMilliseconds));
  setDefined(body, 'retry', retry);
  setDefined(body, 'max_attempts', maxAttempts);
  setDefined(body, 'scheduled_at', scheduledAt);
  setDefined(body, 'expires_at', expiresAt);
  setDefined(body, 'expires_at_written', expiresAtWritten);
  setDefined(body, 'unique', members.option('unique', unread));
  setDefined(body, 'rate_limit', members.option('rate_limit', unread));
  setDefined(body, 'retention', members.option('retention', readRetention));
  setDefined(body, 'tags', members.option('tags', readTags));
  setDefined(body, 'schema', members.top('schema', readSchema));
  setDefined(body, 'version', members.top('version', readVersion));
  setDefined(body, 'metadata', members.option('metadata', readObject));
  setDefined(body, 'extra', unknownMembers(input));
  if (ctx.unknown) members.noteUnknown(ctx.unknown, body.extra);
  const text = JSON.stringify(body);
  withinBytes(text, MAX_ENVELOPE_BYTES, ctx.path ?? 'body');

  const layer: RetryInput | undefined = maxAttempts === undefined ? retry : { ...retry, max_attempts: maxAttempts };
  const job: NewJob = { type, priority, body: text };
  setDefined(job, 'id', id);
  setDefined(job, 'scheduledAt', scheduledAt);
  setDefined(job, 'expiresAt', expiresAt);
  setDefined(job, 'pending', pending || undefined);
  setDefined(job, 'retry', layer);
  setDefined(job, 'limit', limit);
  const parsed: ParsedJob = { queue, job, body };
  setDefined(parsed, 'unique', unique);
  return parsed;
}

/** Puts the fingerprint of a job's unique policy in its place. Apart from {@link parseJob} because hashing is asynchronous. */
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

/** `meta` is limited on its own because it travels with every event and delivery. */
export const readMeta: Reader<Record<string, unknown>> = (value, field) => {
  const meta = readObject(value, field);
  withinBytes(JSON.stringify(meta), MAX_META_BYTES, field);
  return meta;
};

/** A time, or a duration from `now` on; returns epoch ms. */
export function readTime(now: number): Reader<number> {
  return reader(
    (value) => parseInstant(value, now),
    'must be an RFC 3339 time with a zone, or a duration from now such as "+PT10S"',
  );
}

/** A time, or a duration before `now`; returns epoch ms. */
export function readPast(now: number): Reader<number> {
  return reader(
    (value) => parsePast(value, now),
    'must be an RFC 3339 time with a zone, or a duration such as "24h": so long ago',
  );
}

/** The text of an instant, if it is UTC and differs from the text that Tocsin would write. */
function asWritten(instant: number): Reader<string | undefined> {
  return (value) =>
    typeof value === 'string' && /^\d{4}-.*\dZ$/.test(value) && value !== formatInstant(instant) ? value : undefined;
}

/** The earliest start: absent for now, and for every time that is not in the future. */
function readStart(members: Members, now: number): number | undefined {
  const names: OptionName[] = ['delay_until', 'scheduled_at'];
  names.sort((a, b) => Number(members.inOptions(b)) - Number(members.inOptions(a)));
  const times = names.map((name) => members.option(name, readTime(now)));
  const start = times.find((time) => time !== undefined);
  return start !== undefined && start > now ? start : undefined;
}

/** The job layer of the retry policy; `max_attempts` may stand inside it or beside it, not both. */
function readRetry(members: Members): { retry: RetryInput | undefined; maxAttempts: number | undefined } {
  // Errors name fields from `retry.` on, wherever the policy stands in the request.
  const retry = members.option('retry', (value) => checkRetryLayer(value, members.at('retry')));
  const maxAttempts = members.option('max_attempts', (value, field) => {
    if (retry !== undefined && (retry.max_attempts ?? null) !== null) {
      throw invalidPolicy(field, 'cannot stand beside retry.max_attempts');
    }
    if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_ATTEMPTS) return value as number;
    throw invalidPolicy(field, `must be an integer from 0 to ${MAX_ATTEMPTS}`);
  });
  return { retry, maxAttempts };
}

/** `Object.fromEntries` defines its members, so that a key named `__proto__` is an ordinary one. */
function unknownMembers(input: Record<string, unknown>): Record<string, unknown> | undefined {
  const unknown = Object.keys(input).filter((name) => !JOB_MEMBERS.has(name));
  return unknown.length === 0 ? undefined : Object.fromEntries(unknown.map((name) => [name, input[name]]));
}
