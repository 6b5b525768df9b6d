/** Handlers that jobs are pushed to: whether they take calls, and what went wrong when they do not. */
import type { TargetDetail, TargetList, TargetResumed, TargetState, TargetStatus } from '../../../contract/targets';
import type { Action } from '../../components/actions';
import { Drawer } from '../../components/overlays';
import { Empty, Facts, Loaded } from '../../components/page';
import { Collection, type Column, column, textColumn, timeColumn } from '../../components/table';
import { Badge, Foreign, QueueLink, Time, type Tone } from '../../components/text';
import { api, can, type Resource, useGet } from '../../core/api';
import { act, toast } from '../../core/dialogs';
import { counted, number } from '../../core/format';
import { aside, query, segment } from '../../core/router';

const TONES: Readonly<Record<TargetState, Tone>> = { up: 'green', paused: 'amber', stopped: 'red' };

const Circuit = ({ state }: { state: TargetState }) => <Badge look={[TONES[state]]} text={state} />;

/** Asks a handler what it takes, in every queue that has stopped calling it; one that is up has nothing to be tried. */
const tryNow = ({ name }: TargetStatus): Promise<boolean> =>
  act(async () => {
    const { tried, resumed } = await api.post<TargetResumed>(`admin/targets/${segment(name)}/resume`);
    if (tried === 0) toast(`No queue has stopped calling ${name}.`);
    else if (resumed === tried) toast(`${name} is up again in ${queues(resumed)}.`);
    else toast(`${name} is still down in ${queues(tried - resumed)}.`, { kind: 'error' });
  });

const queues = (count: number) => counted(count, 'queue');

const ACTIONS: readonly Action<TargetStatus>[] = [
  { label: ({ state }) => (state === 'up' ? 'Try' : 'Resume'), key: ['t', 'Call the handler now'], run: tryNow },
];

const COLUMNS: readonly Column<TargetStatus>[] = [
  column('target', 'Handler', ({ name }) => <a href={aside({ target: name })}>{name}</a>),
  column('circuit', 'Calls', ({ state }) => <Circuit state={state} />),
  column('patterns', 'Job types', ({ patterns }) => <Foreign>{patterns.join(', ')}</Foreign>),
  column('in', 'In queues', { wide: true }, ({ queue_states: { up, paused, stopped } }) => (
    <>
      {number(up)} up
      {paused > 0 && <span class="amber">, {number(paused)} paused</span>}
      {stopped > 0 && <span class="red">, {number(stopped)} stopped</span>}
    </>
  )),
  textColumn('last_error', 'Last error', { sort: false }),
  timeColumn('next_try_at', 'Next try', { end: false }),
];

export const TargetTable = ({ targets }: { targets: Resource<TargetList> }) => (
  <Collection
    of={targets}
    label="Push targets"
    rowKey={({ name }) => name}
    rowHref={({ name }) => aside({ target: name })}
    actions={can('admin:write') && ACTIONS}
    columns={COLUMNS}
    empty={
      <Empty icon="workers" title="No handlers">
        Bind a handler Worker and list it in <code>HANDLERS</code>: jobs of its types are pushed to it.
      </Empty>
    }
  >
    {() => query('target') !== '' && <TargetDrawer name={query('target')} />}
  </Collection>
);

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
