/**
 * Which handler takes which jobs. `HANDLERS` maps `[queue/]type-pattern` to a service binding or a URL:
 *
 *     [vars.HANDLERS]
 *     "email.*" = "EMAIL"                     # jobs of these types, in any queue
 *     "reports/*" = "REPORTS"                 # every job of the queue `reports`
 *     "image.resize" = { binding = "IMAGES", batch_size = 20, timeout_ms = 60000 }
 *     "crm.*" = "https://crm.example/hooks/jobs"   # signed with TARGET_SECRET
 *     "invoice.*" = { url = "https://pay.example/jobs", secret_binding = "PAY_SECRET", signature = ["ojs"] }
 *
 * The most specific pattern wins: one that names the queue before one that does not, then the longer one. A queue named
 * in a pattern belongs to handlers: a job there that no pattern takes has no handler. In all other queues, jobs that no
 * pattern takes wait for workers that pull.
 */
import { DELIVERY_BOUNDS } from '../declaration';
import { type ChunkSettings, readChunk } from '../job/chunk';
import { defined, readInteger, readWord } from '../job/envelope/fields';
import { readMembers } from '../job/envelope/members';
import { isQueueName } from '../job/envelope/names';
import { invalidConfiguration, outcomeOf } from '../job/errors';
import { own } from '../job/own';
import { orThrow } from '../job/thrown';
import { UNDO_SUFFIX } from '../job/undo-names';
import { Remote } from './remote';
import { readSigning, type Wrong } from './signing';
import { type Allows, parseTargetUrl, TARGET_URL_RULE } from './target-url';

/** The form of a call: several jobs, one job with its delivery, or the bare job. */
export type Payload = 'batch' | 'envelope' | 'job';

/** How a target is called: the used part of a service binding. It makes its request itself, so none is made twice. */
export interface Binding {
  fetch(url: string, init: RequestInit): Promise<Response>;
}

export interface TargetPattern {
  /** Only in this queue; absent: in any. */
  queue?: string;
  /** A job type, a prefix ending in `.*`, or `*`. */
  type: string;
}

export interface TargetConfig {
  /** Distinguishes targets of the same name with different options: the name, numbered from the second on. */
  id: string;
  /** The name of the binding, or the URL's host: names the target in errors, events and worker ids. */
  name: string;
  binding: Binding;
  /** It is called over the network: it may be unreachable, and it announces nothing. */
  isRemote?: true;
  /**
   * The queues in which its answers may enqueue; `*`: in any. Absent: in any, because the Worker is one of this
   * account. A URL's owner has no key, so only its mapping can allow it.
   */
  mayEnqueue?: readonly string[];
  /** It takes the jobs that name such a URL, and no others; each is sent to its own. */
  takesUrl?(url: string): boolean;
  patterns: TargetPattern[];
  /** Fixed by configuration; absent: the form that the Worker announces, else `envelope`. */
  payload?: Payload;
  /** Jobs per call, 1 … 100. Default 10. */
  batchSize: number;
  /** Its jobs run by the chunk, whatever it announces. */
  chunk?: ChunkSettings;
  /** Execution limit in ms for jobs that name none, 1 … 900000. Default 30000. */
  timeoutMs: number;
  /** Jobs running in this Worker at once, for each queue. Absent: the queue's concurrency alone. */
  maxConcurrency?: number;
}

const PATTERN =
  /^(?:(?<queue>[a-z0-9][a-z0-9.-]{0,127})\/)?(?<type>\*|[a-z][a-z0-9_-]*(?:\.[a-z][a-z0-9_-]*)*(?:\.\*)?)$/;

export const TARGET_DEFAULTS = { batchSize: 10, timeoutMs: 30_000 } as const;

const readCommon = readMembers({
  batch_size: readInteger(1, DELIVERY_BOUNDS.batchSize),
  batch: readChunk,
  timeout_ms: readInteger(1, DELIVERY_BOUNDS.timeoutMs),
  max_concurrency: readInteger(1, DELIVERY_BOUNDS.maxConcurrency),
  payload: readWord(['batch', 'envelope', 'job']),
});
export const BINDING_OPTIONS = ['binding', ...readCommon.names];
export const URL_OPTIONS = ['url', 'secret', 'secret_binding', 'signature', 'may_enqueue', ...readCommon.names];

const wrong: Wrong = (message, details = {}) =>
  invalidConfiguration(`HANDLERS: ${message}`, { variable: 'HANDLERS', ...details });

/**
 * Reads `HANDLERS`, a table or its JSON text.
 * @param allows `loopback`: URLs may lead to this machine, for development
 * @throws {ApiError} 500 `invalid_configuration` naming the entry, or the binding that does not exist
 */
export function readTargets(
  handlers: unknown,
  env: Record<string, unknown>,
  allows: Allows = { loopback: false },
): TargetConfig[] {
  const targets = new Map<string, TargetConfig>();
  for (const [key, value] of Object.entries(asTable(handlers))) {
    const match = PATTERN.exec(key);
    if (!match?.groups) throw wrong(`"${key}" is not of the form [queue/]type, [queue/]prefix.* or [queue/]*`, { key });
    const options = typeof value === 'string' ? { [value.includes('://') ? 'url' : 'binding']: value } : value;
    if (typeof options !== 'object' || options === null) {
      throw wrong(`"${key}" must name a binding or a URL, or be a table with one`, { key });
    }
    const isUrl = 'url' in options;
    const read = isUrl ? readUrlTarget : readBindingTarget;
    const target = read({ key, options: options as Record<string, unknown>, env, allows });
    const identity = JSON.stringify({ ...target, binding: isUrl ? options : undefined });
    const known = targets.get(identity) ?? { ...target, id: newId(target.name, targets.values()) };
    const { queue, type } = match.groups as { queue?: string; type: string };
    known.patterns.push({ type, ...defined({ queue }) });
    targets.set(identity, known);
  }
  return [...targets.values()];
}

function newId(name: string, known: Iterable<TargetConfig>): string {
  const namesakes = [...known].filter((target) => target.name === name).length;
  return namesakes === 0 ? name : `${name}#${namesakes + 1}`;
}

function asTable(handlers: unknown): Record<string, unknown> {
  if (handlers === undefined || handlers === null || handlers === '') return {};
  const notJson = () => wrong('is not valid JSON');
  const table: unknown = typeof handlers === 'string' ? orThrow(() => JSON.parse(handlers), notJson) : handlers;
  if (typeof table !== 'object' || table === null || Array.isArray(table)) throw wrong('must be a table');
  return table as Record<string, unknown>;
}

interface HandlerEntry {
  key: string;
  options: Record<string, unknown>;
  env: Record<string, unknown>;
  allows: Allows;
}

function readBindingTarget({ key, options, env }: HandlerEntry): TargetConfig {
  refuseUnknown(key, options, BINDING_OPTIONS);
  const name = options.binding;
  if (typeof name !== 'string' || name === '') throw wrong(`"${key}" must name a binding or a url`, { key });
  const binding = own(env, name);
  if (typeof binding !== 'object' || binding === null || typeof (binding as Binding).fetch !== 'function') {
    throw wrong(`"${key}" is mapped to the binding ${name}, which does not exist or is not a service`, {
      key,
      missing: [name],
    });
  }
  return { id: name, name, binding: binding as Binding, ...commonIn(key, options) };
}

function readUrlTarget({ key, options, env, allows }: HandlerEntry): TargetConfig {
  refuseUnknown(key, options, URL_OPTIONS);
  const url = typeof options.url === 'string' ? parseTargetUrl(options.url, allows) : undefined;
  if (!url) throw wrong(`"${key}": url ${TARGET_URL_RULE}`, { key, option: 'url' });
  const signing = readSigning(key, options, env, wrong);
  const common = { mayEnqueue: readMayEnqueue(key, options.may_enqueue), ...commonIn(key, options) };
  return { id: url.host, name: url.host, binding: new Remote(signing, url.href), isRemote: true, ...common };
}

function readMayEnqueue(key: string, value: unknown = []): string[] {
  const queues = value === '*' ? ['*'] : value;
  if (
    Array.isArray(queues) &&
    queues.every((queue) => queue === '*' || (typeof queue === 'string' && isQueueName(queue)))
  )
    return queues;
  throw wrong(`"${key}": may_enqueue must be a list of queues, or "*" for all`, { key, option: 'may_enqueue' });
}

function refuseUnknown(key: string, options: Record<string, unknown>, known: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) throw wrong(`"${key}": unknown option ${unknown}`, { key, option: unknown });
}

function commonIn(key: string, options: Record<string, unknown>) {
  const outcome = outcomeOf(() => readCommon(options, ''));
  if (!outcome.ok) {
    const { message, details } = outcome.error;
    throw wrong(`"${key}": ${message.replace(/\.$/, '')}`, { key, option: details?.field });
  }
  const { payload, batch: chunk, batch_size, timeout_ms, max_concurrency: maxConcurrency } = outcome.value;
  if (chunk && payload !== undefined && payload !== 'batch') {
    throw wrong(`"${key}": batch needs the payload batch, or none`, { key, option: 'payload' });
  }
  return {
    patterns: [] as TargetPattern[],
    ...defined({ payload: chunk ? ('batch' as const) : payload, chunk, maxConcurrency }),
    batchSize: batch_size ?? TARGET_DEFAULTS.batchSize,
    timeoutMs: timeout_ms ?? TARGET_DEFAULTS.timeoutMs,
  };
}

/** How well a pattern matches: undefined when it does not, else larger for a more specific one. */
function specificity(pattern: TargetPattern, queue: string, type: string): number | undefined {
  if (pattern.queue !== undefined && pattern.queue !== queue) return undefined;
  const wild = pattern.type.endsWith('*');
  // Who takes a type undoes its steps.
  const isExact = type === pattern.type || type === `${pattern.type}${UNDO_SUFFIX}`;
  if (wild ? !type.startsWith(pattern.type.slice(0, -1)) : !isExact) return undefined;
  return (pattern.queue === undefined ? 0 : 10_000) + pattern.type.length * 2 + (wild ? 0 : 1);
}

/**
 * The target for a job in a queue, or undefined when there is none.
 * @param url the one that the job names: only a target that takes it is used, whatever the type is mapped to
 */
export function targetFor(
  targets: readonly TargetConfig[],
  queue: string,
  type: string,
  url?: string,
): TargetConfig | undefined {
  if (url !== undefined) return targets.find(({ takesUrl }) => takesUrl?.(url));
  let best: TargetConfig | undefined;
  let bestFit = -1;
  for (const target of targets) {
    for (const pattern of target.patterns) {
      const fits = specificity(pattern, queue, type);
      if (fits !== undefined && fits > bestFit) {
        best = target;
        bestFit = fits;
      }
    }
  }
  return best;
}

/** Can any job of this queue be pushed? */
export function takesFrom(target: TargetConfig, queue: string): boolean {
  if (target.takesUrl) return true;
  return target.patterns.some((pattern) => pattern.queue === undefined || pattern.queue === queue);
}

/** Does some target take every type of job in this queue? */
export function coversQueue(targets: readonly TargetConfig[], queue: string): boolean {
  return targets.some((target) =>
    target.patterns.some((pattern) => pattern.type === '*' && (pattern.queue ?? queue) === queue),
  );
}

/** Does the queue belong to handlers, so that a job without one is a mistake rather than work for a pulling worker? */
export function ownsQueue(targets: readonly TargetConfig[], queue: string): boolean {
  return targets.some((target) => target.patterns.some((pattern) => pattern.queue === queue));
}
