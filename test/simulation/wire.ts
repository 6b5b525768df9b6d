/** Orders of the model as requests of the product, read by the product's own parsers. */
import { type ParsedJob, parseJob, withFingerprint } from '../../src/job/envelope/parse';
import type { NewJob } from '../../src/job/record';
import { type CronDefinition, parseCron } from '../../src/schedules/definition';
import type { JobKind, JobOrder } from './model';
import type { CronTerms } from './model-crons';
import type { UniqueOrder } from './model-unique';
import { bytesOf, write } from './texts';

export const QUEUE = 'simulated';

export const TYPE = 'simulated.job';

/** What a job may say, as the documents have it, and what it says beside its long texts at most. Bytes; tags and types in characters. */
const MAX_JOB = 1_048_576;
const MAX_META = 65_536;
const MAX_TAGS = 50;
const MAX_TAG = 128;
const MAX_TYPE = 255;
const REST = 4_000;

const LIMITS = {
  narrow: { key: 'narrow', concurrency: 1 },
  rated: { key: 'rated', concurrency: 3, rate: 2, period: 'PT5S' },
  spaced: { key: 'spaced', throttle: { limit: 5, period: 'PT2S' } },
};

/** A job as its producer would write it. What it does not want is null: in a change, what is left out stays. */
export function jobRequest(order: JobOrder): Record<string, unknown> {
  const { unique, limit, texts = {} } = order;
  const { meta, directive, tags } = texts;
  const text = { type: typeOf(order), args: argsOf(order) };
  return {
    ...text,
    options: {
      queue: QUEUE,
      priority: order.priority,
      ...(order.group !== undefined && { group: order.group }),
      meta: { key: unique?.key ?? null, order: JSON.stringify(order), ...(meta && { text: write(meta) }) },
      ...(directive && { metadata: { test_directive: write(directive) } }),
      ...(tags && { tags: Array(MAX_TAGS).fill(write(tags)) }),
      retry: {
        max_attempts: order.maxAttempts,
        backoff_strategy: 'constant',
        initial_interval: order.backoff,
        max_interval: null,
        jitter: false,
        on_exhaustion: order.deadLetter ? 'dead_letter' : 'discard',
      },
      timeout_ms: order.timeout > 0 ? order.timeout : null,
      delay_until: order.delay > 0 ? fromNow(order.delay) : null,
      expires_at: order.ttl > 0 ? fromNow(order.ttl) : null,
      pending: order.pending || null,
      rate_limit: limit && LIMITS[limit],
      unique: unique && policy(unique),
    },
  };
}

/** What the job is called with: something that never changes tells most of them apart. */
export function argsOf({ unique, texts, delay, backoff, timeout, ttl }: JobOrder): unknown[] {
  const of = `args ${delay} ${backoff} ${timeout} ${ttl}`;
  return [{ key: unique?.key ?? null, of }, 'other', ...(texts?.args ? [write(texts.args)] : [])];
}

/** The type of jobs of a kind. */
export function typeNamed(kind: JobKind | undefined): string {
  return kind === undefined ? TYPE : `simulated.${kind}`;
}

function typeOf({ unique, texts, kind }: JobOrder): string {
  return typeNamed(kind).padEnd(unique ? 0 : (texts?.type ?? 0), 'x');
}

/** Is a job with these texts refused? Undefined: so close to the limit that it depends on what else it says. */
export function isTooLarge({ texts, unique }: JobOrder): boolean | undefined {
  if (!texts) return false;
  const { args, meta, directive, tags, type = 0 } = texts;
  if ((type > MAX_TYPE && !unique) || (tags && tags.length > MAX_TAG)) return true;
  const judge = (bytes: number, max: number) => (bytes > max ? true : bytes > max - REST ? undefined : false);
  const written = [args, meta, directive].map((text) => (text ? bytesOf(write(text)) : 0));
  const ofTags = tags ? MAX_TAGS * bytesOf(write(tags)) : 0;
  const tooLarge = [
    judge(written[1] as number, MAX_META),
    judge(
      written.reduce((sum, bytes) => sum + bytes, ofTags),
      MAX_JOB,
    ),
  ];
  return tooLarge.includes(true) || (tooLarge.includes(undefined) ? undefined : false);
}

/** The order that a job was made of. */
export function orderIn(body: string): JobOrder {
  return JSON.parse((JSON.parse(body) as { meta: { order: string } }).meta.order) as JobOrder;
}

function fromNow(ms: number): string {
  return `+PT${ms / 1000}S`;
}

const FOREIGN = { ignore: 'ignore_new', replace: 'cancel_existing' } as const;

function policy(unique: UniqueOrder): Record<string, unknown> {
  const { key, by, everywhere, conflict, period, foreign, maxWait, maxCount } = unique;
  const isSample = conflict === 'leading' || conflict === 'trailing';
  const dimensions = ['type', ...(everywhere ? [] : ['queue']), ...(by === 'key' ? [] : [by])];
  return {
    ...(by === 'key' ? { keys: dimensions, key } : { [foreign ? 'key' : 'keys']: dimensions }),
    ...(by === 'args' && { args_keys: ['key'] }),
    ...(by === 'meta' && { meta_keys: ['key'] }),
    [isSample ? 'sample' : 'on_conflict']:
      foreign && conflict in FOREIGN ? FOREIGN[conflict as keyof typeof FOREIGN] : conflict,
    ...(maxWait > 0 && { max_wait: maxWait }),
    ...(maxCount > 0 && { max_count: maxCount }),
    ...(period > 0 && { [foreign ? 'within' : 'period']: foreign ? `${period}ms` : `PT${period / 1000}S` }),
    ...(!isSample && conflict !== 'accumulate' && statesOf(unique)),
  };
}

/** When existing jobs count, in words. */
function statesOf({ counting, foreign }: UniqueOrder): Record<string, unknown> {
  const plainStates = { running: ['active'], ended: ['completed', 'discarded'] } as const;
  const whiles = { open: 'active', queued: 'queued', exists: 'exists' } as const;
  return {
    ...(counting === 'running' || counting === 'ended'
      ? { states: plainStates[counting] }
      : // The default needs no words.
        (counting !== 'open' || foreign) && { unique_while: whiles[counting] }),
  };
}

/** @param now epoch ms */
export async function newJob(order: JobOrder, now: number): Promise<NewJob> {
  return (await parsedJob(order, now)).job;
}

/** A job with what the answer to its request is made of. @param now epoch ms */
export function parsedJob(order: JobOrder, now: number): Promise<ParsedJob> {
  return withFingerprint(parseJob(jobRequest(order), { now }));
}

/** An entry as its owner would write it. Members that are not given are left out. */
function cronRequest({ expression, zone, start, end, job, ...terms }: Partial<CronTerms>): Record<string, unknown> {
  const at = (time: number | null) => (time === null ? null : new Date(time).toISOString());
  return {
    ...(expression !== undefined && { expression }),
    ...(zone !== undefined && { timezone: zone }),
    ...(terms.overlap !== undefined && { overlap_policy: terms.overlap }),
    ...(terms.missed !== undefined && { missed_policy: terms.missed }),
    ...(terms.catchup !== undefined && { max_catchup: terms.catchup }),
    ...(start !== undefined && { start_at: at(start) }),
    ...(end !== undefined && { end_at: at(end) }),
    ...(terms.limit !== undefined && { limit: terms.limit }),
    ...(terms.enabled !== undefined && { enabled: terms.enabled }),
    ...(job !== undefined && { job_template: jobRequest(job) }),
  };
}

/** @throws {ApiError} 400 when it ends before it starts */
export function newCron(name: string, terms: CronTerms, now: number): Promise<CronDefinition> {
  return parseCron({ name, ...cronRequest(terms) }, { now });
}

/** @throws {ApiError} 400 when it ends before it starts */
export function changedCron(base: CronDefinition, change: Partial<CronTerms>, now: number): Promise<CronDefinition> {
  return parseCron(cronRequest(change), { now, base, name: base.name });
}
