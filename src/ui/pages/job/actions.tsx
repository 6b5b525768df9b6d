/** What can be done with a job, by its state. Those that fit none are not there. */
import { useState } from 'preact/hooks';
import { Field, Form } from '../../components/form';
import { Icon } from '../../components/icon';
import { Dialog } from '../../components/overlays';
import { api } from '../../core/api';
import { href, segment } from '../../core/base';
import { act, confirm, toast } from '../../core/dialogs';
import { type Keys, useKeys } from '../../core/keyboard';
import { navigate, withQuery } from '../../core/router';
import { can } from '../../core/session';
import type { Job } from './types';

const RETRIED: readonly string[] = ['discarded', 'cancelled', 'retryable'];
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
  const cancel = async () => {
    const sure = await confirm({
      title: 'Cancel this job?',
      text:
        state === 'active' ? 'It is running: its handler is asked to stop.' : 'It does not run unless you retry it.',
      action: 'Cancel the job',
      danger: true,
    });
    if (sure) await run(() => api.post(`${path}/cancel`), 'Cancelled.');
  };
  const remove = async () => {
    const sure = await confirm({
      title: 'Delete this job?',
      text: 'It is deleted with its history. This cannot be undone.',
      action: 'Delete the job',
      danger: true,
      typed: id.slice(-6),
    });
    if (!sure) return;
    const gone = () => api.post<{ deleted: number }>('jobs/bulk/delete', { job_ids: [id] }).then(mustHaveDeleted);
    if (await act(gone, 'Deleted.')) navigate(href('jobs'));
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
          <button type="button" class="primary" onClick={retry}>
            <Icon name="retry" size={14} />
            Retry
          </button>
          <a class="button" href={withQuery({ open: 'edit' })}>
            <Icon name="edit" size={14} />
            Edit and retry
          </a>
        </>
      )}
      {RUN_NOW.includes(state) && (
        <button type="button" onClick={runNow}>
          <Icon name="play" size={14} />
          Run now
        </button>
      )}
      {WAITS.includes(state) && (
        <button type="button" onClick={() => setChanging(true)}>
          Priority
        </button>
      )}
      {can('data:write') && (
        <a class="button" href={withQuery({ open: 'clone' })}>
          <Icon name="copy" size={14} />
          Clone
        </a>
      )}
      {!ENDED.includes(state) && (
        <button type="button" onClick={cancel}>
          Cancel
        </button>
      )}
      {ENDED.includes(state) && can('admin:purge') && (
        <button type="button" class="danger" onClick={remove}>
          <Icon name="trash" size={14} />
          Delete
        </button>
      )}
      {changing && <Priority of={job} onClose={() => setChanging(false)} reload={reload} />}
    </>
  );
}

function mustHaveDeleted({ deleted }: { deleted: number }): void {
  if (deleted === 0) throw new Error('The job could not be deleted: its state has changed.');
}

function Priority({ of: job, onClose, reload }: { of: Job; onClose: () => void; reload: () => void }) {
  return (
    <Dialog title="Priority" onClose={onClose}>
      <Form
        action="Change"
        onCancel={onClose}
        onSubmit={async (form) => {
          await api.patch(`admin/jobs/${segment(job.id)}`, { priority: Number(form.get('priority')) });
          toast('Priority changed.');
          onClose();
          reload();
        }}
      >
        <Field label="Priority" hint="−100 to 100; higher priorities run first">
          <input name="priority" type="number" min={-100} max={100} step={1} required defaultValue={job.priority} />
        </Field>
      </Form>
    </Dialog>
  );
}
