/** The effective configuration: variables, targets, limits, deployment-wide settings; and the keys, masked. */

import { useState } from 'preact/hooks';
import type { ApiKey, ApiKeyCreated, ApiKeyList } from '../../../contract/keys';
import type { ConfiguredTarget, DeploymentConfig, ShownVariable } from '../../../contract/system';
import { NewButton } from '../../components/actions';
import { FormDialog, SelectField, TextField, textIn } from '../../components/form';
import { JsonSection, SecretDialog } from '../../components/json';
import { Empty, Facts, Loaded, Section } from '../../components/page';
import { Collection, type Column, column, DataTable, textColumn, timeColumn } from '../../components/table';
import { Badge, Duration, Foreign, Link, None, Words } from '../../components/text';
import { api, can, useGet } from '../../core/api';
import { askAndAct } from '../../core/dialogs';
import { bytes, number } from '../../core/format';
import { aside, href, openAside, segment } from '../../core/router';

type Key = DeploymentConfig['access']['keys'][number];

const useConfig = () => useGet<DeploymentConfig>('admin/system/config');

export function Configuration() {
  const config = useConfig();
  return (
    <Loaded of={config}>
      {({ version, access, targets, limits, queue_defaults: defaults, variables, test_hooks }) => (
        <>
          <div class="card">
            <Facts
              of={[
                ['Version', version],
                [
                  'API key required',
                  access.open_to_localhost ? (
                    <Badge look={['amber', 'failures']} text="no: open to localhost" />
                  ) : (
                    <a href={aside({ tab: 'keys' })}>yes, one of {number(access.keys.length)}</a>
                  ),
                ],
                ['Allowed origins', access.allowed_origins.join(', ') || 'none'],
                ['Test hooks', test_hooks && <Badge look={['amber', 'failures']} text="on" />],
                ...Object.entries(limits).map(([name, value]) => {
                  const isSize = name.endsWith('_bytes');
                  return [LIMITS[name] ?? name, isSize ? bytes(value) : number(value)] as const;
                }),
              ]}
            />
          </div>
          <Section title="Variables">
            <DataTable
              label="Variables"
              rows={Object.entries(variables).sort(([a], [b]) => (a < b ? -1 : 1))}
              columns={VARIABLES}
              rowKey={([name]) => name}
              empty={<Empty icon="settings" title="No variables" />}
            />
          </Section>
          <Section title="Push targets">
            <DataTable
              label="Targets"
              rows={targets}
              columns={TARGETS}
              rowKey={({ id }) => id}
              empty={
                <Empty icon="workers" title="No targets">
                  Jobs wait for workers that fetch them. <code>HANDLERS</code> configures push targets.
                </Empty>
              }
            />
          </Section>
          <JsonSection title="Settings of all queues" value={defaults.effective} open={1} />
        </>
      )}
    </Loaded>
  );
}

const LIMITS: Readonly<Record<string, string>> = {
  max_envelope_bytes: 'Maximum job size',
  max_meta_bytes: 'Maximum size of meta',
  max_result_bytes: 'Maximum result size',
  max_batch_size: 'Maximum jobs per request',
};

type Variable = [name: string, ShownVariable];

const VARIABLES: readonly Column<Variable>[] = [
  column('name', 'Variable', { sort: ([name]) => name }, ([name]) => <code>{name}</code>),
  column('value', 'Value', ([, { set, value }]) => {
    if (!set) return <span class="faint">not set</span>;
    if (value === undefined) return <Badge look={['neutral', 'check']} text="set, not shown" />;
    return (
      <span class="mono">
        <Foreign>{value}</Foreign>
      </span>
    );
  }),
];

const TARGETS: readonly Column<ConfiguredTarget>[] = [
  column('name', 'Target', ({ name }) => <Link to={href('workers')} text={name} />),
  column('kind', 'Kind', ({ kind }) => kind),
  column('patterns', 'Gets', ({ patterns }) => <Words of={patterns} />),
  column('batch', 'At once', { end: true }, ({ batch_size: size }) => size ?? <None />),
  column('timeout', 'Timeout', { end: true }, ({ timeout_ms: ms }) => <Duration ms={ms} />),
];

export function Keys() {
  const config = useConfig();
  return (
    <Loaded of={config}>
      {({ access }) => (
        <>
          <DataTable
            label="Keys"
            rows={access.keys.map((key, index) => ({ ...key, id: `${index}` }))}
            columns={KEYS}
            rowKey={({ id }) => id}
            empty={
              <Empty icon="settings" title="No keys">
                Requests from the same machine may do everything. The secret <code>API_KEYS</code> holds keys with their
                roles.
              </Empty>
            }
          />
          {can('admin:keys') && <RuntimeKeys />}
        </>
      )}
    </Loaded>
  );
}

const KEYS: readonly Column<Key & { id: string }>[] = [
  textColumn('name', 'Key', ({ name }) =>
    name === null ? (
      <span class="faint">without a name</span>
    ) : (
      <Link to={href('audit', { actor: name })} text={name} title="Its changes" />
    ),
  ),
  textColumn('role', 'Role', ({ role }) => <Badge text={role} />),
  column('scopes', 'Scopes', ({ scopes }) => <Words of={scopes} />),
];

const RUNTIME_KEYS = 'admin/keys';
const pathOf = (id: string) => `${RUNTIME_KEYS}/${segment(id)}`;
const ROLES = { viewer: 'viewer', operator: 'operator', admin: 'admin' };
const BOUNDS = [
  ['queues', 'Queues', 'mail, sms-*'],
  ['types', 'Job types', 'email.*'],
  ['groups', 'Groups', 'acme'],
] as const;

/** API keys made at run time. A secret is shown once. */
function RuntimeKeys() {
  const keys = useGet<ApiKeyList>(RUNTIME_KEYS, { limit: 200 });
  const [secret, setSecret] = useState('');
  const reveal = ({ key }: ApiKeyCreated) => {
    setSecret(key);
    keys.reload();
  };
  const rotate = ({ id, name }: ApiKey) => {
    const text = 'The old secret works for another 24 hours, so that you can update its users.';
    const question = { title: `Create a new secret for ${name}?`, text, action: 'Create a new secret' };
    return askAndAct(question, async () => reveal(await api.post(`${pathOf(id)}/rotate`, { overlap: '24h' })));
  };
  return (
    <Section title="Made at run time" actions={<NewButton label="New key" scope="admin:keys" edit=":new" />}>
      <Collection
        of={keys}
        label="Keys made at run time"
        columns={RUNTIME_COLUMNS}
        rowKey={({ id }) => id}
        nameOf={({ name }) => name}
        actions={[
          { label: 'Rotate', run: rotate },
          { label: 'Revoke', run: revoke },
        ]}
        form={() => <KeyForm onMade={reveal} />}
        empty={<Empty icon="settings" title="No keys yet" text="A key for each customer or program can be revoked." />}
      />
      {secret && <SecretDialog title="The key" text={secret} label="key" onClose={() => setSecret('')} />}
    </Section>
  );
}

function revoke({ id, name }: ApiKey): Promise<boolean> {
  const text = 'Requests with it fail within 30 seconds. This cannot be undone.';
  const question = { title: `Revoke the key ${name}?`, text, action: 'Revoke the key', danger: true };
  return askAndAct(question, () => api.del(pathOf(id)), `${name} is revoked.`);
}

const RUNTIME_COLUMNS: readonly Column<ApiKey>[] = [
  textColumn('name', 'Key'),
  textColumn('role', 'Role', ({ role }) => <Badge text={role} />),
  column('bounds', 'Bound to', (key) => <Words of={BOUNDS.flatMap(([kind]) => key[kind] ?? [])} />),
  textColumn('rate', 'Rate'),
  timeColumn('used_at', 'Last used'),
  timeColumn('expires_at', 'Expires'),
];

function KeyForm({ onMade }: { onMade: (key: ApiKeyCreated) => void }) {
  const save = async (form: FormData) => {
    const lists = BOUNDS.map(([kind]) => {
      const words = textIn(form, kind).split(',');
      return [kind, words.map((word) => word.trim()).filter(Boolean)] as const;
    });
    const [end, rate] = [textIn(form, 'expires_at'), textIn(form, 'rate')];
    const made = await api.post<ApiKeyCreated>(RUNTIME_KEYS, {
      ...{ name: textIn(form, 'name'), role: textIn(form, 'role') },
      ...Object.fromEntries(lists.filter(([, words]) => words.length > 0)),
      ...(end !== '' && { expires_at: end }),
      ...(rate !== '' && { rate }),
    });
    openAside({ edit: null });
    onMade(made);
    return undefined;
  };
  return (
    <FormDialog title="New key" action="Create" onSubmit={save}>
      <TextField name="name" label="Name" hint="The audit log shows it." required />
      <SelectField name="role" label="Role" options={ROLES} />
      {BOUNDS.map(([kind, label, example]) => (
        <TextField key={kind} name={kind} label={label} hint="Separated by commas. Empty: all." placeholder={example} />
      ))}
      <TextField name="rate" label="Rate" hint="Jobs into each queue, such as 600/m. Empty: any number." />
      <TextField name="expires_at" label="Expires" hint="Such as 90d, or a time. Empty: never." />
    </FormDialog>
  );
}
