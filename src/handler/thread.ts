/** Handlers in a thread of a worker that pulls: it runs deliveries, and asks the worker for what its handlers need. */
import { messageOf } from '../job/thrown';
import type { JobEnvelope } from '../producer/envelope';
import { errorFor, type TocsinErrorInfo } from '../producer/errors';
import { CancelledError } from './control';
import type { Host, TimeLimits } from './host';
import type { LogEntry } from './journal';
import type { LogLine, LogSink } from './log';
import type { DeliveryOutcome, HandlerDelivery, Progress } from './protocol';
import type { Registry } from './registry';
import { runDelivery } from './run';
import { runAll } from './run-all';
import { RunSignal } from './run-signal';
import type { StepRecord } from './step-rules';
import { Deadlines } from './time-limit';
import type { ChildJob, SignalUrlAsked, StreamMessage, Voice } from './voice';

/** Why a signal aborts. */
export interface Reason {
  message: string;
  isCancelled: boolean;
}

/** An error on its way to a handler; with `info` it is one of the client's. */
export interface CrossingError {
  message: string;
  info?: TocsinErrorInfo;
}

/** What the worker tells a thread. Runs and questions have numbers. */
export type ToThread =
  /** `others` run in one call with it; then the answer is a list. */
  | { kind: 'run'; run: number; delivery: HandlerDelivery; others?: HandlerDelivery[]; limits: TimeLimits }
  | { kind: 'abort'; run: number; reason: Reason }
  | { kind: 'drain'; run: number; reason: Reason }
  | { kind: 'told'; run: number; question: number; value?: unknown; error?: CrossingError }
  /** It is done once what its handlers left behind has ended. */
  | { kind: 'end' };

/** What a handler asks of the queue. */
export type Question =
  | 'progress'
  | 'checkpoint'
  | 'record'
  | 'recall'
  | 'enqueue'
  | 'enqueueMany'
  | 'signalUrl'
  | 'stream';

/** What a thread tells the worker. Answers and lines are JSON. */
export type FromThread =
  | { kind: 'ask'; run: number; question: number; verb: Question; said: readonly unknown[] }
  | { kind: 'log'; run: number; lines: LogEntry[] }
  | { kind: 'line'; line: string }
  | { kind: 'complaint'; message: string }
  | { kind: 'ended'; run: number; answer: string }
  | { kind: 'done' };

/** A port of `node:worker_threads`. */
export interface Port {
  postMessage(message: FromThread): void;
  on(event: 'message', listener: (message: ToThread) => void): unknown;
}

/** What a thread is called with the moment when it starts. */
export interface ThreadData {
  env: unknown;
  /** Do log lines go to the worker? Else to where the handlers' own go. */
  forwardsLines: boolean;
  logAfterMs: number;
}

interface Run {
  call: RunSignal;
  draining: RunSignal;
  questions: Map<number, { resolve: (value: unknown) => void; reject: (error: unknown) => void }>;
}

export function serveRuns(registry: Registry, ownSink: LogSink, port: Port, data: ThreadData): void {
  const runs = new Map<number, Run>();
  const background = new Set<Promise<unknown>>();
  const deadlines = new Deadlines();
  const sink: LogSink = data.forwardsLines
    ? (line: LogLine) => port.postMessage({ kind: 'line', line: JSON.stringify(line) })
    : ownSink;

  const waitUntil = (promise: Promise<unknown>): void => {
    const ended = Promise.resolve(promise)
      .catch((error: unknown) => port.postMessage({ kind: 'complaint', message: messageOf(error) }))
      .finally(() => background.delete(ended));
    background.add(ended);
  };

  const run = async ({ run: number, delivery, others, limits }: ToThread & { kind: 'run' }): Promise<void> => {
    const own: Run = { call: new RunSignal(), draining: new RunSignal(), questions: new Map() };
    runs.set(number, own);
    const host: Host = {
      env: data.env,
      executionCtx: { waitUntil },
      ...{ call: own.call, draining: own.draining, sink, limits, deadlines },
      voice: () => new PortVoice(port, number, own.questions, data.logAfterMs),
    };
    const answer = others
      ? await Promise.all(runAll([delivery, ...others], registry, host))
      : await runDelivery(delivery, registry, host);
    runs.delete(number);
    port.postMessage({ kind: 'ended', run: number, answer: textOf(answer) });
  };

  const told = ({ run: number, question, value, error }: ToThread & { kind: 'told' }): void => {
    const questions = runs.get(number)?.questions;
    const waiting = questions?.get(question);
    questions?.delete(question);
    if (error) waiting?.reject(error.info ? errorFor(error.message, error.info) : new Error(error.message));
    else waiting?.resolve(value);
  };

  port.on('message', (message) => {
    switch (message.kind) {
      case 'run':
        void run(message);
        break;
      case 'end':
        void Promise.allSettled(background).then(() => port.postMessage({ kind: 'done' }));
        break;
      case 'abort':
        runs.get(message.run)?.call.abort(reasonOf(message.reason));
        break;
      case 'drain':
        runs.get(message.run)?.draining.abort(reasonOf(message.reason));
        break;
      case 'told':
        told(message);
    }
  });
}

class PortVoice implements Voice {
  readonly durable = 'now';
  #questions = 0;

  constructor(
    private readonly port: Port,
    private readonly run: number,
    private readonly waiting: Run['questions'],
    readonly logAfterMs: number,
  ) {}

  log(lines: LogEntry[]): void {
    this.port.postMessage({ kind: 'log', run: this.run, lines });
  }

  async progress(report: Progress): Promise<void> {
    await this.#ask('progress', report);
  }

  async checkpoint(state: unknown): Promise<void> {
    await this.#ask('checkpoint', state);
  }

  async record(name: string, record: StepRecord): Promise<StepRecord | undefined> {
    return (await this.#ask('record', name, record)) as StepRecord | undefined;
  }

  recall(name: string): Promise<unknown> {
    return this.#ask('recall', name);
  }

  async enqueue(jobs: readonly ChildJob[]): Promise<JobEnvelope[]> {
    // The worker may be of a release that knows single jobs only.
    if (jobs.length === 1) return [(await this.#ask('enqueue', jobs[0])) as JobEnvelope];
    return (await this.#ask('enqueueMany', jobs)) as JobEnvelope[];
  }

  async signalUrl(asked: SignalUrlAsked): Promise<string> {
    return (await this.#ask('signalUrl', asked)) as string;
  }

  async stream(message: StreamMessage): Promise<void> {
    await this.#ask('stream', message);
  }

  #ask(verb: Question, ...said: unknown[]): Promise<unknown> {
    const question = this.#questions++;
    return new Promise((resolve, reject) => {
      this.waiting.set(question, { resolve, reject });
      this.port.postMessage({ kind: 'ask', run: this.run, question, verb, said });
    });
  }
}

function reasonOf({ message, isCancelled }: Reason): Error {
  return isCancelled ? new CancelledError(message) : new DOMException(message, 'AbortError');
}

function textOf(answer: DeliveryOutcome | DeliveryOutcome[]): string {
  try {
    return JSON.stringify(answer);
  } catch (error) {
    const message = `What the run ended with is not JSON: ${messageOf(error)}`;
    return JSON.stringify({ status: 'failed', error: { code: 'handler_error', message } });
  }
}
