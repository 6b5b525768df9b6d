/**
 * One workflow at work: it writes each decision before carrying it out, and a job counts as started once its queue
 * has answered, so after a crash the next alarm continues. Repeating is harmless: a queue takes each job once
 * (`src/queue/features/workflow/steps.ts`), and repeated endings change nothing.
 */

import { MAX_REACHED } from '../across/locate';
import type { AlarmClock } from '../durable/alarm-clock';
import { STANDBY_MS } from '../durable/outbox';
import { derived, type MessageKind, OutboxRelay } from '../durable/outbox-relay';
import { errorDataOf } from '../durable/platform-errors';
import { utf8Bytes } from '../job/bytes';
import { defined } from '../job/envelope/fields';
import { parseJob } from '../job/envelope/parse';
import { conflict, outcomeOf, unwrap } from '../job/errors';
import type { JobBody, NewJob } from '../job/record';
import { grouped } from '../job/size';
import { type NewStep, nodeAt, pathOf } from '../job/workflow/plan';
import { fill, type Results, sourcesFor } from '../job/workflow/results';
import type { DirectoryApi } from '../rpc/directory';
import type { QueueApi } from '../rpc/queue';
import type { Ending, EndingsReceipt, StepStart, WorkflowView } from '../rpc/workflow';
import { WorkflowRecord } from './state';
import type { LogEntry, WorkflowStore } from './store';

/** How long a workflow is kept after its end, ms. */
export const RETENTION_MS = 30 * 86_400_000;

/** Jobs and characters in one message to a queue. A message holds 32 MiB. */
const MAX_STARTS = 500;
const MAX_START_CHARS = 8 * 1024 * 1024;

/** Bytes of results that a view shows. */
const MAX_SHOWN_BYTES = 1024 * 1024;

/** Bytes of a stored job with its parents' results. A row holds 2 MB, with the history of errors in it. */
const MAX_STORED_BODY = 1.5 * 1024 * 1024;

export interface WorkflowHost {
  readonly storage: Pick<DurableObjectStorage, 'sql' | 'transactionSync'>;
  readonly clock: AlarmClock;
  /** Epoch ms. */
  now(): number;
  queue(name: string): Pick<QueueApi, 'startSteps'>;
  /** Cancels jobs of a queue that have not ended, wherever they are now. Rejects: again. */
  cancel(queue: string, ids: readonly string[]): Promise<void>;
  directory(): Pick<DirectoryApi, 'noteWorkflow' | 'forgetWorkflow'>;
  keepAlive(promise: Promise<unknown>): void;
  /** Removes everything of the workflow, permanently. */
  destroy(): Promise<void>;
}

const DIRECTORY = 'directory';

export class WorkflowEngine {
  private record: WorkflowRecord;
  private closed = false;
  private readonly removal: MessageKind;
  private readonly relay: OutboxRelay;

  constructor(
    private readonly host: WorkflowHost,
    private readonly store: WorkflowStore,
  ) {
    this.record = this.read();
    const { clock, now } = host;
    this.removal = derived({
      kind: 'removal of workflow',
      open: () => (this.record.ended === undefined ? [] : [DIRECTORY]),
      dueAt: () => (this.record.ended ?? 0) + RETENTION_MS,
      deliver: () => this.remove(),
    });
    const at = { now: () => now(), keepAlive: host.keepAlive, wakeAt: (time: number) => clock.arm(time, now()) };
    // One after the other: the jobs to cancel are known when all have started, and only one start is the first.
    this.relay = new OutboxRelay([this.removal, ...this.messages()], at, { width: 1 });
  }

  /** What follows from the log and was not done yet. Each is noted in the log when it was. */
  private messages(): MessageKind[] {
    return [
      derived({
        kind: 'state of workflow',
        open: () => (this.record.unnoted ? [DIRECTORY] : []),
        deliver: () => this.note(),
      }),
      derived({
        kind: 'start of jobs in queue',
        open: () => [...this.unstartedByQueue().keys()],
        deliver: (queue) => this.start(queue, this.unstartedByQueue().get(queue) ?? []),
      }),
      derived({
        kind: 'cancellation of jobs in queue',
        open: () => [...this.record.uncancelled().keys()],
        deliver: (queue) => this.callOff(queue, this.record.uncancelled().get(queue) ?? []),
      }),
    ];
  }

  view(): WorkflowView {
    return this.record.view();
  }

  /** {@link view} with the results of its jobs, in the order of the plan; one without room is left out. */
  viewWithResults(): WorkflowView {
    const view = this.view();
    let room = MAX_SHOWN_BYTES;
    for (const [job, step] of view.steps.entries()) {
      const { text = '', far } = this.record.resultOf(job);
      const bytes = far ? this.store.farResultBytes(job) : utf8Bytes(text);
      const result = bytes <= room ? (far ? this.store.farResult(job) : text) : undefined;
      if (!result) continue;
      step.result = result;
      room -= bytes;
    }
    return view;
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

  /** Does what is decided and not done, and waits for it. Never rejects: the alarm tries again what fails. */
  work(): Promise<void> {
    this.relay.startAnew();
    return this.relay.idle();
  }

  /** As {@link work}, without waiting for more than the removal of a workflow that has been kept long enough. */
  async alarm(): Promise<void> {
    this.relay.startAnew();
    await this.relay.idle(this.removal);
    if (!this.closed) this.arm();
  }

  arm(): void {
    const now = this.host.now();
    const next = this.relay.due(now);
    // What was just decided is done at once; the alarm stands by.
    if (next !== undefined) this.host.clock.arm(Math.max(next, now + STANDBY_MS), now);
  }

  /** Starts no more work. Waits for calls under way. */
  async close(): Promise<void> {
    this.stop();
    await this.relay.idle();
  }

  private stop(): void {
    this.closed = true;
    this.relay.close();
  }

  // ---- what happened ---------------------------------------------------------------------------

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
          for (const kept of this.store.append(entry)) this.record.apply(kept);
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
    if (ended && state === 'completed') events.push({ type: 'workflow.completed', data: { ...about, state } });
    else if (ended && state === 'failed') events.push({ type: 'workflow.failed', data: { ...about, state } });
    return events;
  }

  // ---- what must be done -----------------------------------------------------------------------

  private async remove(): Promise<void> {
    await this.host.directory().forgetWorkflow(this.record.meta.id);
    this.stop();
    await this.host.destroy();
  }

  private async note(): Promise<void> {
    const summary = this.record.summary();
    await this.host.directory().noteWorkflow(summary);
    if (!this.closed) this.write(() => [{ kind: 'noted', state: summary.state }]);
  }

  private unstartedByQueue(): Map<string, number[]> {
    return Map.groupBy(this.record.unstarted(), (step) => nodeAt(this.record.plan, step).queue as string);
  }

  /** Starts jobs in one queue, some now and the others later. @throws {ApiError} if it takes none now */
  private async start(queue: string, steps: readonly number[]): Promise<void> {
    let refused: unknown;
    let isAnyTaken = false;
    for (const batch of grouped(this.built(steps), ({ job }) => job.body.length, MAX_START_CHARS, MAX_STARTS)) {
      try {
        await this.send(queue, batch);
        isAnyTaken = true;
      } catch (error) {
        // Jobs of other groups may have room.
        if (errorDataOf(error)?.status !== 429) throw error;
        refused ??= error;
      }
    }
    if (refused && !isAnyTaken) throw refused;
  }

  private *built(steps: readonly number[]): Generator<StepStart['steps'][number]> {
    const bodies = this.store.jobs();
    for (const step of steps) {
      // The job may have ended meanwhile, or a lost answer may have arrived by another way.
      if (!this.record.isUnstarted(step)) continue;
      const job = this.build({ step, job: bodies(step) });
      if (job) yield { step, job };
    }
  }

  private async send(queue: string, steps: StepStart['steps']): Promise<void> {
    if (this.closed) return;
    const { record } = this;
    const start: StepStart = {
      workflow: record.meta.id,
      steps,
      cancelled: record.isCancelled,
      first: !record.hasStarted,
      divisible: true,
      follow: record.isIn(queue),
    };
    const ids = unwrap(await this.host.queue(queue).startSteps(start));
    if (this.closed) return;
    const jobs = steps.flatMap(({ step }, place): [number, string | null][] => {
      const id = ids[place];
      return id === undefined ? [] : [[step, id]];
    });
    this.write((now) => [{ kind: 'started', at: now, jobs }]);
  }

  /** A job ready for its queue. Undefined when it cannot be made, which ends it. */
  private build({ step, job }: NewStep): NewJob | undefined {
    // Relative times count from the start of the step, not from that of the workflow.
    const again = { now: this.host.now(), accepted: true };
    const parsed = outcomeOf(() => parseJob(JSON.parse(job) as Record<string, unknown>, again));
    if (!parsed.ok) {
      const { code, type, message } = parsed.error;
      const error = { code, type: type ?? code, message };
      this.write((now) => [{ kind: 'ended', endings: [{ step, end: 'failed', at: now, error }] }]);
      return undefined;
    }
    const body: JobBody = { ...parsed.value.body, workflow: { id: this.record.meta.id, step } };
    const room = MAX_STORED_BODY - utf8Bytes(JSON.stringify(body));
    const results = this.parentResults(step, room);
    const text = JSON.stringify(body);
    return { ...parsed.value.job, body: results === '[]' ? text : `${text.slice(0, -1)},"parent_results":${results}}` };
  }

  private parentResults(step: number, maxBytes: number): string {
    const { record } = this;
    const results: Results = {
      sizeOf: (job) => {
        const { text = 'null', far } = record.resultOf(job);
        return far ? this.store.farResultBytes(job) : utf8Bytes(text);
      },
      read: (job) => {
        const { text, far } = record.resultOf(job);
        return (far ? this.store.farResult(job) : text) ?? 'null';
      },
    };
    return fill(sourcesFor(record.plan, step), results, maxBytes, (job, bytes) =>
      JSON.stringify({ omitted: true, job_id: record.jobIdOf(job), bytes }),
    );
  }

  private async callOff(queue: string, jobs: readonly { step: number; jobId: string }[]): Promise<void> {
    for (let at = 0; at < jobs.length; at += MAX_REACHED) {
      const some = jobs.slice(at, at + MAX_REACHED);
      const ids = some.map(({ jobId }) => jobId);
      await this.host.cancel(queue, ids);
      if (!this.closed) this.write(() => [{ kind: 'called_off', steps: some.map(({ step }) => step) }]);
    }
  }
}
