import { DEFAULT_QUEUE } from '../job/options';
import { messageOf } from '../job/thrown';
import { findEmptied } from './emptied';
import type { Duration, RetentionOptions, RetryPolicy } from './envelope';
import { InvalidJobError } from './errors';
import { namesOf, refuseUnknown } from './known';
import type { RateLimitOptions } from './limits';
import { memberOf, wired, wireName } from './names';
import { CLIENT_OPTIONS, type ClientOption, clientOptionsThat } from './options';
import type { UniqueOptions } from './unique';

/** A moment: a Date, epoch milliseconds, or RFC 3339 with a zone. */
export type Moment = Date | number | string;

type Start =
  | {
      /** Start at the earliest after this time, by the server's clock: ms, or `"10s"`, `"PT10S"`. */
      delay?: Duration | undefined;
      delayUntil?: undefined;
    }
  | {
      /** Start at the earliest at this moment. A moment in the past means now. */
      delayUntil?: Moment | undefined;
      delay?: undefined;
    };

type Runs =
  | {
      /** The job's own retry policy; fields left out come from its type, its queue, the deployment. */
      retry?: RetryPolicy | undefined;
      maxAttempts?: undefined;
    }
  | {
      retry?: (RetryPolicy & { maxAttempts?: never }) | undefined;
      /** Runs in all. */
      maxAttempts?: number | undefined;
    };

interface Settings {
  /** Default `default`. */
  queue?: string | undefined;
  /** −100 … 100, higher first. Default 0. */
  priority?: number | undefined;
  /** No attempt starts at or after this moment, retries included. It must be later than the start of the job. */
  expiresAt?: Moment | undefined;
  /** How long a run may take, in ms. */
  timeoutMs?: number | undefined;
  /** Length of a lease, in ms. */
  visibilityTimeoutMs?: number | undefined;
  tags?: readonly string[] | undefined;
  /** At most 64 KiB of JSON, handed to the handler and kept with the job. */
  meta?: Record<string, unknown> | undefined;
  /** How long the job can be read after its end. Default: as its queue says. */
  retention?: RetentionOptions | undefined;
  /** Wait in state `pending` until activated. */
  pending?: boolean | undefined;
  /** How many run at once or in a period, together with other jobs of the same key. */
  rateLimit?: RateLimitOptions | undefined;
  /**
   * Whose job it is: 1 to 255 characters. Its queue may serve groups fairly or in strict order, and limit each.
   * Default: the key of `rateLimit`.
   */
  group?: string | undefined;
  schema?: string | undefined;
  version?: number | string | undefined;
}

/** Options of any job beside its type and arguments, also in workflows. All optional. */
export type StepOptions = Settings & Start & Runs;

/** Options of the jobs of a schedule. Each fire makes one, so an id cannot be chosen. */
export type CronJobOptions = StepOptions & { unique?: UniqueOptions | undefined };

/** Options of one job of many. */
export type JobOptions = CronJobOptions & {
  /** Sends the job to this URL, whatever its type is mapped to. The deployment must allow its host. */
  targetUrl?: string | undefined;
  /** Your own UUIDv7. The job is then enqueued at most once, and an enqueue without an answer is repeated. */
  id?: string | undefined;
};

/** Options of a job that is enqueued on its own. */
export type EnqueueOptions = JobOptions & {
  /**
   * 1 … 256 characters. For 24 hours the same enqueue under it returns the same job; it is sent alone, and repeated.
   */
  idempotencyKey?: string | undefined;
};

/** A job of many. */
export interface NewJob<
  Type extends string = string,
  Args extends readonly unknown[] = readonly unknown[],
  Options = JobOptions,
> {
  type: Type;
  args: Args;
  options?: Options | undefined;
}

export interface PreparedJob {
  type: string;
  queue: string;
  /** Present when the client chose the id, so that sending it twice makes one job. */
  id: string | undefined;
  idempotencyKey: string | undefined;
  /** Headers of the trace that it belongs to, where its text does not say it. */
  trace?: Readonly<Record<string, string>>;
  /** JSON text, taken at the enqueue: later changes of its arguments do not matter. */
  json: string;
}

/** Options that the server does not know as such: what the client makes of them says the rest. */
const OWN_OPTIONS = namesOf<Omit<EnqueueOptions, ClientOption>>({ delay: true, id: true, idempotencyKey: true });

const ENQUEUE_OPTIONS: ReadonlySet<string> = new Set([...CLIENT_OPTIONS, ...OWN_OPTIONS]);
export const JOB_OPTIONS: ReadonlySet<string> = new Set(
  [...ENQUEUE_OPTIONS].filter((name) => name !== 'idempotencyKey'),
);
/** What is next to `options`; `meta` may stand there too. */
const BESIDE = namedPairs(clientOptionsThat('beside'));
const IN_OPTIONS = namedPairs(
  CLIENT_OPTIONS.filter((name) => name !== 'meta' && !BESIDE.some(([other]) => other === name)),
);
const MOMENTS: ReadonlySet<string> = new Set(clientOptionsThat('moment'));
const NEW_JOB = namesOf<NewJob>({ type: true, args: true, options: true });

/** Refuses members beside those of a job of many: an option that stands there would be lost. @throws {TypeError} */
export function refuseBeside(job: NewJob<string, readonly unknown[], object>): void {
  refuseUnknown(job, NEW_JOB, `Besides its options, the job ${job.type} has no`);
}

function namedPairs<Name extends string>(names: readonly Name[]): [name: Name, onWire: string][] {
  return names.map((name) => [name, wireName(name)]);
}

/**
 * A job as the server reads it. @throws {InvalidJobError} when its options contradict each other
 * @throws {TypeError} for an option that does not exist
 */
export function wireJob(
  type: string,
  args: readonly unknown[],
  options: EnqueueOptions,
  known = JOB_OPTIONS,
): Record<string, unknown> {
  refuseUnknown(options, known, type === '' ? 'A job has no option' : `The job ${type} has no option`);
  const job: Record<string, unknown> = { type, args, meta: options.meta };
  for (const [name, onWire] of BESIDE) job[onWire] = options[name];
  job.options = wireOptions(options);
  return job;
}

/** JSON text in the wire's names. @throws {InvalidJobError} when there is none, or JSON would empty a part of it */
export function jsonOf(content: unknown, what?: string): string {
  return writtenWhole(wired(content), what);
}

/** JSON text. @throws {InvalidJobError} naming the member that JSON would empty */
function writtenWhole(content: unknown, what = 'The job'): string {
  const found = findEmptied(content, '');
  if (found) throw invalid(`${what} is not JSON: at ${found.path} ${found.problem}.`, found.path);
  return written(() => JSON.stringify(content), what);
}

function written<T>(write: () => T, what = 'The job'): T {
  try {
    return write();
  } catch (cause) {
    throw invalid(`${what} is not JSON: ${messageOf(cause)}`, 'args', cause);
  }
}

/**
 * Writes a job as the server reads it. @param newId for jobs without an id @param known its possible options
 * @throws {InvalidJobError} when it cannot be JSON, or its options contradict each other
 * @throws {TypeError} for an option that does not exist
 */
export function prepare(
  type: string,
  args: readonly unknown[],
  options: EnqueueOptions,
  newId?: (queue: string) => string | undefined,
  known = ENQUEUE_OPTIONS,
): PreparedJob {
  const { queue = DEFAULT_QUEUE, idempotencyKey } = options;
  // Under a key the same request must be the same text. An id chosen here would differ when the producer repeats the
  // call. What accumulates becomes a part of another job, so an id would not tell whether it has arrived.
  const isNamed = idempotencyKey === undefined && options.unique?.onConflict !== 'accumulate';
  const chosenId = options.id ?? (isNamed ? newId?.(queue) : undefined);
  const job = wireJob(type, args, options, known);
  const text = writtenWhole(job);
  const json = chosenId === undefined ? text : `{"id":${JSON.stringify(chosenId)},${text.slice(1)}`;
  return { type, queue, id: chosenId, idempotencyKey, json };
}

function wireOptions(options: EnqueueOptions): Record<string, unknown> {
  const wire: Record<string, unknown> = {};
  for (const [name, onWire] of IN_OPTIONS) {
    const value = name === 'delayUntil' ? startText(options) : options[name];
    if (value === undefined) continue;
    if (MOMENTS.has(name)) wire[onWire] = momentText(value as Moment, name);
    else wire[onWire] = written(() => memberOf(name, value, wireName));
  }
  return wire;
}

/** When to start, from either spelling. @throws {InvalidJobError} for both, possible only without types */
function startText({ delay, delayUntil }: Pick<EnqueueOptions, 'delay' | 'delayUntil'>): string | undefined {
  if (delay === undefined) return momentText(delayUntil, 'delayUntil');
  if (delayUntil !== undefined) throw invalid('Use delay or delayUntil, not both.', 'options.delay');
  return relativeText(delay);
}

/** Strings are sent as they are: the server reads RFC 3339 and refuses anything else. */
export function momentText(value: Moment | undefined, name: string): string | undefined {
  if (value === undefined || typeof value === 'string') return value;
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) throw invalid(`${name} is not a valid date.`, `options.${name}`);
  return date.toISOString();
}

/** Refuses a duration in a field that takes a time. The server would read a bare number as something else. */
export function relativeText(delay: Duration): string {
  const ms = typeof delay === 'string' && /^\d+$/.test(delay) ? Number(delay) : delay;
  if (typeof ms === 'string') return ms;
  if (!Number.isFinite(ms) || ms < 0) throw invalid('delay must not be negative.', 'options.delay');
  return `+PT${(Math.round(ms) / 1000).toFixed(3)}S`;
}

export function invalid(message: string, field: string, cause?: unknown): InvalidJobError {
  return new InvalidJobError(message, {
    status: 0,
    code: 'unserialisable',
    retryable: false,
    details: { field },
    cause,
  });
}
