/** Runs handlers in Node threads, one call in each. A call that blocks or crashes ends its thread alone. */
import { failureOf, TimeoutError } from '../handler/failure';
import { type TimeLimits, timeoutOf } from '../handler/host';
import type { LogSink } from '../handler/log';
import type { DeliveryOutcome, HandlerDelivery } from '../handler/protocol';
import type { Registration } from '../handler/registry';
import type { CrossingError, FromThread, Question, Reason, ThreadData, ToThread } from '../handler/thread';
import { atMost } from '../handler/timing';
import type { Voice } from '../handler/voice';
import { isA, memberOf, messageOf } from '../job/thrown';
import { TocsinError } from '../producer/errors';
import { startThread, type Thread } from './node';

/** How long after its timeout a run's thread is ended, in ms: the run may end by itself, and run hooks. */
const BEYOND_MS = 1_000;

/** How long a run may continue after its signal has aborted, in ms. */
const AFTER_ABORT_MS = 5_000;

/** Takes the handlers of a module: its default export, or `handlers`. */
const THREAD = `
const { parentPort, workerData } = require('node:worker_threads');
const { module, ...data } = workerData;
import(module).then((loaded) => {
  const found = [loaded.default, loaded.handlers].map((one) => one?.[Symbol.for('tocsin.handlers')]).find(Boolean);
  found.serve(parentPort, { ...data, env: data.env ?? process.env });
});
`;

/** A job, or the jobs of a chunk, and what surrounds their run. */
export interface ThreadRun {
  deliveries: readonly HandlerDelivery[];
  registration: Registration;
  limits: TimeLimits;
  signal: AbortSignal;
  draining: AbortSignal;
  /** Absent: it reports nothing while it runs. */
  voice: Voice | undefined;
}

/** Where threads take handlers from, and what they are given. */
export interface ThreadSettings {
  module: string;
  count: number;
  /** Undefined: the environment of the process. */
  env: unknown;
  /** Gets log lines; undefined: they go where the handlers' own go. */
  sink: LogSink | undefined;
  logAfterMs: number;
  complain: (error: unknown) => void;
}

export class Threads {
  readonly #all = new Set<HandlerThread>();
  #idle: HandlerThread[] = [];
  #isClosed = false;

  /** @throws {TypeError} where there are no threads, or when `env` cannot be given to one */
  constructor(private readonly settings: ThreadSettings) {
    this.#idle = Array.from({ length: settings.count }, () => this.#start());
  }

  #start(): HandlerThread {
    const thread = new HandlerThread(this.settings, () => {
      this.#all.delete(thread);
      this.#idle = this.#idle.filter((other) => other !== thread);
    });
    this.#all.add(thread);
    return thread;
  }

  /** Runs jobs to their ends in one call of their handler. Never rejects. @returns their outcomes, in order */
  async run(run: ThreadRun): Promise<DeliveryOutcome[]> {
    const { deliveries, registration, limits, signal } = run;
    const limitMs = Math.min(...deliveries.map((each) => timeoutOf(each, registration, limits)));
    const again = deliveries.map((): DeliveryOutcome => ({ status: 'again' }));
    let release: (() => void) | undefined;
    try {
      // Of the type, over all threads.
      release = await registration.slots?.acquire(Date.now() + limitMs + BEYOND_MS, signal);
    } catch {
      return again;
    }
    const thread = this.#idle.shift() ?? this.#start();
    const begun = performance.now();
    try {
      const answer = await thread.run(run, limitMs);
      // A single job, and a thread that ended, have one answer.
      return Array.isArray(answer) ? answer : deliveries.map(() => answer);
    } finally {
      release?.();
      // After a timeout its handler may still continue.
      if (performance.now() - begun >= limitMs) thread.end();
      if (thread.isAlive && !this.#isClosed) this.#idle.push(thread);
    }
  }

  /** Lets what the handlers left behind end. @param ms at most */
  async close(ms: number): Promise<void> {
    this.#isClosed = true;
    const threads = [...this.#all];
    for (const thread of threads) thread.askToEnd();
    await atMost(ms, Promise.all(threads.map(({ ended }) => ended)));
    for (const thread of threads) thread.end();
  }
}

interface Current {
  number: number;
  run: ThreadRun;
  resolve: (answer: DeliveryOutcome | DeliveryOutcome[]) => void;
}

class HandlerThread {
  readonly #thread: Thread;
  #current: Current | undefined;
  #number = 0;
  #cause: unknown;
  isAlive = true;
  readonly ended: Promise<void>;

  constructor(
    private readonly settings: ThreadSettings,
    gone: () => void,
  ) {
    const { module, env, sink, logAfterMs } = settings;
    const data: ThreadData & { module: string } = { module, env, forwardsLines: sink !== undefined, logAfterMs };
    this.#thread = threadOf(data);
    this.#thread.on('message', (message: FromThread) => this.#receive(message));
    this.#thread.on('error', (error) => {
      this.#cause = error;
    });
    this.ended = new Promise((resolve) => {
      this.#thread.on('exit', (code) => {
        this.isAlive = false;
        gone();
        if (!this.#current && this.#cause !== undefined) settings.complain(this.#cause);
        this.#settle(crashed(this.#cause, code));
        resolve();
      });
    });
  }

  async run(run: ThreadRun, limitMs: number): Promise<DeliveryOutcome | DeliveryOutcome[]> {
    const { limits, signal, draining } = run;
    const [delivery, ...others] = run.deliveries;
    const number = this.#number++;
    const signalled = (kind: 'abort' | 'drain', { reason }: AbortSignal) =>
      this.#send({ kind, run: number, reason: reasonOf(reason) });
    let afterAbort: ReturnType<typeof setTimeout> | null = null;
    const abort = (): void => {
      signalled('abort', signal);
      afterAbort = setTimeout(() => this.#giveUp('The job was stopped, but its handler continued'), AFTER_ABORT_MS);
    };
    const drain = (): void => signalled('drain', draining);
    const inTime = setTimeout(() => {
      this.#giveUp(`The job did not finish within ${limitMs} ms, and did not react to its signal`);
    }, limitMs + BEYOND_MS);
    try {
      return await new Promise<DeliveryOutcome | DeliveryOutcome[]>((resolve) => {
        this.#current = { number, run, resolve };
        const sent = JSON.parse(JSON.stringify({ delivery, ...(others.length > 0 && { others }) }));
        this.#send({ kind: 'run', run: number, ...sent, limits });
        for (const [from, listener] of [[signal, abort] as const, [draining, drain] as const]) {
          if (from.aborted) listener();
          else from.addEventListener('abort', listener, { once: true });
        }
      });
    } finally {
      clearTimeout(inTime);
      if (afterAbort !== null) clearTimeout(afterAbort);
      signal.removeEventListener('abort', abort);
      draining.removeEventListener('abort', drain);
    }
  }

  #giveUp(why: string): void {
    this.#settle({ status: 'failed', error: failureOf(new TimeoutError(`${why}: its thread was ended.`)) });
    this.end();
  }

  #settle(answer: DeliveryOutcome | DeliveryOutcome[]): void {
    this.#current?.resolve(answer);
    this.#current = undefined;
  }

  askToEnd(): void {
    this.#send({ kind: 'end' });
  }

  end(): void {
    this.isAlive = false;
    void this.#thread.terminate();
  }

  #send(message: ToThread): void {
    this.#thread.postMessage(message);
  }

  #receive(message: FromThread): void {
    const { sink, complain } = this.settings;
    if (message.kind === 'line') sink?.(JSON.parse(message.line));
    else if (message.kind === 'complaint') complain(new Error(message.message));
    else if (message.kind === 'done') this.end();
    else if (this.#current?.number === message.run) this.#receiveFrom(this.#current, message);
  }

  #receiveFrom({ run: { voice } }: Current, message: Extract<FromThread, { run: number }>): void {
    if (message.kind === 'ended') this.#settle(JSON.parse(message.answer));
    else if (message.kind === 'log') voice?.log?.(message.lines);
    else if (voice) void this.#answer(message, voice);
  }

  async #answer({ run, question, verb, said: args }: FromThread & { kind: 'ask' }, voice: Voice): Promise<void> {
    try {
      const value = await ASKED[verb](voice, args);
      this.#send({ kind: 'told', run, question, value });
    } catch (error) {
      this.#send({ kind: 'told', run, question, error: crossing(error) });
    }
  }
}

const ASKED: Record<Question, (voice: Voice, args: readonly unknown[]) => Promise<unknown>> = {
  progress: (voice, [report]) => voice.progress(report as never),
  checkpoint: (voice, [state]) => voice.checkpoint(state),
  record: (voice, [name, record]) => voice.record(name as string, record as never),
  recall: async (voice, [name]) => voice.recall?.(name as string),
  enqueue: async (voice, [job]) => (await voice.enqueue([job as never]))[0],
  enqueueMany: (voice, [jobs]) => voice.enqueue(jobs as never),
  signalUrl: (voice, [asked]) => (voice as Required<Voice>).signalUrl(asked as never),
  stream: (voice, [message]) => (voice as Required<Voice>).stream(message as never),
};

function threadOf(data: ThreadData): Thread {
  let thread: Thread | undefined;
  try {
    thread = startThread(THREAD, data, 'tocsin handlers');
  } catch (cause) {
    throw new TypeError('threads: env must be data that can be sent to a thread', { cause });
  }
  if (!thread) throw new TypeError('threads: this platform has none; they need Node');
  return thread;
}

function crashed(cause: unknown, code: number): DeliveryOutcome {
  const { message: why, stack } = cause === undefined ? { message: `it exited with code ${code}` } : failureOf(cause);
  const error = { code: 'crashed', type: 'tocsin.crash', message: `The thread of the handler ended: ${why}` };
  return { status: 'failed', error: { ...error, ...(stack !== undefined && { stack }) } };
}

function reasonOf(reason: unknown): Reason {
  return { message: messageOf(reason), isCancelled: memberOf(reason, 'name') !== 'AbortError' };
}

function crossing(error: unknown): CrossingError {
  const message = messageOf(error);
  if (!isA(error, TocsinError)) return { message };
  const { status, code, requestId, retryable, details, hint, retryAfterMs, outcomeUnknown } = error;
  return { message, info: { status, code, requestId, retryable, details, hint, retryAfterMs, outcomeUnknown } };
}
