/** What one does with a workflow. */

import type { WorkflowSummary } from '../../../contract/workflows';
import { api } from '../../core/api';
import { segment } from '../../core/base';
import { act, confirm } from '../../core/dialogs';
import { counted } from '../../core/format';

/** @returns whether it was cancelled */
export async function cancelWorkflow({
  id,
  name,
  state,
}: Pick<WorkflowSummary, 'id' | 'name' | 'state'>): Promise<boolean> {
  if (state !== 'running') return false;
  const sure = await confirm({
    title: `Cancel ${name ?? 'the workflow'}?`,
    text: 'Its jobs are cancelled, including running ones, and no further step starts.',
    action: 'Cancel the workflow',
    danger: true,
  });
  return sure && act(() => api.post(`workflows/${segment(id)}/cancel`), 'The workflow is cancelled.');
}

/** Redrives jobs that failed. The workflow does not continue: the first end of a job is the one that counted. */
export async function retryJobs(ids: readonly string[]): Promise<boolean> {
  const jobs = counted(ids.length, 'failed job');
  const sure = await confirm({
    title: `Retry ${jobs}?`,
    text: 'Each job runs again on its own. The workflow has ended: it does not continue, and no further step starts.',
    action: `Retry ${jobs}`,
  });
  return sure && act(() => api.post('jobs/bulk/retry', { job_ids: ids }), 'They are retried.');
}
