/** The live connection of an open call: runs write lines of its answer, the queue replies over the request. */
import { own, textOf } from '../job/own';
import type { JobEnvelope } from '../producer/envelope';
import { errorFor, type TocsinError, UnavailableError, unanswered } from '../producer/errors';
import { named } from '../producer/names';
import { isObject } from './protocol';
import type { StepRecord } from './step-rules';
import { Changes } from './timing';
import type { Voice } from './voice';

/** How long log lines are gathered, in ms: a run that is over by then says them with its answer. */
const LOG_AFTER_MS = 1_000;

/** The statuses that the codes of refusals stand for; the client's classes of errors follow from them. */
const STATUS: Record<string, number> = {
  conflict: 409,
  duplicate: 409,
  not_found: 404,
  payload_too_large: 413,
  rate_limited: 429,
  QUEUE_FULL: 429,
  GROUP_FULL: 429,
  forbidden: 403,
};

interface Call {
  resolve(value: unknown): void;
  reject(error: TocsinError): void;
}

/** Texts that wait to be sent, in order. */
export class MessageBuffer {
  readonly #texts: string[] = [];
  #ended = false;
  readonly #changes = new Changes();

  push(text: string): void {
    this.#texts.push(text);
    this.#changes.notify();
  }

  end(): void {
    this.#ended = true;
    this.#changes.notify();
  }

  /** The next text; undefined at the end. */
  async next(): Promise<string | undefined> {
    while (this.#texts.length === 0 && !this.#ended) await this.#changes.next();
    return this.#texts.shift();
  }
}

export class LiveConnection {
  readonly outbox = new MessageBuffer();
  readonly #calls = new Map<number, Call>();
  #last = 0;
  #isLost = false;
  readonly #said = new Changes();
  /** Resolves when something is said for the first time. */
  readonly spoken = this.#said.next();
  hasSpoken = false;

  say(message: Record<string, unknown>): void {
    this.hasSpoken = true;
    this.outbox.push(JSON.stringify(message));
    this.#said.notify();
  }

  /** Says something and waits for the reply. @throws {TocsinError} that the queue replies, or when the line is lost */
  async call(message: Record<string, unknown>): Promise<unknown> {
    if (this.#isLost) throw lost();
    const call = ++this.#last;
    return await new Promise((resolve, reject) => {
      this.#calls.set(call, { resolve, reject });
      this.say({ ...message, call });
    });
  }

  hear({ reply, value, error }: Record<string, unknown>): void {
    const call = this.#calls.get(Number(reply));
    this.#calls.delete(Number(reply));
    if (isObject(error)) call?.reject(refusal(error));
    else call?.resolve(value);
  }

  lose(): void {
    this.#isLost = true;
    for (const { reject } of this.#calls.values()) reject(lost());
    this.#calls.clear();
  }
}

/** Speaks for one delivery. */
export function lineVoice(line: LiveConnection, deliveryId: string): Voice {
  const call = (said: Record<string, unknown>) => line.call({ delivery_id: deliveryId, ...said });
  return {
    ...{ durable: 'now', logAfterMs: LOG_AFTER_MS, keepsOrder: () => true },
    log: (log) => line.say({ delivery_id: deliveryId, log }),
    progress: (progress) => call({ progress }),
    checkpoint: (checkpoint) => call({ checkpoint }),
    record: async (name, record) => {
      const earlier = await call({ step: { name, ...record } });
      return isObject(earlier) ? (earlier as StepRecord) : undefined;
    },
    recall: (recall) => call({ recall }),
    stream: (stream) => call({ stream }),
    enqueue: async (jobs) => jobsIn(await call({ enqueue: jobs }), jobs.length),
    signalUrl: async (asked) => String(await call({ signal_url: asked })),
  };
}

/** @throws {UnavailableError} when there are more or fewer */
function jobsIn(value: unknown, count: number): JobEnvelope[] {
  if (Array.isArray(value) && value.length === count && value.every(isObject)) {
    return value.map((job) => named(job) as JobEnvelope);
  }
  const info = { status: 200, code: 'invalid_response', retryable: false };
  throw new UnavailableError('The reply does not contain the jobs.', info);
}

function refusal(error: Record<string, unknown>): TocsinError {
  const code = textOf(error.code) ?? 'unavailable';
  const retryable = error.retryable === true;
  const status = own(STATUS, code) ?? (retryable ? 503 : 400);
  const details = isObject(error.details) ? (named(error.details) as Record<string, unknown>) : undefined;
  return errorFor(textOf(error.message) ?? code, { status, code, retryable, details, hint: textOf(error.hint) });
}

const lost = () => unanswered('The queue has ended the call.', true);
