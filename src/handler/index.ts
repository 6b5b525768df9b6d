/**
 * The library of a handler Worker: it makes a Worker for a queue's deliveries from functions by job type.
 * @module tocsin/handler
 */

export type { EnqueueDefaults } from '../producer/defaults';
export type { Duration, RetryJitter, RetryPolicy } from '../producer/envelope';
export {
  ConflictError,
  DuplicateJobError,
  InvalidJobError,
  TocsinError,
  type TocsinErrorInfo,
  UnavailableError,
} from '../producer/errors';
export type { JobOptions } from '../producer/job';
export { InvalidArgsError } from './arguments';
export { type BatchedOptions, batched } from './batched';
export { CancelledError } from './control';
export { defineHandlers, handler } from './define';
export type { Logger, LogLevel, LogLine, LogSink } from './log';
export {
  ChildError,
  ChildrenFailedError,
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
  RunTimeoutError,
  retryAt,
  retryIn,
  SignalTimeoutError,
  SnoozeError,
  StepError,
  snooze,
  UnrecoverableError,
} from './outcomes';
export type { SchemaIssue, SchemaResult, StandardSchema } from './schema';
export { StreamFullError } from './stream';
export { isSuspended, SuspendedError } from './suspension';
export type { OpenTelemetry } from './telemetry';
export { type TracingMiddleware, tracing } from './tracing';
export type {
  BatchContext,
  BatchedHandler,
  BatchFunction,
  ChildOutcome,
  ChildResult,
  ExecutionContextLike,
  HandlerContext,
  HandlerDefinition,
  HandlerEntry,
  HandlerFunction,
  Job,
  OutputStream,
  RetryFunction,
  RunAllOptions,
  RunChildOptions,
  StepContext,
  StepOptions,
  StepRetry,
  UndoContext,
  UndoFunction,
  UndoneJob,
  UndoTable,
} from './types';
export type {
  FailureHook,
  Handlers,
  HandlerWorker,
  InferredEntry,
  InferredJob,
  JobsOf,
  Middleware,
  ResultsOf,
  WorkerOptions,
} from './worker-types';
