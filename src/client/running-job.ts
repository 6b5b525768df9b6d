/** A job that a worker runs, by itself or in a chunk. */
import { CancelledError } from '../handler/control';
import type { LogEntry } from '../handler/journal';
import { RunSignal } from '../handler/run-signal';
import type { JobEnvelope } from '../producer/envelope';

const REASONS = {
  cancelled: () => new CancelledError('The job was cancelled.'),
  lost: () => aborted('The lease of the job was lost; another worker may run it.'),
  shutdown: () => aborted('The worker was stopped.'),
};

export const DRAINING = 'The worker takes no more jobs, and exits when the running ones have ended.';

export const aborted = (message: string): DOMException => new DOMException(message, 'AbortError');

export class RunningJob {
  readonly #aborter = new RunSignal();
  readonly #chunkAborter = new RunSignal();
  /** Members that are not at their end. */
  #left = 1;
  readonly draining = new RunSignal();
  /** Log lines besides those of its handler. */
  readonly notes: LogEntry[] = [];
  /** Its handler has ended, and its report is under way. */
  reporting = false;
  /** Resolves once all its work has ended. */
  ended: Promise<void> = Promise.resolve();

  /** Epoch ms. */
  leasedUntil: number;
  /** Jobs that run in one call with it, itself included; it leads them. */
  members: readonly RunningJob[] = [this];
  leader: RunningJob = this;

  /** @param leaseMs length of its lease */
  constructor(
    readonly job: JobEnvelope,
    readonly leaseMs: number,
  ) {
    this.leasedUntil = Date.now() + leaseMs;
  }

  /** Aborts when its outcome no longer matters. */
  get signal(): AbortSignal {
    return this.#aborter.signal;
  }

  get isStopped(): boolean {
    return this.#aborter.isAborted;
  }

  /** Aborts when the outcome of none of its chunk matters. */
  get chunkSignal(): AbortSignal {
    return this.#chunkAborter.signal;
  }

  get isOver(): boolean {
    return this.members.every(({ isStopped }) => isStopped);
  }

  lead(members: readonly RunningJob[]): void {
    this.members = members;
    this.#left = members.length;
    for (const member of members) member.leader = this;
  }

  /** One of its members is at its end. @returns whether others of the chunk are not */
  forgotten(): boolean {
    return --this.#left > 0;
  }

  /** Aborts the handler's signal; nothing is reported any more. */
  stop(why: keyof typeof REASONS): void {
    this.#aborter.abort(REASONS[why]());
    if (this.leader.isOver) this.leader.#chunkAborter.abort(REASONS[why]());
  }
}
