import type { DefaultsOf } from '../producer/defaults';
import { ConflictError, DuplicateJobError } from '../producer/errors';
import { jsonOf } from '../producer/job';
import { checked } from './conditions';
import { byCursor, type ListOptions, parametersFrom } from './pages';
import type { Requests, WaitOptions } from './requests';
import { pathTo } from './transport';
import { type StepJob, type Workflow, type WorkflowOptions, wireWorkflow } from './workflow';
import {
  type WorkflowProgress,
  type WorkflowState,
  type WorkflowStatus,
  type WorkflowSummary,
  workflowOf,
} from './workflow-status';

export interface WorkflowQuery {
  state?: WorkflowState | readonly WorkflowState[];
}

export class Workflows<Job extends StepJob = StepJob> {
  /** @param newId a UUIDv7 for each workflow */
  constructor(
    private readonly requests: Requests,
    private readonly newId: () => string,
    private readonly defaultsOf?: DefaultsOf,
  ) {}

  /**
   * Starts a workflow. When it resolves, the workflow is stored durably and continues in the background.
   * @throws {InvalidJobError} with `details.field` of what is wrong; then nothing was enqueued
   * @example
   * const { chain, group } = tocsin.flow;
   * const build = chain(
   *   { type: 'report.collect', args: [month] },
   *   group({ type: 'report.pdf', args: [] }, { type: 'report.csv', args: [] }),
   *   { type: 'report.mail', args: [to] },
   * );
   * const { id } = await tocsin.workflows.start(build, { name: 'monthly report' });
   */
  async start(workflow: Workflow<Job>, options: WorkflowOptions = {}): Promise<WorkflowStatus> {
    const id = options.id ?? this.newId();
    const json = jsonOf(wireWorkflow(workflow, id, options, this.defaultsOf), 'The workflow');
    return await this.requests.settle(async (send) => workflowOf(await send('POST', '/workflows', json)), {
      isDone: (error) => error instanceof DuplicateJobError && error.details.existingWorkflowId === id,
      read: () => this.get(id),
    });
  }

  /** Reads a workflow. @throws {NotFoundError} when there is none, or its retention has passed */
  async get(id: string): Promise<WorkflowStatus> {
    return workflowOf(await this.requests.safely('GET', pathTo`/workflows/${id}`));
  }

  /** Every workflow that matches, the latest first, read page by page. */
  async *list(query: WorkflowQuery = {}, options: ListOptions = {}): AsyncGenerator<WorkflowSummary> {
    const conditions = parametersFrom({ ...checked(query, { state: true }) });
    yield* byCursor<WorkflowSummary>(
      this.requests.safely,
      { path: '/workflows', conditions, member: 'workflows' },
      options,
    );
  }

  /** The progress of each of its jobs. @throws {NotFoundError} */
  async progress(id: string): Promise<WorkflowProgress> {
    return await this.requests.read<WorkflowProgress>(pathTo`/workflows/${id}/progress`, 'progress', 'the progress');
  }

  /** Cancels a workflow and its jobs. @throws {NotFoundError} {@link ConflictError} when it has ended */
  async cancel(id: string): Promise<WorkflowStatus> {
    return await this.requests.settle(async (send) => workflowOf(await send('DELETE', pathTo`/workflows/${id}`)), {
      isDone: (error) => error instanceof ConflictError && error.details.currentState === 'cancelled',
      read: () => this.get(id),
    });
  }

  /**
   * Waits for the end of a workflow, whichever it is.
   * @throws {WaitTimeoutError} when it has not ended in time (it continues); {@link NotFoundError}
   * @example
   * const { state, steps } = await tocsin.workflows.wait(id, { timeoutMs: 300_000 });
   */
  async wait(id: string, options: WaitOptions = {}): Promise<WorkflowStatus> {
    return await this.requests.waitFor(`Workflow ${id}`, options, async () => {
      const workflow = await this.get(id);
      return workflow.state === 'running' ? undefined : workflow;
    });
  }
}
