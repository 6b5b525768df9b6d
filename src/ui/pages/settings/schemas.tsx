/** Schemas of arguments: which there are, and what becomes of a job that does not fit. */
import type { ArgsSchema, SchemaList } from '../../../contract/schemas';
import { type Action, Actions, NewButton } from '../../components/actions';
import { FormDialog, JsonField, TextField, textIn } from '../../components/form';
import { Json } from '../../components/json';
import { Drawer } from '../../components/overlays';
import { Empty, Facts, Loaded } from '../../components/page';
import { Collection, type Column, column, textColumn, timeColumn } from '../../components/table';
import { Badge, Foreign, Link, Time } from '../../components/text';
import { api, can, useGet } from '../../core/api';
import { act, askAndAct } from '../../core/dialogs';
import { parseExact } from '../../core/exact';
import { aside, openAside, segment } from '../../core/router';

const nameOf = ({ type, version }: ArgsSchema) => `${type}@${version}`;
const pathOf = (type: string, version: string | number) => `admin/schemas/${segment(type)}/${segment(String(version))}`;

export function Schemas() {
  const schemas = useGet<SchemaList>('admin/schemas', { per_page: 100 });
  const mayWrite = can('admin:write');
  return (
    <>
      <div class="bar">
        <Mode />
        <NewButton label="New schema" />
      </div>
      <Collection
        of={schemas}
        label="Schemas"
        columns={COLUMNS}
        rowKey={nameOf}
        rowHref={(row) => aside({ open: nameOf(row) })}
        form={mayWrite && ((from, onDone) => <SchemaForm from={from} onSaved={onDone} />)}
        drawer={(open) => (
          <Drawer title={`${open.type}, version ${open.version}`}>
            <div class="actions">{mayWrite && <Actions of={open} actions={ACTIONS} onDone={schemas.reload} />}</div>
            <Facts
              of={[
                ['URI', <Foreign>{open.uri}</Foreign>],
                ['Registered', <Time at={open.created_at} />],
              ]}
            />
            <Json value={open.schema} label="schema" open={4} />
          </Drawer>
        )}
        empty={
          <Empty icon="jobs" title="No schemas yet">
            With a schema for its type, wrong arguments are detected when a job is enqueued.
          </Empty>
        }
      >
        {({ items, total }) => total > items.length && <p class="faint">{`The first ${items.length} of ${total}.`}</p>}
      </Collection>
    </>
  );
}

function remove({ type, version }: ArgsSchema): Promise<boolean> {
  const text = 'Jobs that name this version no longer match; others must match the latest one left.';
  const question = { title: `Delete version ${version} of ${type}?`, text, action: 'Delete the schema', danger: true };
  return askAndAct(question, () => api.del(pathOf(type, version)), 'The schema is deleted.');
}

const ACTIONS: readonly Action<ArgsSchema>[] = [
  { label: 'New version', run: (row) => openAside({ edit: nameOf(row) }) },
  { label: 'Delete', danger: true, run: remove, removes: true },
];

const MODES: Readonly<Record<string, string>> = {
  off: 'are not validated',
  warn: 'are accepted with a warning',
  strict: 'are rejected',
};

const DEFAULTS = 'admin/queues/_default/config';

/** The mode of all queues without a setting of their own. */
function Mode() {
  const defaults = useGet<{ effective: { schemas?: string } }>(DEFAULTS);
  const mode = defaults.data?.effective.schemas ?? 'warn';
  const change = async (next: string) => {
    await act(() => api.put(DEFAULTS, { schemas: next }), `Jobs that do not match ${MODES[next]}.`);
    defaults.reload();
  };
  return (
    <Loaded of={defaults} loading={<span />}>
      {() =>
        can('admin:write') ? (
          <label class="mode">
            <span>Jobs that do not match, in queues without their own setting:</span>
            <select value={mode} onChange={({ currentTarget }) => change(currentTarget.value)}>
              {Object.entries(MODES).map(([option, words]) => (
                <option key={option} value={option} selected={option === mode}>
                  {option}: they {words}
                </option>
              ))}
            </select>
          </label>
        ) : (
          <p>
            Jobs that do not match {MODES[mode]} <Badge text={mode} />
          </p>
        )
      }
    </Loaded>
  );
}

const COLUMNS: readonly Column<ArgsSchema>[] = [
  textColumn('type', 'Job type', (row) => <Link to={aside({ open: nameOf(row) })} text={row.type} />),
  column('version', 'Version', ({ version }) => version),
  textColumn('uri', 'URI', { wide: true, sort: false }),
  timeColumn('created_at', 'Registered'),
];

const FIRST = '{\n  "type": "object",\n  "required": [],\n  "properties": {}\n}';

/** @param from the version that the new one begins with */
function SchemaForm({ from, onSaved }: { from: ArgsSchema | undefined; onSaved: () => void }) {
  const next = from && /^\d+$/.test(String(from.version)) ? Number(from.version) + 1 : from ? '' : 1;
  const save = async (form: FormData) => {
    const [type, version] = [textIn(form, 'type'), textIn(form, 'version')];
    await api.put(pathOf(type, version), { schema: parseExact(textIn(form, 'schema')) });
    const to = aside({ edit: null, open: `${type}@${version}` });
    return { text: `Version ${version} of ${type} is registered.`, to };
  };
  return (
    <FormDialog
      title={from ? `New version of ${from.type}` : 'New schema'}
      wide
      action="Register"
      values={{ ...from, schema: from ? JSON.stringify(from.schema, null, 2) : FIRST }}
      onSubmit={save}
      onDone={onSaved}
    >
      <div class="columns-2">
        <TextField name="type" label="Job type" required readOnly={from !== undefined} />
        <TextField name="version" label="Version" hint="A version cannot be replaced." value={next} required />
      </div>
      <JsonField name="schema" label="JSON Schema" rows={14} />
      <p class="faint">
        A schema of type object validates the first argument, any other schema the array of all arguments.
      </p>
    </FormDialog>
  );
}
