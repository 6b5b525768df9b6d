/** Everything the server can do, for producers, operators and pull workers. @module tocsin/client */

import { runWorkersBy } from './pull';
import { runPuller } from './run';

runWorkersBy(runPuller);

export type { OpenTelemetry } from '../handler/telemetry';
export type { WaitingReason } from '../job/waiting';
export type {
  Duration,
  EnvelopeError,
  EnvelopeWaiting as WaitingFor,
  JobEnvelope as Job,
  RetentionOptions,
  RetryJitter,
  RetryPolicy,
} from '../producer/envelope';
export {
  AbortedError,
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
  WaitTimeoutError,
} from '../producer/errors';
export type { CronJobOptions, EnqueueOptions, JobOptions, Moment, NewJob, StepOptions } from '../producer/job';
export type { Period, QueueLimits, Quota, RateLimitOptions } from '../producer/limits';
export type { UniqueDimension, UniqueOptions } from '../producer/unique';
export type { Alert, AlertInQueue, AlertMetric, AlertOptions, Alerts } from './alerts';
export type { Audit, AuditEntry, AuditQuery } from './audit';
export type { Bulk, BulkActOptions, BulkItem, BulkOptions, BulkPreview, BulkResult } from './bulk';
export { type JobOf, type StoredJobOf, TocsinClient } from './client';
export type { CronGroup, CronGroupResult, CronGroupSummary, CronGroups, CronQuery, Crons } from './cron';
export type { CronEntry, CronExecution, CronHistory, CronJob, CronPatch, CronSkipped, CronStatus } from './cron-entry';
export type {
  DeadLetterQuery,
  DeadLetterSelection,
  DeadLetterStats,
  DeadLetters,
  RetryOverride,
} from './dead-letters';
export type { BatchOptions, BulkEnqueued, BulkEnqueueOptions, EnqueueOutcome, Refusal } from './enqueue';
export type { EventQuery, Events } from './events';
export type { ExportOptions, FileText, Imported, ImportOptions } from './export';
export type { FailureGroup, FailureGroups, FailureQuery, FailureState, Failures, GroupPart } from './failures';
export type { FollowOptions, FollowQuery, QueueEvent } from './follow';
export type {
  Checkpoint,
  FailedAttempt,
  InspectedJob,
  JobHistoryEvent,
  JobLogLine,
  JobOutcome,
  JobOutcomes,
  JobPage,
  JobProgress,
  JobResult,
  JobRetries,
  JobStep,
  JobSummary,
  StoredJobs,
  SummaryOrder,
} from './jobs';
export type { ApiKey, ApiKeyChange, ApiKeyCreated, ApiKeyOptions, Keys } from './keys';
export type { Maintenance, MaintenanceState } from './maintenance';
export type { ClientOptions } from './options';
export type { ListOptions } from './pages';
export type { JobPatch, RetryChange } from './patch';
export type { PoolOptions, PoolStrategy, Pools, QueuePool, SchedulingStats } from './pools';
export type { PullWorker } from './pull';
export type {
  HandlerSettings,
  HeartbeatAnswer,
  ProgressAnswer,
  ProgressReport,
  RunnableHandlers,
  RunOptions,
  WorkerHandlers,
  WorkerOptions,
} from './pull-types';
export type { FetchOptions, Held, ReleaseOptions, WorkerConnection } from './puller';
export type { BulkQuery, JobQuery, Range, Scalar } from './queries';
export type * from './queue-config';
export type { Queues } from './queues';
export type { LimitsInForce, RateLimitInQueue, RateLimitOverride, RateLimitStatus, RateLimits } from './rate-limits';
export type { EndedJob, JobFailure, ReportOutcome } from './report';
export type { WaitOptions } from './requests';
export type { RetryOptions } from './retry';
export { type QueueOptions, type RunWorkerOptions, runWorker } from './run-worker';
export type { ArgsSchema, Schemas } from './schemas';
export type { Deployment, Health, Manifest, RetryPreview, RetryPreviewRequest, Server } from './server';
export type { TocsinService } from './service';
export type {
  Cost,
  CostItem,
  HistoryQuery,
  Percentiles,
  Statistics,
  Stats,
  StatsPoint,
  Throughput,
  TypeStats,
} from './stats';
export type { JobStream, StreamChunk, StreamOptions } from './stream';
export type {
  TargetDetail,
  TargetInQueue,
  TargetQuery,
  TargetResumed,
  TargetState,
  TargetStatus,
  Targets,
} from './targets';
export type { SignalUrl, Token, TokenOptions, Tokens } from './tokens';
export type { Endpoint, RequestOptions, ServiceLike } from './transport';
export type { Webhook, WebhookDelivery, WebhookFormat, WebhookOptions, Webhooks, WebhookTest } from './webhooks';
export type { Directive, LeasedJob, WorkerCounts, WorkerDetail, WorkerHealth, WorkerStatus, Workers } from './workers';
export type {
  Batch,
  Callbacks,
  Chain,
  Flow,
  Graph,
  GraphStep,
  Group,
  Step,
  StepJob,
  Workflow,
  WorkflowOptions,
} from './workflow';
export type {
  WorkflowForm,
  WorkflowProgress,
  WorkflowQuery,
  WorkflowState,
  WorkflowStatus,
  WorkflowStep,
  WorkflowSummary,
  Workflows,
} from './workflows';
