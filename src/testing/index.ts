/**
 * Tests of handlers in any runtime and runner; `tocsin/testing/vitest` has whole queues with a controlled clock.
 * @module tocsin/testing
 */
export type { LogEntry } from '../handler/journal';
export type { Progress } from '../handler/protocol';
export type { StepRecord } from '../handler/step-rules';
export { runBatch } from './run-batch';
export { type JobRun, runHandler, runToEnd } from './run-handler';
export type { PlayedEnd, PlayedRuns } from './runs';
export type { AwaitedRun, EnqueuedJob, HandlerRun, RunError, RunOptions } from './types';
export { type UndoOptions, undoHandler } from './undo-handler';
