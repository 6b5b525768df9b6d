import type { WorkflowSummary } from '../../../contract/workflows';
import { api } from '../../core/api';
import { askAndAct } from '../../core/dialogs';
import { counted } from '../../core/format';
import { segment } from '../../core/router';

type Cancelled = Pick<WorkflowSummary, 'id' | 'name' | 'state'>;

export async function cancelWorkflow({ id, name = 'the workflow', state }: Cancelled): Promise<boolean> {
  if (state !== 'running') return false;
  const text = 'Its jobs are cancelled, including running ones, and no further step starts.';
  const question = { title: `Cancel ${name}?`, text, action: 'Cancel the workflow', danger: true };
  return askAndAct(question, () => api.post(`workflows/${segment(id)}/cancel`), 'The workflow is cancelled.');
}

/** Redrives jobs that failed. The workflow does not continue: the first end of a job is the one that counted. */
export function retryJobs(ids: readonly string[]): Promise<boolean> {
  const jobs = counted(ids.length, 'failed job');
  const text =
    'Each job runs again on its own. The workflow has ended: it does not continue, and no further step starts.';
  const work = () => api.post('jobs/bulk/retry', { job_ids: ids });
  return askAndAct({ title: `Retry ${jobs}?`, text, action: `Retry ${jobs}` }, work, 'They are retried.');
}
