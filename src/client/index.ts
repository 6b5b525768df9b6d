/**
 * The library of a producer: enqueue jobs by service binding or by URL, read and cancel them.
 *
 * @module tocsin/client
 */
export type { Duration, EnvelopeError, JobEnvelope as Job, RetryJitter, RetryPolicy } from '../job/wire';
export type { Bulk, BulkItem, BulkQuery, BulkResult } from './bulk';
export { type JobOf, TocsinClient } from './client';
export type { CronEntry, CronGroupResult, CronQuery, CronStatus, Crons } from './cron';
export type { DeadLetterQuery, DeadLetters, RetryOverride } from './dead-letters';
export {
  ConflictError,
  DuplicateJobError,
  InvalidJobError,
  NotFoundError,
  QueueFullError,
  RateLimitedError,
  TocsinError,
  type TocsinErrorInfo,
  UnauthorizedError,
  UnavailableError,
} from './errors';
export type { EnqueueOptions, Moment, NewJob, UniqueOptions } from './job';
export type { ClientOptions } from './options';
export type { JobPatch, JobQuery, ListOptions, QueueCounts, QueueState } from './queries';
export type { RetryOptions } from './retry';
export type { Endpoint, RequestOptions, ServiceLike } from './transport';
export type {
  Batch,
  Callbacks,
  Chain,
  Flow,
  Graph,
  GraphStep,
  Group,
  Step,
  Workflow,
  WorkflowOptions,
  WorkflowState,
  WorkflowStatus,
  WorkflowStep,
} from './workflow';
