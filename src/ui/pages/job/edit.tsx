/** The job once more with other arguments: under its own id, or as a new job. */
import { useState } from 'preact/hooks';
import { Form, JsonField, PriorityField, TextField, textIn } from '../../components/form';
import { Drawer } from '../../components/overlays';
import { api } from '../../core/api';
import { toast } from '../../core/dialogs';
import { parseExact, stringifyExact } from '../../core/exact';
import { href, navigate, segment, withQuery } from '../../core/router';
import { session } from '../../core/session';
import type { Job } from './types';

/** Stands where the server shows this key nothing. */
const HIDDEN = '"[redacted]"';

export function EditDrawer({ of: job, kind, reload }: { of: Job; kind: 'edit' | 'clone'; reload: () => void }) {
  const before = { args: stringifyExact(job.args), meta: stringifyExact(job.meta) };
  const [args, setArgs] = useState(before.args);
  const [meta, setMeta] = useState(before.meta);
  const isHidden = session.value?.redacts === true && `${before.args}${before.meta}`.includes(HIDDEN);
  const close = () => navigate(withQuery({ open: null }));

  const submit = async (form: FormData) => {
    const priority = textIn(form, 'priority');
    const queue = textIn(form, 'queue');
    // What was not touched is left out: the server has it, also where this key may not see it.
    const changed = {
      ...(args !== before.args && { args: parseExact(args) }),
      ...(meta !== before.meta && { meta: parseExact(meta) }),
    };
    const isOther = priority !== '' && Number(priority) !== job.priority;
    const path = `admin/jobs/${segment(job.id)}`;
    if (kind === 'edit') {
      await api.post(`${path}/retry`, { ...changed, ...(isOther && { priority: Number(priority) }) });
      toast('It runs again.');
      close();
      reload();
      return;
    }
    const { job: made } = await api.post<{ job: { id: string } }>(`${path}/clone`, {
      ...changed,
      ...(queue !== job.queue && { queue }),
      ...(isOther && { options: { priority: Number(priority) } }),
    });
    toast('A copy of the job was enqueued.');
    navigate(href(`jobs/${made.id}`));
  };
  return (
    <Drawer title={kind === 'edit' ? 'Edit and retry' : 'Clone'}>
      <p class="faint">
        {kind === 'edit'
          ? 'It keeps its id and its history; attempts restart at 1.'
          : 'A new job with its own id. This one does not change.'}
      </p>
      {isHidden && <p class="note amber">Parts are hidden from your key. What you do not edit here does not change.</p>}
      <Form action={kind === 'edit' ? 'Retry' : 'Enqueue'} onSubmit={submit} onCancel={close}>
        <JsonField label="Arguments" value={args} onChange={setArgs} rows={10} at={['args']} />
        <JsonField label="Meta" value={meta} onChange={setMeta} rows={5} at={['meta']} />
        {kind === 'clone' && <TextField name="queue" label="Queue" value={job.queue} class="mono" required />}
        <PriorityField at={['priority', 'options.priority']} value={job.priority} />
      </Form>
    </Drawer>
  );
}
