/** Makes a schedule, or changes one. Only what was changed is sent. */

import { useState } from 'preact/hooks';
import type { CronStatus } from '../../../contract/cron';
import { errorAt, Field, Form, JsonField, textIn } from '../../components/form';
import { Dialog } from '../../components/overlays';
import { Loaded } from '../../components/state';
import { api } from '../../core/api';
import { openAside } from '../../core/aside';
import { toast } from '../../core/dialogs';
import { parseExact, stringifyExact } from '../../core/exact';
import { useResource } from '../../core/resource';
import { query } from '../../core/router';
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
  const {
    type = '',
    args: firstArgs = [],
    options: firstOptions = {},
    meta,
  } = (before?.job_template ?? {}) as Template;
  const { queue: _, ...others } = firstOptions;
  const [expression, setExpression] = useState(before?.expression ?? '');
  const [missed, setMissed] = useState<string>(before?.missed_policy ?? 'fire_once');
  const [args, setArgs] = useState(stringifyExact(firstArgs));
  const [options, setOptions] = useState(stringifyExact(others));
  // A key that does not see all of the job must not write it back.
  const isHidden = before !== null && session.value?.redacts === true;

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
    <Form action={before ? 'Save' : 'Create'} onSubmit={save} onCancel={onCancel}>
      {(error) => (
        <>
          {before === null && (
            <Field label="Name" hint="Lower-case letters, digits, dots and dashes." error={errorAt(error, 'name')}>
              <input name="name" required autocomplete="off" spellcheck={false} />
            </Field>
          )}
          <div class="columns-2">
            <Field
              label="Expression"
              hint={describe(expression) ?? 'For example 0 2 * * MON-FRI, @hourly, @every 90s'}
              error={errorAt(error, 'expression', 'cron', 'schedule')}
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
            <Field label="Time zone" error={errorAt(error, 'timezone')}>
              <input name="timezone" list="zones" defaultValue={before?.timezone ?? 'UTC'} autocomplete="off" />
            </Field>
            <Field label="Queue" error={errorAt(error, 'job_template.options.queue', 'options.queue', 'queue')}>
              <input
                name="queue"
                defaultValue={before?.queue ?? 'default'}
                disabled={isHidden}
                autocomplete="off"
                spellcheck={false}
              />
            </Field>
            <Field label="Job type" error={errorAt(error, 'job_template.type', 'type')}>
              <input
                name="type"
                required
                defaultValue={String(type)}
                disabled={isHidden}
                autocomplete="off"
                spellcheck={false}
              />
            </Field>
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
              <JsonField
                label="Arguments"
                rows={3}
                value={args}
                onChange={setArgs}
                error={errorAt(error, 'job_template.args', 'args')}
              />
              <JsonField
                label="Job options"
                rows={3}
                value={options}
                onChange={setOptions}
                error={errorAt(error, 'job_template.options', 'options', 'retry')}
              />
            </>
          )}
          <div class="columns-2">
            <Field label="If the previous job has not ended" error={errorAt(error, 'overlap_policy')}>
              <Choice name="overlap_policy" of={OVERLAPS} value={before?.overlap_policy ?? 'skip'} />
            </Field>
            <Field label="Missed fires" error={errorAt(error, 'missed_policy')}>
              <Choice name="missed_policy" of={MISSES} value={missed} onChange={setMissed} />
            </Field>
            {missed === 'fire_all' && (
              <Field label="At most" hint="Default: 100" error={errorAt(error, 'max_catchup')}>
                <input name="max_catchup" type="number" min="1" max="1000" defaultValue={before?.max_catchup ?? ''} />
              </Field>
            )}
            <Field label="Not before" hint="A time, or a relative one: +PT1H" error={errorAt(error, 'start_at')}>
              <input name="start_at" defaultValue={before?.start_at ?? ''} autocomplete="off" />
            </Field>
            <Field label="Not after" hint="A time, or a relative one: +P30D" error={errorAt(error, 'end_at')}>
              <input name="end_at" defaultValue={before?.end_at ?? ''} autocomplete="off" />
            </Field>
            <Field label="Ends after this many fires" error={errorAt(error, 'limit')}>
              <input name="limit" type="number" min="1" defaultValue={before?.limit ?? ''} />
            </Field>
          </div>
          <Field label="Description" error={errorAt(error, 'description')}>
            <input name="description" maxLength={1000} defaultValue={before?.description ?? ''} autocomplete="off" />
          </Field>
        </>
      )}
    </Form>
  );
}

interface Template {
  type?: string;
  args?: unknown;
  meta?: unknown;
  options?: Readonly<Record<string, unknown>>;
}

function Choice(props: {
  name: string;
  of: Readonly<Record<string, string>>;
  value: string;
  onChange?: (value: string) => void;
}) {
  const { name, of: words, value, onChange } = props;
  return (
    <select name={name} defaultValue={value} onChange={({ currentTarget }) => onChange?.(currentTarget.value)}>
      {Object.entries(words).map(([option, text]) => (
        <option key={option} value={option} selected={option === value}>
          {text}
        </option>
      ))}
    </select>
  );
}
