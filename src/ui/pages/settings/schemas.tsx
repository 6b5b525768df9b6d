/** Schemas of arguments: which there are, and what becomes of a job that does not fit. */
import { useState } from 'preact/hooks';
import type { ArgsSchema, SchemaList } from '../../../contract/schemas';
import { Badge } from '../../components/badge';
import { errorAt, Field, Form, JsonField, textIn } from '../../components/form';
import { Json } from '../../components/json';
import { Dialog, Drawer } from '../../components/overlays';
import { Facts } from '../../components/page';
import { Empty, Loaded } from '../../components/state';
import { type Column, DataTable } from '../../components/table';
import { Foreign, Time } from '../../components/text';
import { api } from '../../core/api';
import { aside, openAside } from '../../core/aside';
import { segment } from '../../core/base';
import { act, confirm, toast } from '../../core/dialogs';
import { parseExact } from '../../core/exact';
import { useResource } from '../../core/resource';
import { query } from '../../core/router';
import { can } from '../../core/session';

const nameOf = ({ type, version }: ArgsSchema) => `${type}@${version}`;
const pathOf = (type: string, version: string | number) => `admin/schemas/${segment(type)}/${segment(String(version))}`;

export function Schemas() {
  const schemas = useResource((signal) => api.get<SchemaList>('admin/schemas', { per_page: 100 }, signal), []);
  const mayWrite = can('admin:write');
  const open = schemas.data?.items.find((one) => nameOf(one) === query('open'));
  const remove = async (one: ArgsSchema) => {
    const sure = await confirm({
      title: `Delete version ${one.version} of ${one.type}?`,
      text: 'Jobs that name this version no longer match; others must match the latest one left.',
      action: 'Delete the schema',
      danger: true,
    });
    if (!sure || !(await act(() => api.del(pathOf(one.type, one.version)), 'The schema is deleted.'))) return;
    openAside({ open: null });
    schemas.reload();
  };
  return (
    <>
      <div class="bar">
        <Mode />
        {mayWrite && (
          <button type="button" class="primary" onClick={() => openAside({ edit: 'new' })}>
            New schema
          </button>
        )}
      </div>
      <Loaded of={schemas}>
        {({ items, total }) => (
          <>
            <DataTable
              label="Schemas"
              rows={items}
              columns={COLUMNS}
              rowKey={nameOf}
              rowHref={(row) => aside({ open: nameOf(row) })}
              empty={
                <Empty icon="jobs" title="No schemas yet">
                  With a schema for its type, wrong arguments are detected when a job is enqueued.
                </Empty>
              }
            />
            {total > items.length && (
              <p class="faint">
                The first {items.length} of {total}.
              </p>
            )}
          </>
        )}
      </Loaded>
      {open && (
        <Drawer title={`${open.type}, version ${open.version}`}>
          {mayWrite && (
            <div class="actions">
              <button type="button" onClick={() => openAside({ edit: nameOf(open) })}>
                New version
              </button>
              <button type="button" class="danger" onClick={() => remove(open)}>
                Delete
              </button>
            </div>
          )}
          <Facts
            of={[
              ['URI', <Foreign>{open.uri}</Foreign>],
              ['Registered', <Time at={open.created_at} />],
            ]}
          />
          <Json value={open.schema} label="schema" open={4} />
        </Drawer>
      )}
      {mayWrite && query('edit') && schemas.data && (
        <SchemaForm from={schemas.data.items.find((one) => nameOf(one) === query('edit'))} onSaved={schemas.reload} />
      )}
    </>
  );
}

const MODES: Readonly<Record<string, string>> = {
  off: 'are not validated',
  warn: 'are accepted with a warning',
  strict: 'are rejected',
};

const DEFAULTS = 'admin/queues/_default/config';

/** What holds in all queues that say nothing else. */
function Mode() {
  const defaults = useResource((signal) => api.get<{ effective: { schemas?: string } }>(DEFAULTS, {}, signal), []);
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
            Jobs that do not match {MODES[mode]} <Badge>{mode}</Badge>
          </p>
        )
      }
    </Loaded>
  );
}

const COLUMNS: readonly Column<ArgsSchema>[] = [
  {
    id: 'type',
    label: 'Job type',
    sort: ({ type }) => type,
    render: (row) => (
      <a href={aside({ open: nameOf(row) })}>
        <Foreign>{row.type}</Foreign>
      </a>
    ),
  },
  { id: 'version', label: 'Version', render: ({ version }) => String(version) },
  { id: 'uri', label: 'URI', wide: true, render: ({ uri }) => <Foreign>{uri}</Foreign> },
  { id: 'created', label: 'Registered', end: true, render: ({ created_at }) => <Time at={created_at} /> },
];

const FIRST = '{\n  "type": "object",\n  "required": [],\n  "properties": {}\n}';

/** @param from the version that the new one begins with */
function SchemaForm({ from, onSaved }: { from: ArgsSchema | undefined; onSaved: () => void }) {
  const [schema, setSchema] = useState(from ? JSON.stringify(from.schema, null, 2) : FIRST);
  const close = () => openAside({ edit: null });
  const next = from && /^\d+$/.test(String(from.version)) ? Number(from.version) + 1 : from ? '' : 1;
  return (
    <Dialog title={from ? `New version of ${from.type}` : 'New schema'} wide onClose={close}>
      <Form
        action="Register"
        onCancel={close}
        onSubmit={async (form) => {
          const [type, version] = [textIn(form, 'type'), textIn(form, 'version')];
          await api.put(pathOf(type, version), { schema: parseExact(schema) });
          toast(`Version ${version} of ${type} is registered.`);
          onSaved();
          openAside({ edit: null, open: `${type}@${version}` });
        }}
      >
        {(error) => (
          <>
            <div class="columns-2">
              <Field label="Job type" error={errorAt(error, 'type')}>
                <input
                  name="type"
                  required
                  defaultValue={from?.type ?? ''}
                  readOnly={from !== undefined}
                  autocomplete="off"
                  spellcheck={false}
                />
              </Field>
              <Field label="Version" hint="A version cannot be replaced." error={errorAt(error, 'version')}>
                <input name="version" required defaultValue={next} autocomplete="off" spellcheck={false} />
              </Field>
            </div>
            <JsonField
              label="JSON Schema"
              rows={14}
              value={schema}
              onChange={setSchema}
              error={errorAt(error, 'schema')}
            />
            <p class="faint">
              A schema of type object validates the first argument, any other schema the array of all arguments.
            </p>
          </>
        )}
      </Form>
    </Dialog>
  );
}
