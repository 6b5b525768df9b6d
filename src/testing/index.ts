/**
 * Tests of handlers in any runtime and runner; `tocsin/testing/vitest` has whole queues with a controlled clock.
 * @module tocsin/testing
 */
export type { LogEntry } from '../handler/journal';
export type { Progress } from '../handler/protocol';
export type { StepRecord } from '../handler/step-rules';
export { type JobRun, runBatch, runHandler, runToEnd, type UndoOptions, undoHandler } from './run-handler';
export type { PlayedEnd, PlayedRuns } from './runs';
export type { AwaitedRun, EnqueuedJob, HandlerRun, RunError, RunOptions } from './types';
