/** What the code of the deployment declares, whether it is in effect, and what operators have changed of it. */
import type { Deployment as DeclaredDeployment, DeclaredObserver } from '../../../contract/deployment';
import type { MaintenanceState } from '../../../contract/maintenance';
import { Badge, type Tone } from '../../components/badge';
import { Facts, Section } from '../../components/page';
import { Empty, Loaded } from '../../components/state';
import { type Column, DataTable } from '../../components/table';
import { Foreign, Time, Words } from '../../components/text';
import { api } from '../../core/api';
import { href, segment } from '../../core/base';
import { act, confirm } from '../../core/dialogs';
import { useResource } from '../../core/resource';
import { can } from '../../core/session';

interface Row {
  kind: string;
  name: string;
  to: string;
  tone: Tone;
  state: string;
  more?: string;
}

export function Deployment() {
  const declared = useResource((signal) => api.get<DeclaredDeployment>('admin/deployment', {}, signal), []);
  const maintenance = useResource((signal) => api.get<MaintenanceState>('admin/system/maintenance', {}, signal), []);
  const apply = async (resetCrons: boolean) => {
    const sure = await confirm({
      title: resetCrons ? 'Reset the schedules to what the code declares?' : 'Apply what the code declares?',
      text: resetCrons
        ? 'Changes that operators made to schedules are undone, and deleted schedules are created again.'
        : 'Queues, limits, schedules, webhooks and alert rules are set to what the code declares. Settings of operators keep precedence.',
      action: resetCrons ? 'Reset now' : 'Apply now',
    });
    if (!sure) return;
    const body = resetCrons ? { reset_crons: true } : {};
    if (await act(() => api.post('admin/deployment/apply', body), 'Applied.')) declared.reload();
  };
  return (
    <>
      <Loaded of={maintenance}>{(now) => <MaintenanceCard of={now} />}</Loaded>
      <Loaded of={declared}>
        {(data) => (
          <Section
            title="Declared by the code"
            actions={
              can('admin:write') && (
                <span class="actions">
                  {data.crons.some(({ state }) => state === 'changed' || state === 'deleted') && (
                    <button type="button" onClick={() => apply(true)}>
                      Reset schedules
                    </button>
                  )}
                  <button type="button" class={data.in_effect ? '' : 'primary'} onClick={() => apply(false)}>
                    Apply
                  </button>
                </span>
              )
            }
          >
            <div class="card">
              <Facts
                of={[
                  [
                    'State',
                    data.in_effect ? (
                      <Badge tone="green" icon="completed">
                        in effect
                      </Badge>
                    ) : (
                      <Badge tone="amber" icon="waiting">
                        not in effect yet
                      </Badge>
                    ),
                  ],
                  ['Applied', <Time at={data.applied_at} />],
                  ['Version', data.version],
                  ['Digest', <span class="mono">{data.digest.slice(0, 16)}</span>],
                  ['Refused', data.problems.length > 0 && <Foreign>{data.problems.join(' ')}</Foreign>],
                  ['Handlers in the code', data.handlers.length > 0 && <Words of={data.handlers} />],
                ]}
              />
            </div>
            <div class="after">
              <DataTable
                label="Declared by the code"
                rows={rowsOf(data)}
                columns={COLUMNS}
                rowKey={({ kind, name }) => `${kind} ${name}`}
                rowHref={({ to }) => to}
                empty={
                  <Empty
                    icon="settings"
                    title="The code declares no queues, limits, schedules, webhooks or alert rules"
                  >
                    <code>createTocsin</code> takes them.
                  </Empty>
                }
              />
            </div>
          </Section>
        )}
      </Loaded>
    </>
  );
}

function MaintenanceCard({ of: { enabled, reason, started_at, ends_at } }: { of: MaintenanceState }) {
  return (
    <div class="card">
      <Facts
        of={[
          [
            'Maintenance',
            enabled ? (
              <Badge tone="amber" icon="pause">
                on: no job starts
              </Badge>
            ) : (
              <Badge tone="green" icon="play">
                off
              </Badge>
            ),
          ],
          ['Since', started_at && <Time at={started_at} />],
          ['Until', ends_at && <Time at={ends_at} />],
          ['Reason', reason && <Foreign>{reason}</Foreign>],
          [
            'Change it',
            can('admin:write') && (
              <a href={href('', enabled ? {} : { do: 'maintenance' })}>
                {enabled ? 'End maintenance on the overview' : 'Start maintenance on the overview'}
              </a>
            ),
          ],
        ]}
      />
    </div>
  );
}

const STATE_TONES: Readonly<Record<string, Tone>> = {
  declared: 'green',
  changed: 'amber',
  deleted: 'red',
  pending: 'blue',
};

function observerRow(kind: string, { name, state, active }: DeclaredObserver, to: string): Row {
  const tone = STATE_TONES[state] ?? 'neutral';
  return { kind, name, to, tone, state, ...(active === false && { more: 'off' }) };
}

function rowsOf({ queues, limits, crons, webhooks, alerts }: DeclaredDeployment): Row[] {
  return [
    ...queues.map(({ name, changed }): Row => {
      const isChanged = changed.length > 0;
      return {
        ...{ kind: 'queue', name, to: href(`queues/${segment(name)}`, { tab: 'settings' }) },
        ...{ tone: isChanged ? 'amber' : 'green', state: isChanged ? 'changed' : 'declared', more: changed.join(', ') },
      };
    }),
    ...limits.map(({ key, override }): Row => {
      const state = override === undefined ? 'declared' : 'overridden';
      return { kind: 'limit', name: key, to: href('limits'), tone: override === undefined ? 'green' : 'amber', state };
    }),
    ...crons.map(({ name, state, enabled }): Row => {
      const to = href('schedules', { open: name });
      return {
        kind: 'schedule',
        name,
        to,
        tone: STATE_TONES[state] ?? 'neutral',
        state,
        ...(enabled === false && { more: 'paused' }),
      };
    }),
    ...webhooks.map((one) => observerRow('webhook', one, href('webhooks', { open: one.id ?? null }))),
    ...alerts.map((one) => observerRow('alert rule', one, href('webhooks', { tab: 'alerts' }))),
  ];
}

const COLUMNS: readonly Column<Row>[] = [
  {
    id: 'name',
    label: 'Name',
    sort: ({ name }) => name,
    render: ({ name, to }) => (
      <a href={to}>
        <Foreign>{name}</Foreign>
      </a>
    ),
  },
  { id: 'kind', label: 'Kind', sort: ({ kind }) => kind, render: ({ kind }) => kind },
  {
    id: 'state',
    label: 'State',
    sort: ({ state }) => state,
    render: ({ tone, state }) => <Badge tone={tone}>{state}</Badge>,
  },
  { id: 'more', label: 'By operators', render: ({ more }) => more || <span class="faint">–</span> },
];
