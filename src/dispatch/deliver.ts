/** Delivers jobs to a handler Worker: one call over its service binding, and the outcome of each job in it. */

import { withMaskedUrls } from '../access/secrets';
import type { After } from '../durable/timers';
import { type AttemptOutcome, failed } from '../job/attempt/outcome';
import { own } from '../job/own';
import { cut } from '../job/text';
import { isA, messageOf } from '../job/thrown';
import { VERSION_HEADER } from './announcement';
import { readBatchAnswer, readEntry, readSingleAnswer, unmentioned } from './answer';
import { BodyReader, EntryScanner, LineScanner, readText, textOf } from './body';
import { callWithin, NoAnswer } from './call';
import type { Payload, TargetConfig } from './config';
import { CONTROL_HEADER, ControlStream } from './control-stream';
import type { RunMessage } from './run-messages';
import { charsOf, StreamedAnswer } from './streamed-answer';
import { type HandlerAnswer, isNotRunning, ORIGIN, WORKER_NOT_RUNNING } from './target';

export interface Delivery {
  delivery_id: string;
  job: { id: string; attempt: number; meta: Record<string, unknown>; target_url?: string };
  /** The envelope of the job, as JSON. */
  text: string;
  /** Execution limit in ms. */
  timeoutMs: number;
}

/** The media type of an answer that is sent while its batch runs. */
const LINES = 'application/x-ndjson';

export interface CallTerms {
  payload: Payload;
  workerId: string;
  deliveries: readonly Delivery[];
  /** Stays open, so that single jobs of a batch can be stopped. */
  isOpen: boolean;
  /** Epoch ms. */
  now(): number;
  /** Takes outcomes of a large answer while the rest of it arrives. Must not reject. */
  settle(outcomes: ReadonlyMap<string, AttemptOutcome>): Promise<void>;
  /** Handles a message of a running handler. @returns the durable reply; rejects with `ApiError` for the handler */
  hear(deliveryId: string, message: RunMessage): Promise<unknown>;
  /** Half a minute has passed, and the call continues. */
  goesOn(): void;
  after: After;
}

export interface CallResult {
  /** By delivery id, except those that were settled while the answer arrived. */
  outcomes: ReadonlyMap<string, AttemptOutcome>;
  /** Did the target itself fail, rather than a job? */
  deliveryError: boolean;
  /** How it failed, for humans. */
  trouble?: string;
  /** Names the target's current announcement, if the answer has that name. */
  version?: string;
  /** Bytes of the answer, as far as it was read. */
  bytes: number;
}

/** Added to the longest limit in a batch, so that the handler library's own report of a timeout can arrive, ms. */
const BATCH_GRACE_MS = 1_000;
/** Characters that are kept of a target's failure. */
const MAX_TROUBLE = 300;
const SMALL_ANSWER_BYTES = 1024 * 1024;
/** Characters of results that are gathered from a large answer before they are settled. */
const GATHERED_CHARS = 256 * 1024;

/** The handler Worker is not running, so the handler was certainly not called. */
const NOT_REACHED: AttemptOutcome = { kind: 'released', release: { attempt: 'unreached' } };

export class Call {
  private readonly line: ControlStream | undefined;
  /** Deliveries whose outcome came while the answer arrived. */
  private readonly answered = new Set<string>();
  private readonly cancelled = new Set<string>();
  private stop: (reason: NoAnswer) => void = () => undefined;
  private gathered = new Map<string, AttemptOutcome>();
  private version: string | undefined;
  private unreachable = false;
  /** Bytes of the answer, without the messages before it. */
  private bytes = 0;
  /** Bytes that have arrived, and had arrived when this was last asked. */
  private bytesArrived = 0;
  private bytesSeen = 0;
  /** The rest of the answer is no longer awaited. */
  private isOver = false;

  constructor(
    private readonly target: TargetConfig,
    private readonly terms: CallTerms,
  ) {
    if (terms.isOpen && terms.payload === 'batch') this.line = new ControlStream(bodyOf(terms));
  }

  get deliveries(): readonly Delivery[] {
    return this.terms.deliveries;
  }

  /** The job was cancelled or taken away: notifies the handler of an open call, or aborts a call of this job alone. */
  cancel(deliveryId: string): void {
    this.cancelled.add(deliveryId);
    if (this.line) this.line.cancel(deliveryId);
    else if (this.open.every((id) => this.cancelled.has(id))) this.stop(new NoAnswer('The job was cancelled.'));
  }

  /** Makes the call and waits for its end. Never rejects. */
  async run(): Promise<CallResult> {
    const { payload, deliveries } = this.terms;
    const limit = Math.max(...deliveries.map((delivery) => delivery.timeoutMs));
    const limits = {
      timeoutMs: payload === 'batch' ? limit + BATCH_GRACE_MS : limit,
      after: this.terms.after,
      isArriving: () => this.isArriving(),
      goesOn: () => this.terms.goesOn(),
      stoppable: (stop: (reason: NoAnswer) => void) => {
        this.stop = stop;
      },
    };
    try {
      await callWithin(
        this.target,
        (signal) => this.request(signal),
        limits,
        (response) => this.read(response),
      );
    } catch (error) {
      this.unreachable = this.target.isRemote === true && !(error instanceof NoAnswer);
      this.conclude(this.unreachable ? unreachable(error) : failureOfThrow(error, deliveries.length));
    } finally {
      this.isOver = true;
      this.line?.close();
    }
    const all = [...this.gathered.values()];
    const culprit = this.unreachable ? all[0] : all.find(isDeliveryError);
    const { gathered: outcomes, version, bytes } = this;
    return {
      outcomes,
      deliveryError: culprit !== undefined,
      ...(culprit && { trouble: troubleOf(culprit) }),
      bytes,
      ...(version !== undefined && { version }),
    };
  }

  private request(signal: AbortSignal): [url: string, init: RequestInit] {
    const { terms, line } = this;
    const headers = headersOf(terms);
    if (line) headers.set(CONTROL_HEADER, 'lines');
    const url = this.target.takesUrl ? String(this.deliveries[0]?.job.target_url) : ORIGIN;
    // A redirect is an answer of the handler. Following it would call another path without the job.
    return [url, { method: 'POST', headers, body: line?.body ?? bodyOf(terms), redirect: 'manual', signal }];
  }

  private async read(response: Response): Promise<void> {
    const { payload, now } = this.terms;
    this.version = response.headers.get(VERSION_HEADER) ?? undefined;
    if (payload === 'batch' && response.ok && response.body !== null) {
      const type = response.headers.get('Content-Type')?.split(';', 1)[0]?.trim().toLowerCase();
      return type === LINES ? this.readLines(response.body) : this.readBatch(response.body);
    }
    const { text: body, isWhole } = await readText(response);
    this.bytes = body.length;
    const { status, headers } = response;
    const answer: HandlerAnswer = { status, retryAfter: headers.get('Retry-After'), body, isCut: !isWhole };
    if (!this.target.isRemote && isNotRunning(answer)) this.conclude(NOT_REACHED);
    else if (payload === 'batch') this.gathered = readBatchAnswer(answer, this.open, now());
    else this.conclude(readSingleAnswer(answer, now()));
  }

  /** Reads the answer to a batch; outcomes of a large one are settled as they arrive, however the rest ends. */
  private async readBatch(body: ReadableStream<Uint8Array>): Promise<void> {
    const reader = new BodyReader(body);
    const { chunks, isWhole } = await reader.start(SMALL_ANSWER_BYTES);
    if (isWhole) {
      const text = textOf(chunks);
      this.bytes = text.length;
      this.gathered = readBatchAnswer({ status: 200, retryAfter: null, body: text }, this.open, this.terms.now());
      return;
    }
    const scanner = new EntryScanner();
    for (const chunk of chunks) await this.take(scanner, chunk);
    while (this.answered.size < this.deliveries.length && !this.isOver) {
      const chunk = await reader.next();
      if (!chunk) break;
      await this.take(scanner, chunk);
    }
    reader.cancel();
    if (!this.isOver) this.conclude(unmentioned(scanner.sawResults));
  }

  /** Reads an answer that is sent while the batch runs: messages, and outcomes, which are settled immediately. */
  private async readLines(body: ReadableStream<Uint8Array>): Promise<void> {
    const reader = new BodyReader(body);
    const scanner = new LineScanner();
    const streamed = new StreamedAnswer(this.terms, this.line, {
      isOpen: (id) => !this.isOver && this.open.includes(id),
      ended: (id, size) => {
        this.answered.add(id);
        this.bytes += size;
      },
    });
    while (this.answered.size < this.deliveries.length && !this.isOver) {
      const chunk = await reader.next();
      this.bytesArrived += chunk?.length ?? 0;
      streamed.receive(chunk ? scanner.push(chunk) : scanner.end());
      if (!chunk) break;
      await streamed.room();
    }
    reader.cancel();
    if (!this.isOver) this.conclude(unmentioned(true));
  }

  private async take(scanner: EntryScanner, chunk: Uint8Array): Promise<void> {
    this.bytes += chunk.length;
    this.bytesArrived += chunk.length;
    for (const text of scanner.push(chunk)) {
      const entry = readEntry(text, this.terms.now());
      if (this.isOver || !entry || !this.open.includes(entry.id)) continue;
      this.answered.add(entry.id);
      this.gathered.set(entry.id, entry.outcome);
    }
    let chars = 0;
    for (const outcome of this.gathered.values()) chars += charsOf(outcome);
    if (chars < GATHERED_CHARS || this.isOver) return;
    const outcomes = this.gathered;
    this.gathered = new Map();
    await this.terms.settle(outcomes);
  }

  /** The outcome of all that have none. */
  private conclude(outcome: AttemptOutcome): void {
    for (const id of this.open) this.gathered.set(id, outcome);
  }

  private get open(): string[] {
    const ids = this.deliveries.map(({ delivery_id }) => delivery_id);
    return this.answered.size === 0 ? ids : ids.filter((id) => !this.answered.has(id));
  }

  private isArriving(): boolean {
    const more = this.bytesArrived > this.bytesSeen;
    this.bytesSeen = this.bytesArrived;
    return more;
  }
}

const isDeliveryError = (outcome: AttemptOutcome): boolean =>
  outcome === NOT_REACHED || (outcome.kind === 'failed' && outcome.error.target_rejected === true);

function troubleOf(outcome: AttemptOutcome): string {
  const said = outcome.kind === 'failed' ? outcome.error.message : undefined;
  return said === undefined ? WORKER_NOT_RUNNING : cut(said, MAX_TROUBLE);
}

function failureOfThrow(error: unknown, jobs: number): AttemptOutcome {
  const message = messageOf(error);
  if (isA(error, NoAnswer)) {
    return failed({ code: 'timeout', type: 'timeout', message, retryable: true });
  }
  const text = `The handler Worker died without an answer: ${message}`;
  if (jobs === 1) return failed({ code: 'handler_error', message: text, crash: true });
  // One of several jobs killed the Worker, and no one can tell which: none counts as a crash. Each is delivered alone
  // the next time, where a crash is that job's own.
  return failed({ code: 'delivery_error', type: 'tocsin.batch_crash', message: text, retryable: true });
}

/** The network failed. The handler may have run anyway, so an attempt is over. */
function unreachable(error: unknown): AttemptOutcome {
  const message = `No answer from the URL: ${withMaskedUrls(messageOf(error))}`;
  return failed({ code: 'delivery_error', type: 'tocsin.unreachable', message, retryable: true });
}

function bodyOf({ payload, workerId, deliveries }: CallTerms): string {
  const worker = JSON.stringify(workerId);
  if (payload === 'batch') {
    const entries = deliveries.map(({ text, delivery_id }) => `{"job":${text},"delivery_id":"${delivery_id}"}`);
    return `{"worker_id":${worker},"deliveries":[${entries.join(',')}]}`;
  }
  const { text, delivery_id } = deliveries[0] as Delivery;
  return payload === 'job' ? text : `{"job":${text},"worker_id":${worker},"delivery_id":"${delivery_id}"}`;
}

/** The headers of a trace, and how many characters each may have. */
const MAX_TRACE_HEADERS: readonly [name: string, max: number][] = [
  ['traceparent', 256],
  ['tracestate', 512],
];

function headersOf({ payload, deliveries }: CallTerms): Headers {
  const headers = new Headers({ 'Content-Type': 'application/json', 'OJS-Version': '1.0' });
  if (payload === 'batch') return headers;
  const { job, delivery_id, timeoutMs } = deliveries[0] as Delivery;
  headers.set('X-OJS-Delivery-ID', delivery_id);
  headers.set('X-OJS-Job-ID', job.id);
  headers.set('X-OJS-Attempt', String(job.attempt));
  // A delivery id never comes back once its lease is over. The handler must remember it for twice that time.
  headers.set('X-OJS-Idempotency-Window', String(Math.ceil((timeoutMs * 2) / 1000) + 20));
  for (const [name, max] of MAX_TRACE_HEADERS) {
    const value = own(job.meta, name);
    if (typeof value === 'string' && value.length <= max && /^[\x20-\x7e]+$/.test(value)) headers.set(name, value);
  }
  return headers;
}
