/** Handlers in a thread of a worker that pulls: it runs deliveries, and asks the worker for what its handlers need. */
import { messageOf } from '../job/thrown';
import { errorFor, type TocsinErrorInfo } from '../producer/errors';
import { CancelledError } from './control';
import type { Host, TimeLimits } from './host';
import type { LogEntry } from './journal';
import type { LogLine, LogSink } from './log';
import type { DeliveryOutcome, HandlerDelivery } from './protocol';
import type { Registry } from './registry';
import { runDelivery } from './run';
import { runAll } from './run-all';
import { RunSignal } from './run-signal';
import { Deadlines } from './time-limit';
import type { Voice } from './voice';

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
export type Question = Exclude<keyof Voice, 'durable' | 'logAfterMs' | 'log' | 'keepsOrder' | 'play'> | 'enqueueMany';

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
  questions: Map<number, { resolve: (value: never) => void; reject: (error: unknown) => void }>;
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
      voice: () => portVoice(port, number, own.questions, data.logAfterMs),
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
    else waiting?.resolve(value as never);
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

/** Speaks for one run, by questions to the worker. */
function portVoice(port: Port, run: number, waiting: Run['questions'], logAfterMs: number): Voice {
  let questions = 0;
  const ask = (verb: Question, ...said: unknown[]) =>
    new Promise<never>((resolve, reject) => {
      const question = questions++;
      waiting.set(question, { resolve, reject });
      port.postMessage({ kind: 'ask', run, question, verb, said });
    });
  return {
    ...{ durable: 'now', logAfterMs },
    log: (lines) => port.postMessage({ kind: 'log', run, lines }),
    progress: (report) => ask('progress', report),
    checkpoint: (state) => ask('checkpoint', state),
    record: (name, record) => ask('record', name, record),
    recall: (name) => ask('recall', name),
    // The worker may be of a release that knows single jobs only.
    enqueue: async (jobs) => (jobs.length === 1 ? [await ask('enqueue', jobs[0])] : await ask('enqueueMany', jobs)),
    signalUrl: (asked) => ask('signalUrl', asked),
    stream: (message) => ask('stream', message),
  };
}

const reasonOf = ({ message, isCancelled }: Reason): Error =>
  isCancelled ? new CancelledError(message) : new DOMException(message, 'AbortError');

function textOf(answer: DeliveryOutcome | DeliveryOutcome[]): string {
  try {
    return JSON.stringify(answer);
  } catch (error) {
    const message = `What the run ended with is not JSON: ${messageOf(error)}`;
    return JSON.stringify({ status: 'failed', error: { code: 'handler_error', message } });
  }
}
