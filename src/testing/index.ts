/**
 * Tests of handlers, in any runtime and under any test runner. A whole queue with a clock of its own, for Vitest in the
 * Workers runtime, is in `tocsin/testing/vitest`.
 * @module tocsin/testing
 */
export type { LogEntry } from '../handler/journal';
export type { Progress } from '../handler/protocol';
export type { StepRecord } from '../handler/step-rules';
export { runBatch } from './run-batch';
export { type JobRun, runHandler, runToEnd } from './run-handler';
export type { EnqueuedJob, HandlerRun, RunError, RunOptions } from './types';
