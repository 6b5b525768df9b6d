/** A job of one's own, made in a drawer. */
import { useState } from 'preact/hooks';
import { errorAt, Field, Form, JsonField, textIn } from '../../components/form';
import { Drawer } from '../../components/overlays';
import { api } from '../../core/api';
import { openAside } from '../../core/aside';
import { href } from '../../core/base';
import { toast } from '../../core/dialogs';
import { parseExact } from '../../core/exact';
import { query } from '../../core/router';

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
        {(error) => (
          <>
            <Field label="Type" hint="Lower case, with dots: mail.send" error={errorAt(error, 'type')}>
              <input
                name="type"
                class="mono"
                required
                autofocus
                autocomplete="off"
                spellcheck={false}
                defaultValue={query('type').replace(/[*,].*$/, '')}
              />
            </Field>
            <Field label="Queue" error={errorAt(error, 'queue', 'options.queue')}>
              <input
                name="queue"
                class="mono"
                required
                autocomplete="off"
                spellcheck={false}
                defaultValue={query('queue').split(',')[0] || 'default'}
              />
            </Field>
            <JsonField label="Arguments: a JSON array" value={args} onChange={setArgs} error={errorAt(error, 'args')} />
            <div class="pair">
              <Field
                label="Delay"
                hint="30s, 10m, 2h, or a time with its zone"
                error={errorAt(error, 'options.delay_until', 'delay_until', 'options.scheduled_at')}
              >
                <input name="delay" autocomplete="off" placeholder="None" />
              </Field>
              <Field label="Priority" hint="−100 to 100, higher first" error={errorAt(error, 'options.priority')}>
                <input name="priority" type="number" min={-100} max={100} step={1} placeholder="0" />
              </Field>
            </div>
            <div class="pair">
              <Field label="Group" hint="Whose job it is" error={errorAt(error, 'options.group')}>
                <input name="group" autocomplete="off" placeholder="None" />
              </Field>
              <Field label="Tags" hint="Separated by spaces" error={errorAt(error, 'options.tags')}>
                <input name="tags" autocomplete="off" placeholder="None" />
              </Field>
            </div>
          </>
        )}
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
