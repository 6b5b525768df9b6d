/** Makes a schedule, or changes one. Only what was changed is sent. */
import { useState } from 'preact/hooks';
import type { CronStatus } from '../../../contract/cron';
import { Field, Form, JsonField, SelectField, TextField, textIn } from '../../components/form';
import { Dialog } from '../../components/overlays';
import { Loaded } from '../../components/page';
import { api, useResource } from '../../core/api';
import { toast } from '../../core/dialogs';
import { parseExact, stringifyExact } from '../../core/exact';
import { openAside, query } from '../../core/router';
import { session } from '../../core/session';
import { describe } from './describe';
import { MISSES, OVERLAPS, pathOf } from './types';

/** @param name of the schedule; `:new` makes one, since no name begins so */
export function ScheduleForm({ name, onSaved }: { name: string; onSaved: () => void }) {
  const isNew = name === ':new';
  const close = () => openAside({ edit: null });
  const before = useResource<CronStatus | null>(
    async (signal) => (isNew ? null : await api.get<CronStatus>(pathOf(name), undefined, signal)),
    [name],
  );
  return (
    <Dialog title={isNew ? 'New schedule' : `Edit ${name}`} wide onClose={close}>
      <Loaded of={before}>{(schedule) => <Fields of={schedule} onSaved={onSaved} onCancel={close} />}</Loaded>
    </Dialog>
  );
}

const ZONES = Intl.supportedValuesOf('timeZone');

function Fields(props: { of: CronStatus | null; onSaved: () => void; onCancel: () => void }) {
  const { of: before, onSaved, onCancel } = props;
  const template = (before?.job_template ?? {}) as Template;
  const { type = '', args: firstArgs = [], options: firstOptions = {}, meta } = template;
  const { queue: _, ...others } = firstOptions;
  const [expression, setExpression] = useState(before?.expression ?? '');
  const [missed, setMissed] = useState<string>(before?.missed_policy ?? 'fire_once');
  const [args, setArgs] = useState(stringifyExact(firstArgs));
  const [options, setOptions] = useState(stringifyExact(others));
  // A key that does not see all of the job must not write it back.
  const isHidden = before !== null && session.value?.redacts === true;

  const values = { timezone: 'UTC', queue: 'default', overlap_policy: 'skip', ...before, type };
  const save = async (form: FormData) => {
    const text = (name: string) => textIn(form, name);
    const optional = (name: string) => text(name) || null;
    const wanted: Record<string, unknown> = {
      expression: text('expression'),
      timezone: text('timezone') || 'UTC',
      overlap_policy: text('overlap_policy'),
      missed_policy: text('missed_policy'),
      description: optional('description'),
      start_at: optional('start_at'),
      end_at: optional('end_at'),
      limit: text('limit') === '' ? null : Number(text('limit')),
      ...(missed === 'fire_all' && text('max_catchup') !== '' && { max_catchup: Number(text('max_catchup')) }),
    };
    const body: Record<string, unknown> = Object.fromEntries(
      Object.entries(wanted).filter(([name, value]) => value !== (before?.[name as keyof CronStatus] ?? null)),
    );
    const isSameJob =
      before !== null &&
      text('type') === type &&
      text('queue') === before.queue &&
      args === stringifyExact(firstArgs) &&
      options === stringifyExact(others);
    if (!isHidden && !isSameJob) {
      body.job_template = {
        ...{ type: text('type'), args: parseExact(args || '[]'), ...(meta !== undefined && { meta }) },
        options: { ...(parseExact(options || '{}') as object), queue: text('queue') || 'default' },
      };
    }
    const name = before?.name ?? text('name');
    if (before === null) await api.post('cron', { name, ...body });
    else if (Object.keys(body).length > 0) await api.patch(pathOf(name), body);
    toast(`${name} is saved.`);
    onSaved();
    openAside({ edit: null, open: before === null ? name : query('open') });
  };

  return (
    <Form action={before ? 'Save' : 'Create'} values={values} onSubmit={save} onCancel={onCancel}>
      {before === null && (
        <TextField name="name" label="Name" hint="Lower-case letters, digits, dots and dashes." required />
      )}
      <div class="columns-2">
        <Field
          label="Expression"
          hint={describe(expression) ?? 'For example 0 2 * * MON-FRI, @hourly, @every 90s'}
          at={['expression', 'cron', 'schedule']}
        >
          <input
            name="expression"
            class="mono"
            required
            autocomplete="off"
            spellcheck={false}
            value={expression}
            onInput={({ currentTarget }) => setExpression(currentTarget.value)}
          />
        </Field>
        <TextField name="timezone" label="Time zone" list="zones" />
        <TextField
          name="queue"
          label="Queue"
          at={['job_template.options.queue', 'options.queue', 'queue']}
          disabled={isHidden}
        />
        <TextField name="type" label="Job type" at={['job_template.type', 'type']} required disabled={isHidden} />
      </div>
      <datalist id="zones">
        {ZONES.map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
      {isHidden ? (
        <p class="faint">The job cannot be edited here: parts of it are hidden from your key.</p>
      ) : (
        <>
          <JsonField label="Arguments" rows={3} value={args} onChange={setArgs} at={['job_template.args', 'args']} />
          <JsonField
            label="Job options"
            rows={3}
            value={options}
            onChange={setOptions}
            at={['job_template.options', 'options', 'retry']}
          />
        </>
      )}
      <div class="columns-2">
        <SelectField name="overlap_policy" label="If the previous job has not ended" options={OVERLAPS} />
        <SelectField name="missed_policy" label="Missed fires" value={missed} onChange={setMissed} options={MISSES} />
        {missed === 'fire_all' && (
          <TextField name="max_catchup" label="At most" hint="Default: 100" type="number" min="1" max="1000" />
        )}
        <TextField name="start_at" label="Not before" hint="A time, or a relative one: +PT1H" />
        <TextField name="end_at" label="Not after" hint="A time, or a relative one: +P30D" />
        <TextField name="limit" label="Ends after this many fires" type="number" min="1" />
      </div>
      <TextField name="description" label="Description" maxLength={1000} />
    </Form>
  );
}

interface Template {
  type?: string;
  args?: unknown;
  meta?: unknown;
  options?: Readonly<Record<string, unknown>>;
}
