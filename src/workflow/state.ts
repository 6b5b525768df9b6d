/** A workflow in memory: nodes, progress, facts about jobs, all defined by replaying its log. */

import { defined } from '../job/envelope/fields';
import { jobsBelow, nodeAt, type WorkflowPlan } from '../job/workflow/plan';
import { Run } from '../job/workflow/run';
import type { StepFailure, WorkflowHeader, WorkflowSummary, WorkflowView } from '../rpc/workflow';
import type { LogEntry, Meta } from './store';

interface Known {
  jobId?: string;
  /** The queue has answered whether it took the job. */
  recorded?: true;
  startedAt?: number;
  endedAt?: number;
  error?: StepFailure;
  result?: string;
  far?: true;
  calledOff?: true;
}

export class WorkflowRecord {
  readonly run: Run;
  private readonly known: Known[];
  private readonly jobs: readonly number[];
  private cancelled: { at: number; steps: number } | undefined;
  private endedAt: number | undefined;
  private notedState: string | undefined;

  constructor(readonly meta: Meta) {
    this.run = new Run(meta.plan);
    this.known = meta.plan.nodes.map(() => ({}));
    this.jobs = jobsBelow(meta.plan, 0, true);
    this.run.begin();
  }

  get plan(): WorkflowPlan {
    return this.meta.plan;
  }

  /** Epoch ms of the end, or undefined while it runs. */
  get ended(): number | undefined {
    return this.endedAt;
  }

  apply(entry: LogEntry): void {
    if (entry.kind === 'started') {
      for (const [step, jobId] of entry.jobs) {
        const known = this.of(step);
        known.recorded = true;
        if (jobId !== null) Object.assign(known, { jobId, startedAt: entry.at });
      }
    } else if (entry.kind === 'ended') {
      for (const { step, job_id, end, at, ...rest } of entry.endings) {
        if (this.run.stateOf(step) !== 'running') continue;
        Object.assign(this.of(step), { recorded: true, endedAt: at, ...(job_id && { jobId: job_id }), ...rest });
        this.run.end(step, end);
        if (this.run.hasEnded) this.endedAt ??= at;
      }
    } else if (entry.kind === 'cancelled') {
      this.run.cancel();
      this.cancelled = entry;
      this.endedAt = entry.at;
    } else if (entry.kind === 'called_off') {
      for (const step of entry.steps) this.of(step).calledOff = true;
    } else {
      this.notedState = entry.state;
    }
  }

  unstarted(): number[] {
    return this.jobs.filter((job) => this.isUnstarted(job));
  }

  isUnstarted(job: number): boolean {
    return this.run.stateOf(job) === 'running' && !this.of(job).recorded;
  }

  /** Has this queue jobs of the workflow that have not ended? */
  isIn(queue: string): boolean {
    return this.jobs.some(
      (job) =>
        this.of(job).jobId !== undefined &&
        this.run.stateOf(job) === 'running' &&
        nodeAt(this.plan, job).queue === queue,
    );
  }

  uncancelled(): Map<string, { step: number; jobId: string }[]> {
    const open = (this.cancelled ? this.jobs : []).flatMap((step) => {
      const { jobId, calledOff } = this.of(step);
      return jobId === undefined || calledOff || this.run.stateOf(step) !== 'running' ? [] : [{ step, jobId }];
    });
    return Map.groupBy(open, ({ step }) => nodeAt(this.plan, step).queue as string);
  }

  get unnoted(): boolean {
    return this.notedState !== this.state;
  }

  get state(): WorkflowView['state'] {
    const { state } = this.run;
    return state === 'waiting' ? 'running' : state;
  }

  get isCancelled(): boolean {
    return this.cancelled !== undefined;
  }

  get hasStarted(): boolean {
    return this.jobs.some((job) => this.of(job).recorded);
  }

  countOpen(): number {
    const open = this.jobs.filter((job) => ['waiting', 'running'].includes(this.run.stateOf(job)));
    return open.filter((job) => !nodeAt(this.plan, job).callback).length;
  }

  jobIdOf(step: number): string | undefined {
    return this.of(step).jobId;
  }

  /** JSON text of a result, `far` when a row of its own has it, undefined when there is none. */
  resultOf(step: number): { text?: string; far: boolean } {
    const { result, far } = this.of(step);
    return defined({ text: result, far: far === true });
  }

  private header(): WorkflowHeader {
    const { id, type, name, at } = this.meta;
    return defined({ id, type, name, state: this.state, created_at: at, ended_at: this.endedAt });
  }

  view(): WorkflowView {
    const { plan } = this.meta;
    return {
      ...this.header(),
      ...defined({ steps_cancelled: this.cancelled?.steps }),
      plan,
      steps: this.known.map(({ jobId, startedAt, endedAt, error }, step) =>
        defined({
          state: this.run.stateOf(step),
          job_id: jobId,
          started_at: startedAt,
          ended_at: endedAt,
          error,
        }),
      ),
    };
  }

  summary(): WorkflowSummary {
    const { plan } = this.meta;
    const states = jobsBelow(plan, 0).map((job) => this.run.stateOf(job));
    return {
      ...this.header(),
      steps: nodeAt(plan, 0).children.length,
      jobs: states.length,
      completed: states.filter((state) => state === 'completed').length,
      failed: states.filter((state) => state === 'failed' || state === 'cancelled').length,
    };
  }

  private of(step: number): Known {
    return this.known[step] as Known;
  }
}
