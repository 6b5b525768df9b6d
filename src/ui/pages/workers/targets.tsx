/** Handlers that jobs are pushed to: whether they take calls, and what went wrong when they do not. */
import type { TargetDetail, TargetList, TargetResumed, TargetState, TargetStatus } from '../../../contract/targets';
import { Badge, type Tone } from '../../components/badge';
import { Collection } from '../../components/collection';
import { Drawer } from '../../components/overlays';
import { Facts } from '../../components/page';
import { Empty, Loaded } from '../../components/state';
import { actionsColumn, type Column, textColumn, timeColumn } from '../../components/table';
import { Button, Foreign, QueueLink, Time } from '../../components/text';
import { api } from '../../core/api';
import { segment } from '../../core/base';
import { failed, toast } from '../../core/dialogs';
import { counted, number } from '../../core/format';
import { type Resource, useGet } from '../../core/resource';
import { aside, query } from '../../core/router';
import { can } from '../../core/session';

const TONES: Readonly<Record<TargetState, Tone>> = { up: 'green', paused: 'amber', stopped: 'red' };

const Circuit = ({ state }: { state: TargetState }) => <Badge look={[TONES[state]]} text={state} />;

/** Asks a handler what it takes, in every queue that has stopped calling it; one that is up has nothing to be tried. */
async function tryNow(name: string): Promise<void> {
  try {
    const { tried, resumed } = await api.post<TargetResumed>(`admin/targets/${segment(name)}/resume`);
    if (tried === 0) toast(`No queue has stopped calling ${name}.`);
    else if (resumed === tried) toast(`${name} is up again in ${queues(resumed)}.`);
    else toast(`${name} is still down in ${queues(tried - resumed)}.`, { kind: 'error' });
  } catch (error) {
    failed(error);
  }
}

const queues = (count: number) => counted(count, 'queue');

export function TargetTable({ targets }: { targets: Resource<TargetList> }) {
  const tryIt = ({ name }: TargetStatus) => tryNow(name).then(targets.reload);
  const columns: Column<TargetStatus>[] = [
    { id: 'target', label: 'Handler', render: ({ name }) => <a href={aside({ target: name })}>{name}</a> },
    { id: 'circuit', label: 'Calls', render: ({ state }) => <Circuit state={state} /> },
    { id: 'patterns', label: 'Job types', render: ({ patterns }) => <Foreign>{patterns.join(', ')}</Foreign> },
    {
      id: 'in',
      label: 'In queues',
      wide: true,
      render: ({ queue_states: { up, paused, stopped } }) => (
        <>
          {number(up)} up
          {paused > 0 && <span class="amber">, {number(paused)} paused</span>}
          {stopped > 0 && <span class="red">, {number(stopped)} stopped</span>}
        </>
      ),
    },
    textColumn('last_error', 'Last error', { sort: false }),
    timeColumn('next_try_at', 'Next try', { end: false }),
    ...actionsColumn(can('admin:write'), (row: TargetStatus) => (
      <Button label={row.state === 'up' ? 'Try' : 'Resume'} class="small" onClick={() => tryIt(row)} />
    )),
  ];
  return (
    <Collection
      of={targets}
      label="Push targets"
      rowKey={({ name }) => name}
      rowHref={({ name }) => aside({ target: name })}
      keys={can('admin:write') && { t: { label: 'Call the handler now', run: tryIt } }}
      columns={columns}
      empty={
        <Empty icon="workers" title="No handlers">
          Bind a handler Worker and list it in <code>HANDLERS</code>: jobs of its types are pushed to it.
        </Empty>
      }
    >
      {() => query('target') !== '' && <TargetDrawer name={query('target')} />}
    </Collection>
  );
}

function TargetDrawer({ name }: { name: string }) {
  const target = useGet<TargetDetail>(`admin/targets/${segment(name)}`);
  return (
    <Drawer title={`Handler ${name}`} name="target">
      <Loaded of={target}>
        {(data) => (
          <>
            <Facts
              of={[
                ['Calls', <Circuit state={data.state} />],
                ['Mapped types', <Foreign>{data.patterns.join(', ')}</Foreign>],
                ['Accepted types', data.types && <Foreign>{data.types.join(', ')}</Foreign>],
              ]}
            />
            <h3 class="held">Per queue</h3>
            <ul class="held-jobs text">
              {data.queues.map(({ queue, state, since, last_error, last_tried_at, next_try_at }) => (
                <li key={queue}>
                  <div>
                    <QueueLink name={queue} /> <Circuit state={state} />{' '}
                    {since && (
                      <span class="faint">
                        since <Time at={since} />
                      </span>
                    )}
                  </div>
                  {last_error && <Foreign>{last_error}</Foreign>}
                  {last_tried_at && (
                    <div class="faint">
                      tried <Time at={last_tried_at} />
                      {next_try_at && <Time before=", again " at={next_try_at} />}
                    </div>
                  )}
                </li>
              ))}
            </ul>
          </>
        )}
      </Loaded>
    </Drawer>
  );
}
