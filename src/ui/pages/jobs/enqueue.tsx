import { useState } from 'preact/hooks';
import { Form, JsonField, PriorityField, TextField, textIn } from '../../components/form';
import { Drawer } from '../../components/overlays';
import { api } from '../../core/api';
import { toast } from '../../core/dialogs';
import { parseExact } from '../../core/exact';
import { href, openAside, query } from '../../core/router';

interface Enqueued {
  job: { id: string; state: string };
  warnings?: readonly string[];
  deduplicated?: boolean;
}

export function EnqueueDrawer() {
  const [args, setArgs] = useState('[]');
  const [warned, setWarned] = useState<Enqueued>();
  const submit = async (form: FormData) => {
    setWarned(undefined);
    const text = (name: string) => textIn(form, name);
    const delay = text('delay');
    const enqueued = await api.post<Enqueued>('jobs', {
      type: text('type'),
      args: parseExact(args),
      options: {
        queue: text('queue') || 'default',
        ...(text('priority') !== '' && { priority: Number(text('priority')) }),
        ...(delay !== '' && { delay_until: /^[\d]{4}-/.test(delay) ? delay : `+${delay}` }),
        ...(text('group') !== '' && { group: text('group') }),
        ...(text('tags') !== '' && { tags: text('tags').split(/[\s,]+/) }),
      },
    });
    const link = { href: href(`jobs/${enqueued.job.id}`), text: 'Open the job' };
    toast(enqueued.deduplicated ? 'A duplicate of this job exists already.' : 'Enqueued.', { link });
    if (enqueued.warnings) setWarned(enqueued);
    else openAside({ enqueue: null });
  };
  return (
    <Drawer title="Enqueue a job" name="enqueue">
      {warned && (
        <div class="note warned" role="alert">
          <strong>The job was enqueued, but</strong>
          {warned.warnings?.map((text) => (
            <p key={text}>{text}</p>
          ))}
          <a href={href(`jobs/${warned.job.id}`)}>Open the job</a>
        </div>
      )}
      <Form action="Enqueue" onSubmit={submit} disabled={!isJson(args)}>
        <TextField
          name="type"
          label="Type"
          hint="Lower case, with dots: mail.send"
          value={query('type').replace(/[*,].*$/, '')}
          class="mono"
          required
          autofocus
        />
        <TextField
          name="queue"
          label="Queue"
          at={['queue', 'options.queue']}
          value={query('queue').split(',')[0] || 'default'}
          class="mono"
          required
        />
        <JsonField label="Arguments: a JSON array" value={args} onChange={setArgs} at={['args']} />
        <div class="pair">
          <TextField
            name="delay"
            label="Delay"
            hint="30s, 10m, 2h, or a time with its zone"
            at={['options.delay_until', 'delay_until', 'options.scheduled_at']}
            placeholder="None"
          />
          <PriorityField at={['options.priority']} placeholder="0" />
        </div>
        <div class="pair">
          <TextField name="group" label="Group" hint="Whose job it is" at={['options.group']} placeholder="None" />
          <TextField name="tags" label="Tags" hint="Separated by spaces" at={['options.tags']} placeholder="None" />
        </div>
      </Form>
    </Drawer>
  );
}

function isJson(text: string): boolean {
  try {
    parseExact(text);
    return true;
  } catch {
    return false;
  }
}
