/**
 * The library of a handler Worker: it makes a Worker for a queue's deliveries from functions by job type.
 * @module tocsin/handler
 */

export { defineHandlers, handler } from './define';
export type { Duration, RetryJitter, RetryPolicy } from './job';
export type { Logger, LogLevel, LogLine, LogSink } from './log';
export {
  DeadLetterError,
  DiscardError,
  deadLetter,
  discard,
  FailError,
  fail,
  KillError,
  kill,
  OutcomeError,
  type OutcomeOptions,
  RetryLaterError,
  retryAt,
  retryIn,
  UnrecoverableError,
} from './outcomes';
export type { OpenTelemetry } from './telemetry';
export { type TracingMiddleware, tracing } from './tracing';
export type {
  ExecutionContextLike,
  HandlerContext,
  HandlerDefinition,
  HandlerEntry,
  HandlerFunction,
  Handlers,
  HandlerWorker,
  Job,
  RetryFunction,
  WorkerOptions,
} from './types';
