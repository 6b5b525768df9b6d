/** Calling a handler Worker over its service binding: the announcement, and deliveries with a time limit. */
import { defined, isObject, parseObject } from '../job/envelope/fields';
import type { AnnouncedType } from '../job/record';
import { type Answer, type DeliveryOutcome, failed, readBatchAnswer, readSingleAnswer } from './answer';
import type { Payload, TargetConfig } from './config';

/** One job on its way to a handler. */
export interface Delivery {
  delivery_id: string;
  /** The full envelope. */
  job: Record<string, unknown>;
  /** Execution limit in ms. */
  timeoutMs: number;
}

/** What a handler Worker announces. */
export interface Announcement {
  payload: Payload;
  /** Types that it takes; null when it does not announce them, so it gets every type that is mapped to it. */
  types: AnnouncedType[] | null;
  /** The Worker failed when asked, so this is only the fallback. */
  provisional: boolean;
}

/** A call that never reached a handler. */
export const NOT_RUNNING = 'not_running';

const ORIGIN = 'https://handler.tocsin';
/** How long an announcement may take, ms. */
export const ANNOUNCEMENT_TIMEOUT_MS = 5_000;
/** Added to the longest limit in a batch, so that the handler library's own report of a timeout can arrive, ms. */
const BATCH_GRACE_MS = 1_000;
/** Answers are read up to this many characters: the results of a full batch of 100 × 1 MiB would not fit in memory. */
const MAX_ANSWER_CHARS = 32 * 1024 * 1024;

/**
 * `wrangler dev` answers for a Worker that is not running, with 503 and a text of its own. A handler's own 503 is an
 * ordinary failure, so only that text counts.
 */
export function isNotRunning(answer: Answer): boolean {
  return answer.status === 503 && /^Worker "[^"]*" (?:not found|is not compatible)/.test(answer.body.slice(0, 500));
}

async function fetchAnswer(target: TargetConfig, request: Request): Promise<Answer> {
  const response = await target.binding.fetch(request);
  const body = await response.text();
  return {
    status: response.status,
    retryAfter: response.headers.get('Retry-After'),
    body: body.slice(0, MAX_ANSWER_CHARS),
  };
}

/** Thrown by {@link call} when there was no answer in time. */
class NoAnswer extends Error {}

/**
 * Makes one call and waits for its answer, at most this long. Then it aborts the handler's signal.
 * @throws {NoAnswer} when the time was up; anything else was thrown by the handler Worker
 */
async function call(target: TargetConfig, request: Request, timeoutMs: number): Promise<Answer> {
  const aborter = new AbortController();
  // The race ends the wait, because a handler that hangs need not react to the signal.
  let expire: (reason: NoAnswer) => void = () => undefined;
  const expired = new Promise<never>((_, reject) => {
    expire = reject;
  });
  const timer = setTimeout(() => {
    const reason = new NoAnswer(`No answer within ${timeoutMs} ms.`);
    expire(reason);
    aborter.abort(reason);
  }, timeoutMs);
  try {
    return await Promise.race([fetchAnswer(target, new Request(request, { signal: aborter.signal })), expired]);
  } finally {
    // A pending timer would keep the whole object awake.
    clearTimeout(timer);
  }
}

/**
 * Asks a handler Worker which types it takes. A Worker without an announcement is a plain one: it gets single envelopes
 * of every type that is mapped to it. One that fails (throws, 5xx, no answer) gets the same until it answers.
 */
export async function fetchAnnouncement(target: TargetConfig): Promise<Announcement | typeof NOT_RUNNING> {
  let answer: Answer;
  try {
    const request = new Request(`${ORIGIN}/.well-known/tocsin`, { redirect: 'manual' });
    answer = await call(target, request, ANNOUNCEMENT_TIMEOUT_MS);
  } catch {
    return { payload: target.payload ?? 'envelope', types: null, provisional: true };
  }
  if (isNotRunning(answer)) return NOT_RUNNING;
  return readAnnouncement(answer, target);
}

/** The announcement in an answer; anything unexpected means a plain Worker. */
export function readAnnouncement(answer: Answer, target: Pick<TargetConfig, 'payload'>): Announcement {
  const plain: Announcement = {
    payload: target.payload ?? 'envelope',
    types: null,
    provisional: answer.status >= 500 || answer.status === 429,
  };
  if (answer.status !== 200) return plain;
  const { types, payload } = parseObject(answer.body) ?? {};
  if (!Array.isArray(types)) return plain;
  const announced = payload === 'batch' || payload === 'job' || payload === 'envelope' ? payload : 'envelope';
  return { payload: target.payload ?? announced, types: types.flatMap(readAnnouncedType), provisional: false };
}

function readAnnouncedType(entry: unknown): AnnouncedType[] {
  if (typeof entry === 'string') return [{ type: entry }];
  if (!isObject(entry) || typeof entry.type !== 'string') return [];
  const { type, retry } = entry;
  const integer = (value: unknown, min: number) =>
    typeof value === 'number' && Number.isInteger(value) && value >= min ? value : undefined;
  return [
    defined({
      type,
      retry: isObject(retry) ? retry : undefined,
      timeout_ms: integer(entry.timeout_ms, 1),
      max_attempts: integer(entry.max_attempts, 0),
      concurrency: integer(entry.concurrency, 1),
    }),
  ];
}

/** What a call led to. */
export interface CallResult {
  outcomes: Map<string, DeliveryOutcome>;
  /** Did the target itself fail, rather than a job? */
  deliveryError: boolean;
}

/** Makes one binding call for these deliveries; never rejects. More than one delivery needs the payload `batch`. */
export async function deliver(
  target: TargetConfig,
  payload: Payload,
  workerId: string,
  deliveries: readonly Delivery[],
  now: () => number,
): Promise<CallResult> {
  const limit = Math.max(...deliveries.map((delivery) => delivery.timeoutMs));
  const timeout = payload === 'batch' ? limit + BATCH_GRACE_MS : limit;
  const ids = deliveries.map((delivery) => delivery.delivery_id);
  const all = (outcome: DeliveryOutcome) => new Map(ids.map((id) => [id, outcome]));
  let answer: Answer;
  try {
    answer = await call(target, requestFor(payload, workerId, deliveries), timeout);
  } catch (error) {
    return { outcomes: all(failureOfThrow(error, deliveries.length)), deliveryError: false };
  }
  if (isNotRunning(answer)) return { outcomes: all({ kind: 'not_running' }), deliveryError: true };
  const first = ids[0] as string;
  const outcomes =
    payload === 'batch' ? readBatchAnswer(answer, ids, now()) : new Map([[first, readSingleAnswer(answer, now())]]);
  const deliveryError = [...outcomes.values()].some((o) => o.kind === 'failed' && o.failure.target_rejected === true);
  return { outcomes, deliveryError };
}

function failureOfThrow(error: unknown, jobs: number): DeliveryOutcome {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof NoAnswer) {
    return failed({ code: 'timeout', type: 'timeout', message, retryable: true });
  }
  const text = `The handler Worker died without an answer: ${message}`;
  if (jobs === 1) return failed({ code: 'handler_error', message: text, crash: true });
  // One of several jobs killed the Worker, and no one can tell which: none counts as a crash. Each is delivered alone
  // the next time, where a crash is that job's own.
  return failed({ code: 'delivery_error', type: 'tocsin.batch_crash', message: text, retryable: true });
}

function requestFor(payload: Payload, workerId: string, deliveries: readonly Delivery[]): Request {
  const first = deliveries[0] as Delivery;
  const body =
    payload === 'batch'
      ? { worker_id: workerId, deliveries: deliveries.map(({ job, delivery_id }) => ({ job, delivery_id })) }
      : payload === 'job'
        ? first.job
        : { job: first.job, worker_id: workerId, delivery_id: first.delivery_id };
  const headers = new Headers({ 'Content-Type': 'application/json', 'OJS-Version': '1.0' });
  if (payload !== 'batch') {
    headers.set('X-OJS-Delivery-ID', first.delivery_id);
    headers.set('X-OJS-Job-ID', String(first.job.id));
    headers.set('X-OJS-Attempt', String(first.job.attempt));
    // A delivery id never comes back once its lease is over. The handler must remember it for twice that time.
    headers.set('X-OJS-Idempotency-Window', String(Math.ceil((first.timeoutMs * 2) / 1000) + 20));
    const traceparent = (first.job.meta as Record<string, unknown> | undefined)?.traceparent;
    if (typeof traceparent === 'string' && /^[\x20-\x7e]{1,256}$/.test(traceparent)) {
      headers.set('traceparent', traceparent);
    }
  }
  // A redirect is an answer of the handler. Following it would call another path without the job.
  return new Request(ORIGIN, { method: 'POST', headers, body: JSON.stringify(body), redirect: 'manual' });
}
