/** Makes a schedule, or changes one. Only what was changed is sent. */
import { useState } from 'preact/hooks';
import type { CronStatus } from '../../../contract/cron';
import { FormDialog, JsonField, SelectField, TextField, textIn } from '../../components/form';
import { api, session, useResource } from '../../core/api';
import { parseExact, stringifyExact } from '../../core/exact';
import { aside } from '../../core/router';
import { describe } from './describe';
import { MISSES, OVERLAPS, pathOf } from './types';

/** @param name of the schedule; `:new` makes one, since no name begins so */
export function ScheduleForm({ name, onSaved }: { name: string; onSaved: () => void }) {
  const isNew = name === ':new';
  const before = useResource<CronStatus | null>(
    async (signal) => (isNew ? null : await api.get<CronStatus>(pathOf(name), undefined, signal)),
    [name],
  );
  const schedule = before.data ?? null;
  return (
    <FormDialog
      title={isNew ? 'New schedule' : `Edit ${name}`}
      wide
      action={isNew ? 'Create' : 'Save'}
      of={before}
      values={{ ...DEFAULTS, ...schedule, ...jobIn(schedule) }}
      onSubmit={(form) => save(schedule, form)}
      onDone={onSaved}
    >
      <Fields of={schedule} />
    </FormDialog>
  );
}

const DEFAULTS = { timezone: 'UTC', overlap_policy: 'skip', missed_policy: 'fire_once' };

/** The job of a schedule, as the fields hold it. */
function jobIn(schedule: CronStatus | null) {
  const { type = '', args = [], options = {} } = (schedule?.job_template ?? {}) as Template;
  const { queue: _, ...others } = options;
  return { queue: schedule?.queue ?? 'default', type, args: stringifyExact(args), options: stringifyExact(others) };
}

/** A key that does not see all of the job must not write it back. */
const isHidden = (before: CronStatus | null) => before !== null && session.value?.redacts === true;

async function save(before: CronStatus | null, form: FormData) {
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
    ...(text('max_catchup') !== '' && { max_catchup: Number(text('max_catchup')) }),
  };
  const body: Record<string, unknown> = Object.fromEntries(
    Object.entries(wanted).filter(([name, value]) => value !== (before?.[name as keyof CronStatus] ?? null)),
  );
  const isSameJob = before !== null && Object.entries(jobIn(before)).every(([name, held]) => text(name) === held);
  if (!isHidden(before) && !isSameJob) {
    const { meta } = (before?.job_template ?? {}) as Template;
    body.job_template = {
      ...{ type: text('type'), args: parseExact(text('args') || '[]'), ...(meta !== undefined && { meta }) },
      options: { ...(parseExact(text('options') || '{}') as object), queue: text('queue') || 'default' },
    };
  }
  const name = before?.name ?? text('name');
  if (before === null) await api.post('cron', { name, ...body });
  else if (Object.keys(body).length > 0) await api.patch(pathOf(name), body);
  return { text: `${name} is saved.`, to: aside({ edit: null, ...(before === null && { open: name }) }) };
}

const ZONES = Intl.supportedValuesOf('timeZone');

function Fields({ of: before }: { of: CronStatus | null }) {
  const [expression, setExpression] = useState(before?.expression ?? '');
  const [missed, setMissed] = useState<string>(before?.missed_policy ?? DEFAULTS.missed_policy);
  const disabled = isHidden(before);
  return (
    <>
      {before === null && (
        <TextField name="name" label="Name" hint="Lower-case letters, digits, dots and dashes." required />
      )}
      <div class="columns-2">
        <TextField
          {...{ name: 'expression', label: 'Expression', class: 'mono', required: true }}
          hint={describe(expression) ?? 'For example 0 2 * * MON-FRI, @hourly, @every 90s'}
          at={['expression', 'cron', 'schedule']}
          onInput={({ currentTarget }) => setExpression(currentTarget.value)}
        />
        <TextField name="timezone" label="Time zone" list="zones" />
        <TextField
          {...{ name: 'queue', label: 'Queue', disabled }}
          at={['job_template.options.queue', 'options.queue', 'queue']}
        />
        <TextField name="type" label="Job type" at={['job_template.type', 'type']} required disabled={disabled} />
      </div>
      <datalist id="zones">
        {ZONES.map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
      {disabled ? (
        <p class="faint">The job cannot be edited here: parts of it are hidden from your key.</p>
      ) : (
        <>
          <JsonField name="args" label="Arguments" rows={3} at={['job_template.args', 'args']} />
          <JsonField
            {...{ name: 'options', label: 'Job options', rows: 3 }}
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
    </>
  );
}

interface Template {
  type?: string;
  args?: unknown;
  meta?: unknown;
  options?: Readonly<Record<string, unknown>>;
}
