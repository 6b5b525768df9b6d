/** A socket between a worker and its queue, as both of its ends see it. */
import type { JobEnvelope } from '../producer/envelope';
import type { TocsinError } from '../producer/errors';
import type { HeartbeatAnswer, Wanted } from './pull-types';
import type { ReportOutcome, SentReport } from './report';
import type { Directive } from './workers';

export interface QueueSocketEvents {
  jobs(jobs: JobEnvelope[]): void;
  /** An attempt was ended by others. */
  taken(jobId: string, why: 'cancelled' | 'lost'): void;
  directive(state: Directive): void;
  /** The queue could not hand out jobs: it must be notified again what the worker is ready for. */
  refused(error: TocsinError): void;
  /** The connection is over, unless it was closed from here. */
  lost(): void;
}

/** What a worker says. */
export interface QueueSocket {
  readonly isOpen: boolean;
  /** Asks for this many more jobs. */
  ready(count: number): void;
  /**
   * Sends reports. @param ready asks for this many more jobs. @throws {UnavailableError} when the connection breaks off
   */
  report(reports: readonly SentReport[], ready: number): Promise<ReportOutcome[]>;
  /** Enqueues jobs, all or none. @param jobs their texts, comma-separated @throws {UnavailableError} and others */
  enqueue(jobs: string): Promise<unknown>;
  /** @param body of a heartbeat over HTTP. @throws {UnavailableError} when the connection breaks off */
  heartbeat(body: string): Promise<HeartbeatAnswer>;
  /** Is the other side there? @throws {UnavailableError} when the connection breaks off */
  ping(): Promise<void>;
  /** Takes no more jobs. Resolves when none comes any more. */
  pause(): Promise<void>;
  close(): void;
  /** The other side does not answer any more. */
  abandon(): void;
}

/** The user of the sockets. */
export interface QueueSocketHost extends Pick<QueueSocketEvents, 'directive' | 'taken'> {
  wanted(): Wanted;
  /** How many jobs more of a queue may run, whatever else runs. */
  roomIn(queue: string): number;
  jobs(jobs: JobEnvelope[]): void;
  /** Errors that no one waits for. */
  complain(error: unknown): void;
  /** Something has changed: there may be room, or no connection any more. */
  changed(): void;
}
