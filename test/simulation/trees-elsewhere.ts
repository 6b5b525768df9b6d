/**
 * Another queue, as far as trees of jobs can tell: it takes jobs once for each key, its jobs end, may wait for jobs of the
 * simulated queue, and end when their handlers do not wait for them any more. What it has to say it says until it is heard.
 */
import type { ErrorData, Outcome } from '../../src/job/errors';
import { mintId } from '../../src/job/ids';
import type { Awaited, NewJob } from '../../src/job/record';
import type { EnqueuedJob } from '../../src/rpc/receipts';
import type { RunEnding } from '../../src/rpc/runs';

export const ELSEWHERE = 'elsewhere';
const ROUTE = 9;
/** The name under which its jobs wait. */
export const RUN_NAME = 'far';

export interface FarJob {
  id: string;
  awaited: Awaited | undefined;
  isOpen: boolean;
  /** Somebody made it live again: nobody needs to wait for it. */
  isRedriven: boolean;
  claim: number;
  /** The job here that it waits for, once it knows of it. */
  waitsFor: { id: string | undefined; claim: number } | undefined;
}

/** What it sends to the simulated queue. */
export type FarMessage =
  | { kind: 'start'; key: string; by: FarJob; claim: number; job: NewJob }
  | { kind: 'ended'; ending: RunEnding }
  | { kind: 'cancel'; id: string };

const REFUSED: ErrorData = { code: 'invalid_request', status: 422, message: 'no', retryable: false };

export class Elsewhere {
  readonly jobs = new Map<string, FarJob>();
  readonly sent: FarMessage[] = [];
  private readonly answers = new Map<string, Outcome<EnqueuedJob>[]>();

  /** @returns what it answers, as before if it knows the key */
  enqueue(jobs: readonly NewJob[], key: string, isRefused: boolean, now: number) {
    const earlier = this.answers.get(key);
    if (earlier) return { outcomes: earlier, replayed: true };
    const outcomes = jobs.map((job): Outcome<EnqueuedJob> => {
      if (isRefused) return { ok: false, error: REFUSED };
      const { id } = this.take(job, now);
      return { ok: true, value: { record: { id } } as EnqueuedJob };
    });
    this.answers.set(key, outcomes);
    return { outcomes, replayed: false };
  }

  private take({ body, superseded }: NewJob, now: number): FarJob {
    const { awaited } = JSON.parse(body) as { awaited?: Awaited };
    const id = mintId(now, ROUTE, this.jobs.size + 1);
    const job: FarJob = { id, awaited, isOpen: true, isRedriven: false, claim: 1, waitsFor: undefined };
    this.jobs.set(id, job);
    if (superseded) this.end(job, 'cancelled');
    return job;
  }

  end(job: FarJob, how: 'completed' | 'discarded' | 'cancelled'): void {
    const { id, awaited, waitsFor } = job;
    job.isOpen = false;
    job.waitsFor = undefined;
    if (waitsFor?.id !== undefined) this.sent.push({ kind: 'cancel', id: waitsFor.id });
    if (!awaited) return;
    const { by, name, claim, index } = awaited;
    const end =
      how === 'completed' ? { result: JSON.stringify(id) } : { error: { code: how, message: how, state: how } };
    this.sent.push({ kind: 'ended', ending: { by, name, claim, id, ...(index !== undefined && { index }), ...end } });
  }

  redrive(job: FarJob): void {
    job.isOpen = true;
    job.isRedriven = true;
    job.claim++;
  }

  /** The simulated queue has started the job of a message. */
  started({ by, claim }: FarMessage & { kind: 'start' }, id: string | undefined): void {
    if (by.waitsFor?.claim !== claim) {
      if (id !== undefined) this.sent.push({ kind: 'cancel', id });
    } else if (id === undefined) by.waitsFor = undefined;
    else by.waitsFor.id = id;
  }

  /** @returns those that are not here */
  ended(endings: readonly RunEnding[]): RunEnding[] {
    return endings.filter(({ by, claim }) => {
      const job = this.jobs.get(by);
      if (job?.waitsFor?.claim === claim) job.waitsFor = undefined;
      return !job;
    });
  }

  /** @returns those that are not here */
  cancel(ids: readonly string[]): string[] {
    return ids.filter((id) => {
      const job = this.jobs.get(id);
      if (job?.isOpen) this.end(job, 'cancelled');
      return !job;
    });
  }
}
