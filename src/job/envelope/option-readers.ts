/** What reads each option of a job, where it is made and where it is changed. */
import { invalidPolicy, invalidRequest } from '../errors';
import { MAX_GROUP_LENGTH } from '../group';
import { LIMIT_POLICY_SCHEMA, type LimitPolicy, readLimitPolicy } from '../limits/policy';
import type { OptionName, OptionsThat } from '../options';
import type { JobBody } from '../record';
import { readRetention, readRetentionChange } from '../retention';
import { checkMaxAttempts, checkRetryLayer } from '../retry/validate';
import { formatInstant, parseInstant } from '../time';
import { type Trace, withTrace } from '../trace';
import { readUnique, type UniqueRequest } from '../unique/policy';
import type { UnknownMembers } from '../unknown-members';
import {
  describe,
  described,
  isObject,
  type Reader,
  readBoolean,
  reader,
  readInteger,
  readList,
  readMilliseconds,
  readName,
  readObject,
  readPathName,
  readQueueName,
  type Schema,
  withinBytes,
} from './fields';
import { MAX_META_BYTES } from './names';

/** A job while it is read: what is known of it so far. An option may look at those before it in the table. */
export interface JobBeingRead {
  /** Epoch ms; relative times count from here. */
  readonly now: number;
  /** Before the names of its members in paths. */
  readonly prefix: string;
  readonly trace: Trace | undefined;
  /** Absent: it may name no target. */
  readonly readTarget: Reader<string> | undefined;
  readonly unknown: UnknownMembers | undefined;
  /** It was accepted before: its times may have passed meanwhile. */
  readonly accepted: boolean;
  /** Does the option that is read stand in `options`? */
  inOptions: boolean;
  readonly body: JobBody;
  queue: string;
  priority: number;
  pending: boolean;
  /** Epoch ms, as it was asked for; and whether that stood in `options`. */
  start: number | undefined;
  startInOptions: boolean;
  unique: UniqueRequest | undefined;
  limit: LimitPolicy | undefined;
}

/** A reader's value goes into the body under the option's name; anything else it puts in place itself. */
type Kept<Name> = Name extends keyof JobBody ? JobBody[Name] | undefined : undefined;

/** Where a change reads an option as an enqueue does, its reader needs nothing else of the job. */
type OptionReader<Name extends OptionName> =
  Name extends OptionsThat<'patch', 'plain'> ? Reader<Kept<Name>> : OwnReader<Kept<Name>>;

/** A reader that needs what is known of the job. It says what it accepts, too. */
interface OwnReader<T> extends Pick<Reader<T>, 'schema'> {
  (value: unknown, field: string, job: JobBeingRead): T;
}

const into = <T>(read: Reader<T>, keep: (value: T, job: JobBeingRead) => void): OwnReader<undefined> =>
  describedAs(read, (value, field, job) => void keep(read(value, field), job));

const describedAs = <T>({ schema }: Pick<Reader<unknown>, 'schema'>, read: OwnReader<T>): OwnReader<T> =>
  Object.assign(read, schema && { schema });

const readPriority = readInteger(-100, 100);

const readSchemaName = readName(2048);
const readSchema: Reader<unknown> = described(
  () => ({ anyOf: [{ type: 'object' }, describe(readSchemaName)] }),
  (value, field) => (isObject(value) ? value : readSchemaName(value, field)),
);

const readVersion: Reader<number | string> = reader(
  (value) => {
    if (Number.isSafeInteger(value)) return value as number;
    const fits = typeof value === 'string' && value !== '' && value.length <= 255 && !value.includes('\0');
    return fits ? value : undefined;
  },
  'must be an integer or a string of 1 to 255 characters',
  { type: ['integer', 'string'], minLength: 1, maxLength: 255 },
);

/** `meta` is limited on its own because it travels with every event and delivery. */
export const readMeta: Reader<Record<string, unknown>> = (value, field) => {
  const meta = readObject(value, field);
  withinBytes(JSON.stringify(meta), MAX_META_BYTES, field);
  return meta;
};

/** A time, or a duration from `now` on; returns epoch ms. */
export function readInstant(value: unknown, field: string, { now }: { now: number }): number {
  const instant = parseInstant(value, now);
  if (instant !== undefined) return instant;
  const rule = 'must be an RFC 3339 time with a zone, or a duration from now such as "+PT10S"';
  throw invalidRequest(field, `${field} ${rule}.`);
}

/** Refuses a job that expires before it may start; an expiry in the past only warns. @throws {ApiError} 422 */
function checkExpiry(expiry: number, field: string, { now, start, unknown }: JobBeingRead): void {
  if (start !== undefined && start > now) mustBeAfterStart(expiry, start, field);
  else if (expiry <= now) unknown?.warn(field, 'is in the past: the job is discarded without a run.');
}

/** Can a job start before it expires? Both epoch ms. @throws {ApiError} 422 */
export function mustBeAfterStart(expiry: number, start: number, field: string): void {
  if (expiry > start) return;
  const times = `${formatInstant(expiry)}, and the job does not start before ${formatInstant(start)}`;
  throw invalidPolicy(field, `must be later than the start of the job: it is ${times}. Set a later time, or none.`);
}

/** Either name of the start: what stands in `options` goes first, then `delay_until`, which is read last. */
function readStart(value: unknown, field: string, job: JobBeingRead): undefined {
  const start = readInstant(value, field, job);
  if (job.start !== undefined && job.startInOptions && !job.inOptions) return;
  job.start = start;
  job.startInOptions = job.inOptions;
}

const readGroup = readPathName(MAX_GROUP_LENGTH);
const readStoredGroup = readName(MAX_GROUP_LENGTH);

export const OPTION_READERS: { readonly [Name in OptionName]: OptionReader<Name> } = {
  queue: into(readQueueName, (queue, job) => {
    job.queue = queue;
  }),
  priority: into(readPriority, (priority, job) => {
    job.priority = priority;
  }),
  pending: into(readBoolean, (pending, job) => {
    job.pending = pending;
  }),
  scheduled_at: readStart,
  delay_until: readStart,
  expires_at(value, field, job) {
    const instant = readInstant(value, field, job);
    // The text of an instant, if it is UTC and differs from the text that Tocsin would write.
    const isUtc = typeof value === 'string' && /^\d{4}-.*\dZ$/.test(value);
    if (isUtc && value !== formatInstant(instant)) job.body.expires_at_written = value;
    if (!job.accepted) checkExpiry(instant, field, job);
    return instant;
  },
  timeout_ms: readMilliseconds,
  visibility_timeout_ms: readMilliseconds,
  // Errors name fields from `retry.` on, wherever the policy stands in the request.
  retry: (value, _, job) => checkRetryLayer(value, `${job.prefix}retry`),
  max_attempts: describedAs(checkMaxAttempts, (value, field, job) => {
    // It may stand inside the policy or beside it, not both.
    if ((job.body.retry?.max_attempts ?? null) !== null) {
      throw invalidPolicy(field, 'cannot be combined with retry.max_attempts');
    }
    return checkMaxAttempts(value, field);
  }),
  meta: describedAs(readObject, (value, field, job) => withTrace(readMeta(value, field), job.trace)),
  tags: readList(50, readName(128)),
  retention: readRetention,
  target_url(value, field, job) {
    if (job.readTarget) return job.readTarget(value, field);
    throw invalidRequest(
      field,
      `${field} is not supported for schedules and workflows: map the type to the URL instead.`,
    );
  },
  // These two are stored as they are written.
  unique(value, field, job) {
    const { type, args, meta } = job.body;
    const delay = job.start === undefined ? 0 : Math.max(0, job.start - job.now);
    job.unique = readUnique(value, field, { type, queue: job.queue, args, meta, delay });
    return value;
  },
  rate_limit: describedAs({ schema: LIMIT_POLICY_SCHEMA }, (value, field, job) => {
    job.limit = readLimitPolicy(value, field, job.queue);
    return value;
  }),
  // One that was stored by an earlier version may have a name that no path can have.
  group: describedAs(readGroup, (value, field, { accepted }) => (accepted ? readStoredGroup : readGroup)(value, field)),
  schema: readSchema,
  version: readVersion,
  metadata: readObject,
};

/** Options whose change is read, or made, in a way of its own. */
type OwnChange = OptionsThat<'patch', 'itself'>;

const OWN_CHANGES: {
  readonly [Name in OwnChange]: (value: unknown, field: string, at: { now: number }) => unknown;
} = {
  priority: readPriority,
  scheduled_at: readInstant,
  delay_until: readInstant,
  expires_at: readInstant,
  retry: (value, field) => checkRetryLayer(value, field),
  max_attempts: checkMaxAttempts,
  retention: readRetentionChange,
};

/** Reads the change of an option. @param at epoch ms; relative times count from here */
export const readChange = (name: OptionsThat<'patch'>, value: unknown, field: string, at: { now: number }): unknown =>
  name in OWN_CHANGES
    ? OWN_CHANGES[name as OwnChange](value, field, at)
    : OPTION_READERS[name as OptionsThat<'patch', 'plain'>](value, field);

/** What an option may be, beside null: a JSON Schema. */
export const optionSchema = (name: OptionName): Schema => describe(OPTION_READERS[name]);
