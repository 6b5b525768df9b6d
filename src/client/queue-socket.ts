/** What a socket between a worker and its queue reports, and asks of the worker. */
import type { JobEnvelope } from '../producer/envelope';
import type { TocsinError } from '../producer/errors';
import type { Wanted } from './pull-types';
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

export interface QueueSocketHost extends Pick<QueueSocketEvents, 'directive' | 'taken'> {
  wanted(): Wanted;
  /** How many jobs more of a queue may run, whatever else runs. */
  roomIn(queue: string): number;
  jobs(jobs: JobEnvelope[]): void;
  complain(error: unknown): void;
  /** Something has changed: there may be room, or no connection any more. */
  changed(): void;
}
