import type * as contract from '../contract/workflows';
import type { DefaultsOf } from '../producer/defaults';
import { DuplicateJobError } from '../producer/errors';
import { jsonOf } from '../producer/job';
import type { Named } from '../producer/names';
import { member, shaped, wasCancelled } from './answers';
import { byCursor, type ListOptions, matching } from './pages';
import { pathTo, type Requests, type WaitOptions } from './requests';
import { type StepJob, type Workflow, type WorkflowOptions, wireWorkflow } from './workflow';

export type { WorkflowForm, WorkflowState } from '../contract/workflows';

export interface WorkflowStep extends Named<contract.WorkflowStep> {}

export interface WorkflowStatus extends Named<contract.WorkflowStatus> {}

export interface WorkflowSummary extends Named<contract.WorkflowSummary> {}

/** The progress of each job of a workflow, from its queue now. */
export interface WorkflowProgress extends Named<contract.WorkflowProgress> {}

/** The workflow in an answer about one workflow. @throws {UnavailableError} */
export const workflowOf = (answer: unknown): WorkflowStatus =>
  shaped<WorkflowStatus>(member(answer, 'workflow'), 'id', 'the workflow');

export interface WorkflowQuery {
  state?: contract.WorkflowState | readonly contract.WorkflowState[];
}

export interface Workflows<Job extends StepJob = StepJob> {
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
  start(workflow: Workflow<Job>, options?: WorkflowOptions): Promise<WorkflowStatus>;
  /** Reads a workflow. @throws {NotFoundError} when there is none, or its retention has passed */
  get(id: string): Promise<WorkflowStatus>;
  /** Every workflow that matches, the latest first, read page by page. */
  list(query?: WorkflowQuery, options?: ListOptions): AsyncGenerator<WorkflowSummary>;
  /** The progress of each of its jobs. @throws {NotFoundError} */
  progress(id: string): Promise<WorkflowProgress>;
  /** Cancels a workflow and its jobs. @throws {NotFoundError} {@link ConflictError} when it has ended */
  cancel(id: string): Promise<WorkflowStatus>;
  /**
   * Waits for the end of a workflow, whichever it is.
   * @throws {WaitTimeoutError} when it has not ended in time (it continues); {@link NotFoundError}
   * @example
   * const { state, steps } = await tocsin.workflows.wait(id, { timeoutMs: 300_000 });
   */
  wait(id: string, options?: WaitOptions): Promise<WorkflowStatus>;
}

/** @param newId a UUIDv7 for each workflow */
export function createWorkflows<Job extends StepJob>(
  { safely, read, settle, waitFor }: Requests,
  newId: () => string,
  defaultsOf?: DefaultsOf,
): Workflows<Job> {
  const get = async (id: string) => workflowOf(await safely('GET', pathTo`/workflows/${id}`));
  return {
    start: async (workflow, options = {}) => {
      const id = options.id ?? newId();
      const json = jsonOf(wireWorkflow(workflow, id, options, defaultsOf), 'The workflow');
      return await settle(async (send) => workflowOf(await send('POST', '/workflows', json)), {
        isDone: (error) => error instanceof DuplicateJobError && error.details.existingWorkflowId === id,
        read: () => get(id),
      });
    },
    get,
    list: (query = {}, options = {}) => {
      const conditions = matching(query, { state: true });
      return byCursor(safely, { path: '/workflows', conditions, member: 'workflows' }, options);
    },
    progress: async (id) => read(pathTo`/workflows/${id}/progress`, 'progress', 'the progress'),
    cancel: (id) =>
      settle(async (send) => workflowOf(await send('DELETE', pathTo`/workflows/${id}`)), {
        isDone: wasCancelled,
        read: () => get(id),
      }),
    wait: (id, options = {}) =>
      waitFor(`Workflow ${id}`, options, async () => {
        const workflow = await get(id);
        return workflow.state === 'running' ? undefined : workflow;
      }),
  };
}
