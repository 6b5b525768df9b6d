/**
 * Another queue, as far as trees of jobs can tell: it takes jobs once for each key, its jobs end, may wait for jobs of the
 * simulated queue, and end when their handlers do not wait for them any more. What it has to say it says until it is heard.
 */
import type { ErrorData, Outcome } from '../../src/job/errors';
import { mintId } from '../../src/job/ids';
import type { Awaited, NewJob, Snoozed } from '../../src/job/record';
import { isPendingRun, RUN_TIMEOUT_MS, runningIn } from '../../src/job/runs';
import type { StepRecord } from '../../src/job/steps';
import type { StepRun } from '../../src/job/wire';
import type { MovedJob } from '../../src/rpc/operations';
import type { EnqueuedJob } from '../../src/rpc/receipts';
import type { RunEnding } from '../../src/rpc/runs';
import { holds } from './agree';
import { busy } from './outside';

export const ELSEWHERE = 'elsewhere';
const ROUTE = 9;
/** The name under which its jobs wait. */
export const RUN_NAME = 'far';

export interface FarJob {
  id: string;
  body: string;
  awaited: Awaited | undefined;
  isOpen: boolean;
  /** Somebody made it live again: nobody needs to wait for it. */
  isRedriven: boolean;
  claim: number;
  /** The job here that it waits for, once it knows of it. */
  waitsFor: { id: string | undefined; claim: number } | undefined;
  /** If it came from the simulated queue: the runs that it waits for, by name. */
  runs: Map<string, StepRun>;
}

/** What it sends to the simulated queue. */
export type FarMessage =
  | { kind: 'start'; key: string; by: FarJob; claim: number; job: NewJob }
  | { kind: 'move'; job: MovedJob }
  | { kind: 'ended'; ending: RunEnding }
  | { kind: 'cancel'; id: string };

const REFUSED: ErrorData = { code: 'invalid_request', status: 422, message: 'no', retryable: false };

export class Elsewhere {
  readonly jobs = new Map<string, FarJob>();
  readonly sent: FarMessage[] = [];
  /** On their way to the simulated queue, which may have them already: nothing happens to them here. */
  readonly departing = new Set<string>();
  private readonly answers = new Map<string, Outcome<EnqueuedJob>[]>();
  private readonly steps = new Set<string>();
  private taken = 0;

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
    const job = this.add(mintId(now, ROUTE, ++this.taken), body, 0);
    if (superseded) this.end(job, 'cancelled');
    return job;
  }

  private add(id: string, body: string, claims: number): FarJob {
    const { awaited } = JSON.parse(body) as { awaited?: Awaited };
    const state = { isOpen: true, isRedriven: false, claim: claims + 1, waitsFor: undefined };
    const job: FarJob = { ...{ id, body, awaited }, ...state, runs: new Map() };
    this.jobs.set(id, job);
    return job;
  }

  /** Takes jobs over from the simulated queue, once for each step of its deletion. */
  adopt(step: string, jobs: readonly MovedJob[]): void {
    if (this.steps.has(step)) return;
    this.steps.add(step);
    for (const { id, body, claims, checkpoint } of jobs) {
      holds(!this.jobs.has(id), () => `${id} moves twice`);
      const { runs } = this.add(id, body, claims);
      const { steps = {} } = JSON.parse(checkpoint?.content ?? '{}') as { steps?: Record<string, StepRecord> };
      for (const [name, record] of Object.entries(steps)) if (isPendingRun(record)) runs.set(name, record.run);
    }
  }

  /** Hands a job over to the simulated queue, with what it waits for. */
  depart(job: FarJob, queue: string, now: number): void {
    const { id, body, claim, waitsFor } = job;
    this.jobs.delete(id);
    this.departing.add(id);
    const until = now + RUN_TIMEOUT_MS;
    const run: StepRun = { ...(waitsFor?.id && { id: waitsFor.id }), queue, type: 'tree', claim: claim - 1 };
    const record: StepRecord = { until, run };
    const content = JSON.stringify({ steps: { [RUN_NAME]: record } });
    const snoozed: Snoozed = { since: now, until, runs: [RUN_NAME], claim: claim - 1 };
    const moved: MovedJob = {
      ...{ id, type: 'tree', priority: 0, attempt: 0, claims: claim - 1, pending: false, body },
      ...{ created_at: now, enqueued_at: now, expires_at: null },
      ...(waitsFor
        ? { due_at: until, history: JSON.stringify({ snoozed }), checkpoint: { sequence: 1, created_at: now, content } }
        : { due_at: now, history: null }),
    };
    this.sent.push({ kind: 'move', job: moved });
  }

  end(job: FarJob, how: 'completed' | 'discarded' | 'cancelled'): void {
    const { id, awaited, waitsFor, runs } = job;
    job.isOpen = false;
    job.waitsFor = undefined;
    for (const run of runs.values())
      if (!run.detached) for (const { id } of runningIn(run)) this.sent.push({ kind: 'cancel', id });
    runs.clear();
    if (waitsFor?.id !== undefined) this.sent.push({ kind: 'cancel', id: waitsFor.id });
    if (!awaited) return;
    const { by, name, claim, index } = awaited;
    const end =
      how === 'completed' ? { result: JSON.stringify(id) } : { error: { code: how, message: how, state: how } };
    this.sent.push({ kind: 'ended', ending: { by, name, claim, id, ...(index !== undefined && { index }), ...end } });
  }

  redrive(job: FarJob): void {
    job.isOpen = true;
    job.runs.clear();
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
    return endings.filter((ending) => {
      const job = this.find(ending.by);
      if (job?.waitsFor?.claim === ending.claim && ending.name === RUN_NAME) job.waitsFor = undefined;
      if (job) this.endRun(job, ending);
      return !job;
    });
  }

  private find(id: string): FarJob | undefined {
    if (this.departing.has(id)) throw busy();
    return this.jobs.get(id);
  }

  private endRun({ runs }: FarJob, { name, claim, index, id, error }: RunEnding): void {
    const run = runs.get(name);
    if (run?.claim !== claim) return;
    const { jobs = 1, ends = [] } = run as StepRun;
    if (index !== undefined && !ends.some(([place]) => place === index)) ends.push([index, { id: id as string }]);
    const isStopped = run?.stop && error;
    if (isStopped) for (const { id } of runningIn({ ...run, ends })) this.sent.push({ kind: 'cancel', id });
    if (index === undefined || isStopped || ends.length === jobs) runs.delete(name);
    else runs.set(name, { ...(run as StepRun), ends });
  }

  /** @returns those that are not here */
  cancel(ids: readonly string[]): string[] {
    return ids.filter((id) => {
      const job = this.find(id);
      if (job?.isOpen) this.end(job, 'cancelled');
      return !job;
    });
  }
}
