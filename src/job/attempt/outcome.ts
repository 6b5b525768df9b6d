/** How an attempt ends and what it reports meanwhile, for push handlers and pull workers alike. */
import type { ErrorData } from '../errors';
import type { LogLine } from '../log';
import type { ReportedError, Snooze } from '../record';
import type { StreamSaid } from '../streams';
import type { Progress } from './notes';

export interface AttemptName {
  job_id: string;
  attempt?: number;
  delivery_id?: string;
  worker_id?: string;
}

/** Why an attempt failed: what its handler reported, and what was observed of it. */
export interface AttemptFailure extends ReportedError {
  /** The handler Worker died without an answer. */
  crash?: boolean;
  visibility_expired?: boolean;
  no_handler?: boolean;
  /** The target refused the delivery itself (401, 403, 404, 405). */
  target_rejected?: boolean;
  /** The next run must not start earlier than this many ms from now (`Retry-After`). */
  at_least_ms?: number;
  /** Without a report: the queue itself ended the attempt. */
  by_queue?: true;
}

/** What an attempt says beside how it ends. The queue writes it together with the end. */
export interface OutcomeNotes {
  log?: LogLine[];
  progress?: Progress;
  /** JSON text of a `CheckpointContent`. */
  checkpoint?: string;
  /** JSON text of `Steps`. */
  steps?: string;
  streams?: StreamSaid[];
  /** Jobs to enqueue, as the handler wrote them. */
  enqueue?: unknown;
}

export type AttemptOutcome = OutcomeNotes &
  (
    | { kind: 'completed' /** JSON text, if there is a result. */; result?: string }
    | { kind: 'failed'; error: AttemptFailure }
    /** `runs`: JSON text of `RunRequest[]`. `enqueuer`: whose handler asks for them, when it was pushed. */
    | { kind: 'snoozed'; snooze: Snooze; runs?: string; enqueuer?: Enqueuer }
    | { kind: 'released'; release: Release }
  );

/** A handler's target, and the queues in which it may enqueue; absent: in any. */
export interface Enqueuer {
  name: string;
  mayEnqueue?: readonly string[];
}

export type Release =
  /** The attempt counts. If it was the last one, it fails with this error. */
  | { attempt: 'used'; error: AttemptFailure }
  /**
   * Not counted. `unused`: no handler was called. `unreached`: the handler Worker is not running. `goes_on`: needs a
   * call with a live connection; limits have counted its start already.
   */
  | { attempt: 'unused' | 'unreached' | 'goes_on' };

/** What an attempt reports while it continues. Contents and records are JSON texts. */
export type RunNote =
  | ({ kind: 'progress' } & Progress & { checkpoint?: string })
  | { kind: 'checkpoint'; content: string }
  | { kind: 'step'; name: string; record: string };

export type EndReport = AttemptName &
  AttemptOutcome & {
    /** Why the report is answered as refused, although it has ended the attempt: its result cannot be kept. */
    refusal?: ErrorData;
  };

export type NoteReport = AttemptName & RunNote;

export type Report = EndReport | NoteReport;

export function isEnd(report: Report): report is EndReport {
  const { kind } = report;
  return kind === 'completed' || kind === 'failed' || kind === 'snoozed' || kind === 'released';
}

export const failed = (error: AttemptFailure): AttemptOutcome => ({ kind: 'failed', error });
