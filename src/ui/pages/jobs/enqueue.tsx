import { useState } from 'preact/hooks';
import { FormDialog, JsonField, PriorityField, TextField, textIn } from '../../components/form';
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
      args: parseExact(text('args')),
      options: {
        queue: text('queue') || 'default',
        ...(text('priority') !== '' && { priority: Number(text('priority')) }),
        ...(delay !== '' && { delay_until: /^[\d]{4}-/.test(delay) ? delay : `+${delay}` }),
        ...(text('group') !== '' && { group: text('group') }),
        ...(text('tags') !== '' && { tags: text('tags').split(/[\s,]+/) }),
      },
    });
    const link = { href: href(`jobs/${enqueued.job.id}`), text: 'Open the job' };
    const done = enqueued.deduplicated ? 'A duplicate of this job exists already.' : 'Enqueued.';
    if (!enqueued.warnings) return { text: done, link };
    toast(done, { link });
    setWarned(enqueued);
    return undefined;
  };
  const intro = warned && (
    <div class="note warned" role="alert">
      <strong>The job was enqueued, but</strong>
      {warned.warnings?.map((text) => (
        <p key={text}>{text}</p>
      ))}
      <a href={href(`jobs/${warned.job.id}`)}>Open the job</a>
    </div>
  );
  return (
    <FormDialog
      {...{ drawer: true, title: 'Enqueue a job', intro, action: 'Enqueue', disabled: !isJson(args) }}
      {...{ onSubmit: submit, onClose: () => openAside({ enqueue: null }) }}
    >
      <TextField
        {...{ name: 'type', label: 'Type', hint: 'Lower case, with dots: mail.send', class: 'mono' }}
        value={query('type').replace(/[*,].*$/, '')}
        required
        autofocus
      />
      <TextField
        {...{ name: 'queue', label: 'Queue', at: ['queue', 'options.queue'], class: 'mono' }}
        value={query('queue').split(',')[0] || 'default'}
        required
      />
      <JsonField name="args" label="Arguments: a JSON array" value="[]" onChange={setArgs} />
      <div class="pair">
        <TextField
          {...{ name: 'delay', label: 'Delay', hint: '30s, 10m, 2h, or a time with its zone', placeholder: 'None' }}
          at={['options.delay_until', 'delay_until', 'options.scheduled_at']}
        />
        <PriorityField at={['options.priority']} placeholder="0" />
      </div>
      <div class="pair">
        <TextField name="group" label="Group" hint="Whose job it is" at={['options.group']} placeholder="None" />
        <TextField name="tags" label="Tags" hint="Separated by spaces" at={['options.tags']} placeholder="None" />
      </div>
    </FormDialog>
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
