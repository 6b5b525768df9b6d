/**
 * One workflow at work. It writes each decision first and carries it out afterwards. Which jobs to start follows from the
 * log, and a job counts as started once its queue has answered. So a crash between any two steps leaves work that the next
 * alarm finds again, and repeating it changes nothing: a queue takes each job of a workflow once
 * (`src/queue/features/workflow/steps.ts`), a repeated ending has no second consequence, and cancelling an ended job is not
 * an error.
 */

import type { AlarmClock } from '../durable/alarm-clock';
import { defined } from '../job/envelope/fields';
import { parseJob } from '../job/envelope/parse';
import { ApiError, conflict, outcomeOf, unwrap } from '../job/errors';
import type { JobBody, NewJob } from '../job/record';
import { type NewStep, nodeAt, pathOf } from '../job/workflow/plan';
import { fill, sourcesFor } from '../job/workflow/results';
import type { DirectoryApi } from '../rpc/directory';
import type { QueueApi } from '../rpc/queue';
import type { Ending, EndingsReceipt, StepStart, WorkflowView } from '../rpc/workflow';
import { WorkflowRecord } from './state';
import type { LogEntry, WorkflowStore } from './store';

/** Standby alarm for work that was decided and not done, ms: in case this object dies on the way. */
const STANDBY_MS = 1_000;

/** Pauses between tries when a queue cannot be reached, ms: doubled each time. */
const RETRY_MS = { first: 1_000, longest: 60_000 };

/** How long a workflow is kept after its end, ms. */
export const RETENTION_MS = 30 * 86_400_000;

/** Jobs and characters in one message to a queue. A message holds 32 MiB. */
const MAX_STARTS = 500;
const MAX_START_CHARS = 8 * 1024 * 1024;

/** Bytes of a stored job with its parents' results. A row holds 2 MB, with the history of errors in it. */
const MAX_STORED_BODY = 1.5 * 1024 * 1024;

/** What a workflow needs from the object around it. */
export interface WorkflowHost {
  readonly storage: Pick<DurableObjectStorage, 'sql' | 'transactionSync'>;
  readonly clock: AlarmClock;
  /** Epoch ms. */
  now(): number;
  queue(name: string): Pick<QueueApi, 'startSteps' | 'cancelSteps'>;
  directory(): Pick<DirectoryApi, 'noteWorkflow' | 'forgetWorkflow'>;
}

export class WorkflowEngine {
  private record: WorkflowRecord;
  private working: Promise<void> | undefined;
  private again = false;
  private closed = false;
  private failures = 0;
  private retryAt = 0;

  constructor(
    private readonly host: WorkflowHost,
    private readonly store: WorkflowStore,
  ) {
    this.record = this.read();
  }

  view(): WorkflowView {
    return this.record.view();
  }

  /** Cancels the workflow and then its jobs. @throws {ApiError} 409 when it has ended */
  cancel(): void {
    const { record } = this;
    const { id } = record.meta;
    if (record.run.hasEnded) {
      throw conflict(`Workflow ${id} is ${record.state} and cannot be cancelled.`, {
        workflow_id: id,
        current_state: record.state,
        expected_state: 'running',
      });
    }
    this.write((now) => [{ kind: 'cancelled', at: now, steps: record.countOpen() }]);
  }

  /** Records the ends of jobs. Known ones are skipped. */
  stepsEnded(queue: string, endings: readonly Ending[]): EndingsReceipt {
    const { record } = this;
    const before = record.run.hasEnded;
    const seen = new Set<number>();
    const news = endings.filter(({ step }) => {
      const isNew = record.run.stateOf(step) === 'running' && !seen.has(step);
      seen.add(step);
      return isNew;
    });
    if (news.length > 0) this.write(() => [{ kind: 'ended', endings: news.map((ending) => ({ ...ending })) }]);
    const ended = !before && this.record.run.hasEnded && !this.record.isCancelled;
    return {
      unrecorded: this.record.unstarted().filter((step) => nodeAt(this.record.plan, step).queue === queue),
      events: this.eventsOf(news, ended),
    };
  }

  /** Carries out what was decided. Never rejects: the alarm repeats what fails. */
  work(): Promise<void> {
    this.again = true;
    this.working ??= this.run();
    return this.working;
  }

  /** The alarm. @returns true when the workflow has been kept long enough and everything of it may go */
  async alarm(): Promise<boolean> {
    const { ended, meta } = this.record;
    if (ended !== undefined && ended + RETENTION_MS <= this.host.now()) {
      try {
        await this.host.directory().forgetWorkflow(meta.id);
        return true;
      } catch (error) {
        console.error('tocsin: a workflow could not be taken off the list yet', error);
        this.failed();
      }
    }
    return false;
  }

  /** Arms the alarm for the next pending work. */
  arm(): void {
    const now = this.host.now();
    const next = this.nextDue(now);
    if (next !== undefined) this.host.clock.arm(next, now);
  }

  /** Starts no more work. Waits for calls under way. */
  async close(): Promise<void> {
    this.closed = true;
    await this.working;
  }

  // ---- what happened -----------------------------------------------------------------------------------------------

  private read(): WorkflowRecord {
    const record = new WorkflowRecord(this.store.meta());
    for (const entry of this.store.log()) record.apply(entry);
    return record;
  }

  /** Writes entries and applies them. When the transaction fails, nothing has happened. */
  private write(entries: (now: number) => LogEntry[]): void {
    const { clock, storage } = this.host;
    const armed = clock.armedAt;
    try {
      storage.transactionSync(() => {
        for (const entry of entries(this.host.now())) {
          const kept =
            entry.kind === 'ended' ? { ...entry, endings: entry.endings.map((e) => this.store.keepResult(e)) } : entry;
          this.store.append(kept);
          this.record.apply(kept);
        }
        this.arm();
      });
    } catch (error) {
      clock.restore(armed);
      this.record = this.read();
      throw error;
    }
  }

  private eventsOf(endings: readonly Ending[], ended: boolean): EndingsReceipt['events'] {
    const { plan, id, name, type } = this.record.meta;
    const about = defined({ workflow_id: id, name, workflow_type: type });
    const events: EndingsReceipt['events'] = [];
    for (const { step, end, job_id } of endings) {
      if (end !== 'completed') continue;
      events.push({ type: 'workflow.step_completed', data: { ...about, step: pathOf(plan, step), job_id } });
    }
    const { state } = this.record;
    if (ended) events.push({ type: `workflow.${state}`, data: { ...about, state } });
    return events;
  }

  // ---- what is to be done ------------------------------------------------------------------------------------------

  private nextDue(now: number): number | undefined {
    const { record } = this;
    const open = record.unnoted || record.unstarted().length > 0 || record.uncancelled().size > 0;
    if (open) return Math.max(this.retryAt, now + STANDBY_MS);
    return record.ended === undefined ? undefined : Math.max(this.retryAt, record.ended + RETENTION_MS);
  }

  private async run(): Promise<void> {
    try {
      while (this.again && !this.closed) {
        this.again = false;
        if (await this.round()) this.failures = 0;
        else this.failed();
      }
    } finally {
      this.working = undefined;
    }
  }

  private failed(): void {
    const now = this.host.now();
    this.retryAt = now + Math.min(RETRY_MS.longest, RETRY_MS.first * 2 ** this.failures++);
    this.host.clock.arm(this.retryAt, now);
  }

  /** Everything that is to be done, once. One queue that cannot be reached holds up no other. @returns whether all went well */
  private async round(): Promise<boolean> {
    const tasks: (() => Promise<void>)[] = [];
    if (this.record.unnoted) tasks.push(() => this.note());
    for (const [queue, steps] of this.unstartedByQueue()) tasks.push(() => this.start(queue, steps));
    let well = true;
    const perform = async (task: () => Promise<void>): Promise<void> => {
      if (this.closed) return;
      try {
        await task();
      } catch (error) {
        if (!(error instanceof ApiError && error.data.retryable)) console.error('tocsin: a workflow is held up', error);
        well = false;
      }
    };
    for (const task of tasks) await perform(task);
    // Only now are all jobs known that must be cancelled.
    for (const [queue, jobs] of this.record.uncancelled()) await perform(() => this.callOff(queue, jobs));
    return well;
  }

  private async note(): Promise<void> {
    const summary = this.record.summary();
    await this.host.directory().noteWorkflow(summary);
    if (!this.closed) this.write(() => [{ kind: 'noted', state: summary.state }]);
  }

  private unstartedByQueue(): Map<string, number[]> {
    const byQueue = new Map<string, number[]>();
    for (const step of this.record.unstarted()) {
      const queue = nodeAt(this.record.plan, step).queue as string;
      byQueue.set(queue, [...(byQueue.get(queue) ?? []), step]);
    }
    return byQueue;
  }

  /** Starts jobs in one queue, some at a time. */
  private async start(queue: string, steps: readonly number[]): Promise<void> {
    const bodies = this.store.jobs();
    let batch: StepStart['steps'] = [];
    let chars = 0;
    for (const step of steps) {
      // The job may have ended meanwhile, or a lost answer may have arrived by another way.
      if (!this.record.isUnstarted(step)) continue;
      const job = this.build({ step, job: bodies(step) });
      if (!job) continue;
      if (batch.length === MAX_STARTS || (batch.length > 0 && chars + job.body.length > MAX_START_CHARS)) {
        await this.send(queue, batch);
        batch = [];
        chars = 0;
      }
      batch.push({ step, job });
      chars += job.body.length;
    }
    if (batch.length > 0) await this.send(queue, batch);
  }

  private async send(queue: string, steps: StepStart['steps']): Promise<void> {
    if (this.closed) return;
    const { record } = this;
    const start: StepStart = {
      workflow: record.meta.id,
      steps,
      cancelled: record.isCancelled,
      first: !record.hasStarted,
    };
    const ids = unwrap(await this.host.queue(queue).startSteps(start));
    if (this.closed) return;
    const jobs = steps.map(({ step }, place): [number, string | null] => [step, ids[place] ?? null]);
    this.write((now) => [{ kind: 'started', at: now, jobs }]);
  }

  /** A job ready for its queue. Undefined when it cannot be made, which ends it. */
  private build({ step, job }: NewStep): NewJob | undefined {
    // Relative times count from the start of the step, not from that of the workflow.
    const parsed = outcomeOf(() => parseJob(JSON.parse(job) as Record<string, unknown>, { now: this.host.now() }));
    if (!parsed.ok) {
      const { code, type, message } = parsed.error;
      const error = { code, type: type ?? code, message };
      this.write((now) => [{ kind: 'ended', endings: [{ step, end: 'failed', at: now, error }] }]);
      this.again = true;
      return undefined;
    }
    const body: JobBody = { ...parsed.value.body, workflow: { id: this.record.meta.id, step } };
    const room = MAX_STORED_BODY - new TextEncoder().encode(JSON.stringify(body)).byteLength;
    const results = this.parentResults(step, room);
    const text = JSON.stringify(body);
    return { ...parsed.value.job, body: results === '[]' ? text : `${text.slice(0, -1)},"parent_results":${results}}` };
  }

  private parentResults(step: number, maxBytes: number): string {
    const { record } = this;
    return fill(
      sourcesFor(record.plan, step),
      (job) => {
        const { text, far } = record.resultOf(job);
        return far ? this.store.farResult(job) : text;
      },
      maxBytes,
      (job, bytes) => JSON.stringify({ omitted: true, job_id: record.jobIdOf(job), bytes }),
    );
  }

  private async callOff(queue: string, jobs: readonly { step: number; jobId: string }[]): Promise<void> {
    const ids = jobs.map(({ jobId }) => jobId);
    unwrap(await this.host.queue(queue).cancelSteps(ids));
    if (!this.closed) this.write(() => [{ kind: 'called_off', steps: jobs.map(({ step }) => step) }]);
  }
}
