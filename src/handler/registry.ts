/** The handlers of a Worker by job type, checked when the module loads, so that a mistake stops the deploy. */
import { isJobType } from '../job/envelope/names';
import { fnv1a } from '../job/fnv';
import { orThrow } from '../job/thrown';
import { UNDO_SUFFIX } from '../job/undo-names';
import type { RetryPolicy } from '../job/wire';
import { DEFAULT_NAMES, type EnqueueDefaults } from '../producer/defaults';
import type { Duration } from '../producer/envelope';
import { refuseUnknown } from '../producer/known';
import { wired, wireName } from '../producer/names';
import { isSchema, withArguments } from './arguments';
import { type Around, checkAround, type Surrounded, takesContext, within } from './around';
import { type Batch, batchOf } from './batched';
import { requireDuration } from './duration';
import { isObject } from './protocol';
import type { StandardSchema } from './schema';
import { Slots } from './slots';
import type { HandlerDefinition, HandlerFunction, RetryFunction } from './types';
import { undoing, undoTable } from './undo';

/** The type whose handler runs jobs that have no handler of their own. */
export const CATCH_ALL = '*';

/** The longest timeout of a pushed job. */
export const MAX_TIMEOUT_MS = 900_000;
const MAX_ATTEMPTS = 2_147_483_647;

const SETTINGS = [
  ...['handler', 'args', 'retry', 'timeoutMs', 'maxAttempts', 'concurrency', 'defaults', 'undo', 'undoRetry'],
  'onDrift',
];
const POLICY_FIELDS = [
  ...['preset', 'max_attempts', 'backoff_strategy', 'backoff_type', 'strategy', 'backoff', 'initial_interval'],
  ...['initial_interval_ms', 'backoff_coefficient', 'max_interval', 'max_interval_ms', 'offset', 'offset_ms'],
  ...['first_index', 'table', 'jitter', 'non_retryable_errors', 'on_exhaustion', 'on_crash'],
];

export interface ChunkHandler extends Batch {
  args?: StandardSchema<unknown, readonly unknown[]> | undefined;
}

/** What a handler says of itself to the queue of a worker that pulls. */
export interface HandlerSays {
  type: string;
  retry: RetryPolicy | undefined;
  maxAttempts: number | undefined;
  batch?: { size: number; waitMs: number; by?: 'group' };
}

/** A handler with its settings, ready to run. */
export interface Registration
  extends Pick<HandlerDefinition, 'timeoutMs' | 'maxAttempts' | 'concurrency' | 'defaults' | 'onDrift'> {
  type: string;
  /** The handler, inside of the middleware. A chunked one has another. */
  run: Surrounded;
  chunk?: ChunkHandler;
  /** May it say something while it runs? Announced, so that its calls stay open. */
  talks: boolean;
  /** Announced to the queue. */
  policy?: RetryPolicy;
  /** Asked after a failure. */
  delay?: RetryFunction;
  slots?: Slots | undefined;
  canUndo?: (name: string) => boolean;
}

export class Registry {
  readonly #byType: Map<string, Registration>;
  /** Names what is announced: another name means other types or settings. */
  readonly version: string;

  /** @throws {TypeError} naming the type and the setting that is wrong. */
  constructor(
    handlers: unknown,
    readonly around: Around = {},
  ) {
    checkAround(around);
    const entries = typeof handlers === 'function' ? { [CATCH_ALL]: handlers } : handlers;
    if (!isObject(entries)) throw new TypeError('handlers: expected an object of handlers, or a function');
    this.#byType = new Map(Object.entries(entries).map(([type, entry]) => [type, register(type, entry, around)]));
    for (const [type, entry] of Object.entries(entries)) this.#addUndo(type, entry);
    if (this.#byType.size === 0) throw new TypeError('handlers: there are none');
    this.version = (fnv1a(JSON.stringify(this.#types())) >>> 0).toString(16).padStart(8, '0');
  }

  /** The handler for a job type: its own, else the catch-all. */
  find(type: string): Registration | undefined {
    return this.#byType.get(type) ?? this.#byType.get(CATCH_ALL);
  }

  /** The types that can be run; undefined: any. */
  typeNames(): string[] | undefined {
    return this.#byType.has(CATCH_ALL) ? undefined : [...this.#byType.keys()];
  }

  /** What producers of a type leave unsaid. */
  defaultsOf(type: string): EnqueueDefaults | undefined {
    return this.#byType.get(type)?.defaults;
  }

  /** What the handlers say to the queue of a worker that pulls. @param all those included that say nothing */
  settings(all: boolean): HandlerSays[] {
    const says = [...this.#byType.values()].map(({ type, policy, maxAttempts, chunk }) => {
      const { size, wait_ms: waitMs, by } = chunk?.settings ?? {};
      const batch = size === undefined || waitMs === undefined ? undefined : { size, waitMs, ...(by && { by }) };
      return { type, retry: policy, maxAttempts, ...(batch && { batch }) };
    });
    return all ? says : says.filter(({ retry, maxAttempts, batch }) => (retry ?? maxAttempts ?? batch) !== undefined);
  }

  /** The answer to `GET /.well-known/tocsin`: the types in the order in which they were written. */
  announcement() {
    return { types: this.#types(), payload: 'batch', control: true, recalls: true, version: this.version };
  }

  #addUndo(type: string, entry: unknown): void {
    const { undo, undoRetry, timeoutMs } = isObject(entry) ? entry : {};
    const own = this.#byType.get(type) as Registration;
    if (undo === undefined && undoRetry === undefined) return;
    if (type === CATCH_ALL || own.chunk)
      throw wrong(type, 'has undo, which only a handler of one type and job can have');
    const table = undoTable(type, undo, undoRetry);
    own.canUndo = (name) => table.find(name) !== undefined;
    const name = `${type}${UNDO_SUFFIX}`;
    if (this.#byType.has(name)) throw wrong(name, `has a handler, but undo of ${JSON.stringify(type)} adds one`);
    this.#byType.set(name, register(name, { handler: undoing(type, table), timeoutMs }, this.around));
  }

  #types() {
    return [...this.#byType.values()].map((entry) => ({
      type: entry.type,
      retry: entry.policy,
      timeout_ms: entry.timeoutMs,
      max_attempts: entry.maxAttempts,
      concurrency: entry.concurrency,
      batch: entry.chunk?.settings,
      talks: entry.talks || undefined,
    }));
  }
}

function register(type: string, entry: unknown, around: Around): Registration {
  if (type !== CATCH_ALL && !isJobType(type)) {
    throw wrong(type, 'is not a job type; use lower-case words joined by dots, such as "email.send"');
  }
  if (isFunction<HandlerFunction>(entry)) return { type, ...surrounded(entry, undefined, around) };
  if (entry === undefined) throw wrong(type, 'has no handler');
  const bare = batchOf(entry);
  if (bare) return { type, ...together(bare, undefined) };
  if (!isObject(entry)) throw wrong(type, 'needs a function, or an object with a handler');
  for (const [name, value] of Object.entries(entry)) {
    if (!SETTINGS.includes(name) && value !== undefined) {
      throw wrong(type, `has an unknown option ${JSON.stringify(name)}; known are ${SETTINGS.join(', ')}`);
    }
  }
  const batch = batchOf(entry.handler);
  if (!batch && !isFunction<HandlerFunction>(entry.handler)) throw wrong(type, 'needs a function as its handler');
  if (entry.args !== undefined && !isSchema(entry.args)) {
    throw wrong(type, 'needs a schema as args, of a library that follows Standard Schema');
  }
  const onDrift = entry.onDrift as Registration['onDrift'];
  if (![undefined, 'warn', 'fail'].includes(onDrift)) throw wrong(type, 'needs warn or fail as onDrift');
  const timeoutMs = integer(type, 'timeoutMs', entry.timeoutMs, 1, MAX_TIMEOUT_MS);
  const maxAttempts = integer(type, 'maxAttempts', entry.maxAttempts, 0, MAX_ATTEMPTS);
  const concurrency = integer(type, 'concurrency', entry.concurrency, 1, Number.MAX_SAFE_INTEGER);
  return {
    type,
    ...(batch ? together(batch, entry.args) : surrounded(entry.handler as HandlerFunction, entry.args, around)),
    ...retryOf(type, entry.retry, maxAttempts),
    timeoutMs,
    maxAttempts,
    concurrency,
    onDrift,
    slots: concurrency === undefined ? undefined : new Slots(concurrency),
    defaults: defaultsOf(type, entry.defaults),
  };
}

/** The handler with its arguments checked, inside of the middleware. */
function surrounded(
  handler: HandlerFunction,
  args: StandardSchema<unknown, readonly unknown[]> | undefined,
  around: Around,
): Pick<Registration, 'run' | 'talks'> {
  const checked = args === undefined ? handler : withArguments(args, handler);
  // A handler of one parameter, or none, has no context to speak through.
  const talks = (handler.length !== 0 && handler.length !== 1) || takesContext(around);
  return { run: within(around.use ?? [], checked), talks };
}

/** A chunked handler. It says nothing while it runs that belongs to a single job. */
function together(batch: Batch, args: ChunkHandler['args']): Pick<Registration, 'run' | 'talks' | 'chunk'> {
  const run = () => Promise.reject(new TypeError('a chunked handler takes several jobs'));
  return { run, talks: false, chunk: { ...batch, args } };
}

function retryOf(
  type: string,
  retry: unknown,
  maxAttempts: number | undefined,
): Pick<Registration, 'policy' | 'delay'> {
  if (retry === undefined) return {};
  if (isFunction<RetryFunction>(retry)) return { delay: retry };
  if (!isObject(retry)) throw wrong(type, 'needs a policy object or a function as retry');
  for (const name of Object.keys(retry)) {
    if (!POLICY_FIELDS.includes(wireName(name)))
      throw wrong(type, `has an unknown field ${JSON.stringify(name)} in retry`);
  }
  const notJson = () => wrong(type, 'has a retry policy that is not JSON');
  const policy: RetryPolicy = orThrow(() => JSON.parse(JSON.stringify(wired(retry))), notJson);
  if (maxAttempts !== undefined && policy.max_attempts !== undefined) {
    throw wrong(type, 'has maxAttempts and retry.maxAttempts; keep one');
  }
  return { policy };
}

function defaultsOf(type: string, given: unknown): EnqueueDefaults | undefined {
  if (given === undefined) return undefined;
  if (type === CATCH_ALL) throw wrong(type, 'has defaults, which only a handler of one type can have');
  if (!isObject(given)) throw wrong(type, 'needs an object as defaults');
  refuseUnknown(given, DEFAULT_NAMES, `handlers: ${JSON.stringify(type)} has no default`);
  const { queue, tags, unique, delay } = given;
  if (queue !== undefined && (typeof queue !== 'string' || queue === ''))
    throw wrong(type, 'needs a name as its queue');
  integer(type, 'priority', given.priority, -100, 100);
  const isTags = Array.isArray(tags) && tags.every((tag) => typeof tag === 'string');
  if (tags !== undefined && !isTags) throw wrong(type, 'needs a list of strings as its tags');
  if (unique !== undefined && !isObject(unique)) throw wrong(type, 'needs an object as unique');
  if (delay !== undefined) requireDuration(delay as Duration, `handlers: the delay of ${JSON.stringify(type)}`);
  return given;
}

function integer(type: string, name: string, value: unknown, min: number, max: number): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
  throw wrong(type, `needs a whole number of ${min} to ${max} as ${name}, not ${String(value)}`);
}

const wrong = (type: string, problem: string): TypeError =>
  new TypeError(`handlers: ${JSON.stringify(type)} ${problem}`);

const isFunction = <T extends HandlerFunction | RetryFunction>(value: unknown): value is T =>
  typeof value === 'function';
