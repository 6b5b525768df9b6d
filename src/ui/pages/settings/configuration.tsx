/** The effective configuration: variables, targets, limits, deployment-wide settings; and the keys, masked. */

import type { ConfiguredTarget, DeploymentConfig, ShownVariable } from '../../../contract/system';
import { JsonSection } from '../../components/json';
import { Empty, Facts, Loaded, Section } from '../../components/page';
import { type Column, column, DataTable, textColumn } from '../../components/table';
import { Badge, Duration, Foreign, Link, None, Words } from '../../components/text';
import { can, useGet } from '../../core/api';
import { bytes, number } from '../../core/format';
import { aside, href } from '../../core/router';
import { RuntimeKeys } from './keys';

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
