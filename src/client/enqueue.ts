/** Sends new jobs: gathered, as a batch that is all or none, or each on its own. */

import type * as contract from '../contract/bulk';
import {
  type Attributes,
  failSpan,
  messaging,
  type OpenTelemetry,
  SPAN_KIND,
  type Span,
  TRACER,
  traceparentOf,
} from '../handler/telemetry';
import { DEFAULT_QUEUE } from '../job/options';
import { type DefaultsOf, withDefaults } from '../producer/defaults';
import type { EnvelopeError, JobEnvelope } from '../producer/envelope';
import { DuplicateJobError, InvalidJobError, NotFoundError } from '../producer/errors';
import {
  type EnqueueOptions,
  JOB_OPTIONS,
  type NewJob,
  type PreparedJob,
  prepare,
  refuseBeside,
} from '../producer/job';
import { named } from '../producer/names';
import { batchOf, jobOf, jobSent, listOf, shaped } from './answers';
import { asIfAlone, Batcher } from './batch';
import type { ProducerSockets } from './producer-sockets';
import { keyHeader, pathTo, type Requests } from './requests';
import type { Send } from './transport';

/** The trace of an enqueue, as `traceparent` and `tracestate` have it; empty when there is none. */
type TraceHeaders = Readonly<Record<string, string>>;

/**
 * Runs an enqueue in a span of its own; without OpenTelemetry just so. @param queues of its jobs, in order
 * @param send gets the trace of its jobs
 */
async function inSpan<T>(
  otel: OpenTelemetry | undefined,
  queues: readonly string[],
  send: (trace: TraceHeaders) => Promise<T>,
  idOf?: (answer: T) => string,
): Promise<T> {
  if (!otel) return await send({});
  const { context, trace } = otel;
  const queue = new Set(queues).size === 1 ? queues[0] : undefined;
  const attributes: Attributes = {
    ...messaging('send', queue),
    ...(!idOf && { 'messaging.batch.message_count': queues.length }),
  };
  const active = context.active();
  const name = queue === undefined ? 'send' : `send ${queue}`;
  const span = trace.getTracer(TRACER).startSpan(name, { kind: SPAN_KIND.producer, attributes }, active);
  try {
    const answer = await context.with(trace.setSpan(active, span), () => send(headersOf(span)));
    if (idOf) span.setAttribute('messaging.message.id', idOf(answer));
    return answer;
  } catch (error) {
    failSpan(span, error);
    throw error;
  } finally {
    span.end();
  }
}

function headersOf(span: Span): TraceHeaders {
  const context = span.spanContext();
  // Without an SDK behind the API spans have no ids.
  if (/^0*$/.test(context.traceId)) return {};
  const tracestate = context.traceState?.serialize();
  return { traceparent: traceparentOf(context), ...(tracestate && { tracestate }) };
}

/** `meta` with this trace, unless it names one itself. */
const metaWithTrace = (
  meta: Record<string, unknown> | undefined,
  trace: TraceHeaders,
): Record<string, unknown> | undefined =>
  trace.traceparent === undefined || meta?.traceparent !== undefined ? meta : { ...meta, ...trace };

const MINIMAL = { Prefer: 'return=minimal' };

/** Most jobs in one request. */
export const MAX_BATCH = 1000;

export interface BatchOptions {
  /** 1 … 256 characters. The same jobs under the same key are enqueued once, for 24 hours. */
  idempotencyKey?: string | undefined;
}

export interface BulkEnqueueOptions extends BatchOptions {
  /** `partial` takes each job on its own; `atomic` takes all or none. Default `partial`. */
  atomicity?: 'partial' | 'atomic' | undefined;
}

/** Why a job was refused. */
export type Refusal = Pick<EnvelopeError, 'code' | 'type' | 'message'> & {
  retryable: boolean;
  details?: Record<string, unknown>;
};

/** The outcome for one of the jobs. */
export type EnqueueOutcome =
  | { index: number; status: 'created'; job: JobEnvelope; error?: never }
  /** It has become a part of this job, which waits. */
  | { index: number; status: 'accumulated'; job: JobEnvelope; error?: never }
  /** The job existed already: it, or the refusal of a unique policy that rejects. */
  | { index: number; status: 'duplicate'; job: JobEnvelope; error?: never }
  | { index: number; status: 'duplicate'; error: Refusal; job?: never }
  | { index: number; status: 'failed'; error: Refusal; job?: never };

/** The outcomes of many jobs, in order. */
export interface BulkEnqueued extends Pick<contract.BulkEnqueued, 'total' | 'succeeded' | 'failed'> {
  items: EnqueueOutcome[];
}

export interface GatherOptions {
  maxBatch: number;
  /** In ms; undefined: the present turn. */
  linger: number | undefined;
  answers: 'minimal' | 'full';
  /** An id for each job of a queue, or none. */
  newId: (queue: string) => string | undefined;
  defaultsOf: DefaultsOf;
  otel: OpenTelemetry | undefined;
  sockets: () => ProducerSockets | undefined;
  signal: AbortSignal | undefined;
}

const queuesOf = (jobs: readonly PreparedJob[]) => jobs.map(({ queue }) => queue);

export class Enqueuer {
  readonly #batcher: Batcher;

  constructor(
    private readonly requests: Requests,
    private readonly options: GatherOptions,
  ) {
    const { maxBatch, linger, answers } = options;
    this.#batcher = new Batcher(
      (jobs) => this.#post(jobs, jobs.length > 1, jobs[0]?.idempotencyKey, jobs[0]?.trace, answers === 'minimal'),
      maxBatch,
      (flush) => void (linger === undefined ? queueMicrotask(flush) : setTimeout(flush, linger)),
    );
  }

  async one(type: string, args: readonly unknown[], given: EnqueueOptions): Promise<JobEnvelope> {
    const options = withDefaults(given, this.options.defaultsOf(type));
    const { queue = DEFAULT_QUEUE, idempotencyKey, meta } = options;
    const send = (trace: TraceHeaders): Promise<JobEnvelope> => {
      // Jobs of several spans share a request. A job under a key goes alone, and its text must be the same each time.
      if (idempotencyKey !== undefined)
        return this.#batcher.add({ ...prepare(type, args, options, this.options.newId), trace });
      const traced = metaWithTrace(meta, trace);
      const whole = traced ? { ...options, meta: traced } : options;
      return this.#batcher.add(prepare(type, args, whole, this.options.newId));
    };
    return await inSpan(this.options.otel, [queue], send, ({ id }) => id);
  }

  async batch(jobs: readonly NewJob[], { idempotencyKey }: BatchOptions): Promise<JobEnvelope[]> {
    if (jobs.length === 0) return [];
    const prepared = this.#prepare(jobs, idempotencyKey);
    const send = (trace: TraceHeaders) => this.#post(prepared, true, idempotencyKey, trace);
    return await inSpan(this.options.otel, queuesOf(prepared), send);
  }

  async each(jobs: readonly NewJob[], options: BulkEnqueueOptions): Promise<BulkEnqueued> {
    if (jobs.length === 0) return { total: 0, succeeded: 0, failed: 0, items: [] };
    const { idempotencyKey, atomicity = 'partial' } = options;
    const { prepared, refused } = this.#prepareEach(jobs, idempotencyKey, atomicity);
    if (prepared.length === 0) return withRefused({ total: 0, succeeded: 0, failed: 0, items: [] }, refused);
    const body = `{"atomicity":${JSON.stringify(atomicity)},"jobs":[${prepared.map(({ json }) => json).join(',')}]}`;
    const send = this.requests.underKey(idempotencyKey);
    const post = (trace: TraceHeaders) => send('POST', '/jobs/bulk', body, { headers: trace, answers: [422] });
    const answer = await inSpan(this.options.otel, queuesOf(prepared), post);
    const items = listOf<EnqueueOutcome>(answer, 'items', 'the outcomes').map(withNamedDetails);
    return withRefused({ ...shaped<BulkEnqueued>(answer, 'total', 'the outcomes'), items }, refused);
  }

  #prepare(jobs: readonly NewJob[], key: string | undefined): PreparedJob[] {
    return jobs.map((job) => {
      refuseBeside(job);
      const { type, args, options = {} } = job;
      const whole = withDefaults(options, this.options.defaultsOf(type));
      return prepare(type, args, whole, key === undefined ? this.options.newId : undefined, JOB_OPTIONS);
    });
  }

  /** Prepares each on its own: one that cannot be JSON is refused here, by its index, and the others are sent. */
  #prepareEach(jobs: readonly NewJob[], key: string | undefined, atomicity: 'partial' | 'atomic') {
    const prepared: PreparedJob[] = [];
    const refused = new Map<number, Refusal>();
    for (const [index, job] of jobs.entries()) {
      try {
        prepared.push(...this.#prepare([job], key));
      } catch (error) {
        if (atomicity === 'atomic' || !(error instanceof InvalidJobError)) throw error;
        const { code, message, retryable, details } = error;
        refused.set(index, { code, type: code, message, retryable, details });
      }
    }
    return { prepared, refused };
  }

  async #post(
    jobs: PreparedJob[],
    asBatch: boolean,
    key: string | undefined,
    trace: TraceHeaders = {},
    brief = false,
  ): Promise<JobEnvelope[]> {
    const repeatable = key !== undefined || jobs.every((job) => job.id !== undefined);
    const send = async (post: Send) => {
      // Answers over a socket are brief, and a key is a header.
      const answered = brief && key === undefined ? await this.#overSocket(jobs) : undefined;
      if (answered) return answered;
      const options = { headers: { ...keyHeader(key), ...trace, ...(brief && MINIMAL) } };
      const [first] = jobs;
      if (!asBatch && first)
        return [jobSent(await post('POST', '/jobs', first.json, options), first.json, first.queue)];
      const json = `{"jobs":[${jobs.map((job) => job.json).join(',')}]}`;
      return batchOf(await post('POST', '/jobs/batch', json, options), jobs);
    };
    const isDone = (error: unknown) =>
      error instanceof DuplicateJobError && jobs.some((job) => job.id !== undefined && job.id === error.existingJobId);
    return await this.requests.settle(send, { isDone, read: (refusal) => this.#existing(jobs, refusal) }, repeatable);
  }

  /** Undefined: there is no socket that can take them now. */
  async #overSocket(jobs: PreparedJob[]): Promise<JobEnvelope[] | undefined> {
    const { sockets, signal } = this.options;
    const queue = jobs[0]?.queue;
    if (queue === undefined) return undefined;
    try {
      const answer = await sockets()?.send(queue, jobs, signal);
      return answer === undefined ? undefined : batchOf(answer, jobs);
    } catch (error) {
      throw jobs.length === 1 ? asIfAlone(error) : error;
    }
  }

  /** The jobs of an earlier try: a batch is written whole. If one is missing, another producer took its id. */
  async #existing(jobs: PreparedJob[], refusal: unknown): Promise<JobEnvelope[]> {
    try {
      const found: JobEnvelope[] = [];
      for (const job of jobs) {
        if (job.id === undefined) throw refusal;
        const envelope = jobOf(await this.requests.safely('GET', pathTo`/jobs/${job.id}`));
        if (envelope.type !== job.type) throw refusal;
        found.push(envelope);
      }
      return found;
    } catch (error) {
      throw error instanceof NotFoundError ? refusal : error;
    }
  }
}

function withRefused({ succeeded, items }: BulkEnqueued, refused: ReadonlyMap<number, Refusal>): BulkEnqueued {
  const sent = [...items];
  const total = sent.length + refused.size;
  const all = Array.from({ length: total }, (_, index): EnqueueOutcome => {
    const error = refused.get(index);
    return error ? { index, status: 'failed', error } : { ...(sent.shift() as EnqueueOutcome), index };
  });
  return { total, succeeded, failed: total - succeeded, items: all };
}

/** The details of a refusal are the server's, unlike those of a job's error. */
function withNamedDetails(outcome: EnqueueOutcome): EnqueueOutcome {
  if (outcome.error?.details === undefined) return outcome;
  const details = named(outcome.error.details) as Record<string, unknown>;
  return { ...outcome, error: { ...outcome.error, details } } as EnqueueOutcome;
}
