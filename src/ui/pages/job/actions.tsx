import { useState } from 'preact/hooks';
import { FormDialog, PriorityField } from '../../components/form';
import { Button, LinkButton } from '../../components/text';
import { api, can } from '../../core/api';
import { act, askAndAct } from '../../core/dialogs';
import { type Keys, useKeys } from '../../core/keyboard';
import { href, navigate, segment, withQuery } from '../../core/router';
import type { Job } from './types';

/** States from which a job runs again. */
export const RETRIED: readonly string[] = ['discarded', 'cancelled', 'retryable'];
const WAITS: readonly string[] = ['pending', 'scheduled', 'available', 'retryable'];
const RUN_NOW: readonly string[] = ['pending', 'scheduled', 'retryable'];
const ENDED: readonly string[] = ['completed', 'cancelled', 'discarded'];

export function Actions({ of: job, reload }: { of: Job; reload: () => void }) {
  const [changing, setChanging] = useState(false);
  const { id, state } = job;
  const path = `admin/jobs/${segment(id)}`;
  const run = async (work: () => Promise<unknown>, said: string) => {
    if (await act(work, said)) reload();
  };
  const retry = () => run(() => api.post(`${path}/retry`), 'It runs again.');
  const runNow = () => run(() => api.post(`${path}/activate`), 'It runs as soon as there is capacity.');
  const cancel = () => {
    const text =
      state === 'active' ? 'It is running: its handler is asked to stop.' : 'It does not run unless you retry it.';
    const question = { title: 'Cancel this job?', text, action: 'Cancel the job', danger: true };
    return askAndAct(question, () => api.post(`${path}/cancel`), 'Cancelled.').then((done) => done && reload());
  };
  const remove = async () => {
    const text = 'It is deleted with its history. This cannot be undone.';
    const question = { title: 'Delete this job?', text, action: 'Delete the job', danger: true, typed: id.slice(-6) };
    const gone = () => api.post<{ deleted: number }>('jobs/bulk/delete', { job_ids: [id] }).then(mustHaveDeleted);
    if (await askAndAct(question, gone, 'Deleted.')) navigate(href('jobs'));
  };
  const mayAct = can('admin:write');
  const keys: Keys = {
    ...(mayAct && RETRIED.includes(state) && { r: { label: 'Retry', run: retry } }),
    ...(mayAct && !ENDED.includes(state) && { c: { label: 'Cancel', run: cancel } }),
  };
  useKeys('This job', keys);
  if (!mayAct) return null;
  return (
    <>
      {RETRIED.includes(state) && (
        <>
          <Button icon="retry" label="Retry" class="primary" onClick={retry} />
          <LinkButton icon="edit" label="Edit and retry" to={withQuery({ open: 'edit' })} />
        </>
      )}
      {RUN_NOW.includes(state) && <Button icon="play" label="Run now" onClick={runNow} />}
      {WAITS.includes(state) && <Button label="Priority" onClick={() => setChanging(true)} />}
      {can('data:write') && <LinkButton icon="copy" label="Clone" to={withQuery({ open: 'clone' })} />}
      {!ENDED.includes(state) && <Button label="Cancel" onClick={cancel} />}
      {ENDED.includes(state) && can('admin:purge') && (
        <Button icon="trash" label="Delete" class="danger" onClick={remove} />
      )}
      {changing && <Priority of={job} onClose={() => setChanging(false)} reload={reload} />}
    </>
  );
}

function mustHaveDeleted({ deleted }: { deleted: number }): void {
  if (deleted === 0) throw new Error('The job could not be deleted: its state has changed.');
}

function Priority({ of: job, onClose, reload }: { of: Job; onClose: () => void; reload: () => void }) {
  const change = async (form: FormData) => {
    await api.patch(`admin/jobs/${segment(job.id)}`, { priority: Number(form.get('priority')) });
    return 'Priority changed.';
  };
  return (
    <FormDialog title="Priority" action="Change" onSubmit={change} onDone={reload} onClose={onClose}>
      <PriorityField value={job.priority} required />
    </FormDialog>
  );
}
