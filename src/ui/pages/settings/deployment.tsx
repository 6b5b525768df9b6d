/** What the code of the deployment declares, whether it is in effect, and what operators have changed of it. */
import type { Deployment as DeclaredDeployment, DeclaredObserver } from '../../../contract/deployment';
import { Empty, Facts, Loaded, Section } from '../../components/page';
import { type Column, DataTable, textColumn } from '../../components/table';
import { Badge, Button, Foreign, GOOD, Link, Time, type Tone, Words } from '../../components/text';
import { api, can, useGet } from '../../core/api';
import { askAndAct } from '../../core/dialogs';
import { href, segment } from '../../core/router';
import { MaintenanceButton, useMaintenance } from '../overview/maintenance';

interface Row {
  kind: string;
  name: string;
  to: string;
  tone: Tone;
  state: string;
  more?: string;
}

export function Deployment() {
  const declared = useGet<DeclaredDeployment>('admin/deployment');
  const maintenance = useMaintenance();
  const apply = async (resetCrons: boolean) => {
    const question = {
      title: resetCrons ? 'Reset the schedules to what the code declares?' : 'Apply what the code declares?',
      text: resetCrons
        ? 'Changes that operators made to schedules are undone, and deleted schedules are created again.'
        : 'Queues, limits, schedules, webhooks and alert rules are set to what the code declares. Settings of operators keep precedence.',
      action: resetCrons ? 'Reset now' : 'Apply now',
    };
    const body = resetCrons ? { reset_crons: true } : {};
    if (await askAndAct(question, () => api.post('admin/deployment/apply', body), 'Applied.')) declared.reload();
  };
  return (
    <>
      <Loaded of={maintenance}>
        {(now) => (
          <Section title="Maintenance" actions={<MaintenanceButton of={maintenance} />}>
            <div class="card">
              <Facts
                of={[
                  ['Maintenance', <Switched on={!now.enabled} words={['off', 'on: no job starts']} />],
                  ['Since', now.started_at && <Time at={now.started_at} />],
                  ['Until', now.ends_at && <Time at={now.ends_at} />],
                  ['Reason', now.reason && <Foreign>{now.reason}</Foreign>],
                ]}
              />
            </div>
          </Section>
        )}
      </Loaded>
      <Loaded of={declared}>
        {(data) => (
          <Section
            title="Declared by the code"
            actions={
              can('admin:write') && (
                <span class="actions">
                  {data.crons.some(({ state }) => state === 'changed' || state === 'deleted') && (
                    <Button label="Reset schedules" onClick={() => apply(true)} />
                  )}
                  <Button label="Apply" class={data.in_effect ? '' : 'primary'} onClick={() => apply(false)} />
                </span>
              )
            }
          >
            <div class="card">
              <Facts
                of={[
                  ['State', <Switched on={data.in_effect} words={['in effect', 'not in effect yet']} />],
                  ['Applied', <Time at={data.applied_at} />],
                  ['Place of the data', data.data_location ?? 'anywhere'],
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
                    Pass them to <code>createTocsin</code>, and deploy.
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

function Switched({ on, words: [good, bad] }: { on: boolean; words: readonly [good: string, bad: string] }) {
  return <Badge look={on ? GOOD : ['amber', 'waiting']} text={on ? good : bad} />;
}

const STATE_TONES: Readonly<Record<string, Tone>> = {
  ...{ declared: 'green', changed: 'amber', overridden: 'amber', deleted: 'red', pending: 'blue' },
};

function rowOf(kind: string, name: string, to: string, state: string, more?: string): Row {
  return { kind, name, to, state, tone: STATE_TONES[state] ?? 'neutral', ...(more && { more }) };
}

function rowsOf({ queues, limits, crons, webhooks, alerts }: DeclaredDeployment): Row[] {
  const observer = (kind: string, { name, state, active }: DeclaredObserver, to: string) =>
    rowOf(kind, name, to, state, active === false ? 'off' : undefined);
  return [
    ...queues.map(({ name, changed }) => {
      const to = href(`queues/${segment(name)}`, { tab: 'settings' });
      return rowOf('queue', name, to, changed.length > 0 ? 'changed' : 'declared', changed.join(', '));
    }),
    ...limits.map(({ key, override }) => rowOf('limit', key, href('limits'), override ? 'overridden' : 'declared')),
    ...crons.map(({ name, state, enabled }) =>
      rowOf('schedule', name, href('schedules', { open: name }), state, enabled === false ? 'paused' : undefined),
    ),
    ...webhooks.map((one) => observer('webhook', one, href('webhooks', { open: one.id ?? null }))),
    ...alerts.map((one) => observer('alert rule', one, href('alerts'))),
  ];
}

const COLUMNS: readonly Column<Row>[] = [
  textColumn('name', 'Name', ({ name, to }) => <Link to={to} text={name} />),
  textColumn('kind', 'Kind'),
  textColumn('state', 'State', ({ tone, state }) => <Badge look={[tone]} text={state} />),
  textColumn('more', 'By operators', { sort: false }),
];
