/** Workflows as the API tells of them. */
export interface Step {
  id: string;
  /** Of its job, or the form of the workflow inside it: `chain`, `group`, `batch`, `graph`. */
  type: string;
  name?: string;
  queue?: string;
  state: string;
  job_id: string | null;
  job_ids: readonly string[];
  depends_on?: readonly string[];
  started_at?: string;
  completed_at?: string;
  error?: unknown;
  /** Of a workflow inside this one. */
  steps?: readonly Step[];
  callbacks?: Readonly<Record<string, Step>>;
}

interface Head {
  id: string;
  type: string;
  name?: string;
  state: string;
  created_at: string;
  completed_at?: string;
  cancelled_at?: string;
}

/** As the list has it. */
export interface WorkflowItem extends Head {
  steps_total: number;
  job_count: number;
  completed_count?: number;
  failed_count?: number;
}

export interface Workflow extends Head {
  steps: readonly Step[];
  callbacks?: Readonly<Record<string, Step>>;
  metadata: { job_count: number; completed_count: number; failed_count: number };
}

export const endOf = (workflow: Pick<Workflow, 'completed_at' | 'cancelled_at'>) =>
  workflow.completed_at ?? workflow.cancelled_at;

/** How long it took, or has taken so far, in whole seconds then. ms */
export function lastedOf(workflow: WorkflowItem | Workflow, now: number): number {
  const end = endOf(workflow);
  const ms = Math.max(0, (end ? Date.parse(end) : now) - Date.parse(workflow.created_at));
  return end ? ms : Math.floor(ms / 1000) * 1000;
}
