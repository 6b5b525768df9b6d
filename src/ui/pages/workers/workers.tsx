/** Workers that pull: their leases, and directives for them. */
import type { Directive, LeasedJob, WorkerDetail, WorkerList, WorkerStatus } from '../../../contract/workers';
import { Badge, type Tone } from '../../components/badge';
import { Pager } from '../../components/list';
import { Drawer } from '../../components/overlays';
import { Facts, Stat } from '../../components/page';
import shared from '../../components/shared.css' with { type: 'text' };
import { Empty, Loaded } from '../../components/state';
import { actionsColumn, type Column, DataTable } from '../../components/table';
import { Copy, Count, Foreign, JobLink, QueueLink, Time } from '../../components/text';
import { api } from '../../core/api';
import { aside } from '../../core/aside';
import { segment } from '../../core/base';
import { act, confirm } from '../../core/dialogs';
import { capitalized, counted, number } from '../../core/format';
import { type Resource, useResource } from '../../core/resource';
import { query } from '../../core/router';
import { can } from '../../core/session';
import { adopt } from '../../core/styles';

adopt(shared);
export const PER_PAGE = 50;

const TONES: Readonly<Record<string, Tone>> = { running: 'green', quiet: 'amber', terminate: 'violet', stale: 'red' };

const EFFECTS: Readonly<Record<Directive, string>> = {
  running: 'takes jobs again',
  quiet: 'takes no more jobs',
  terminate: 'exits when its jobs have ended',
};

async function tell({ id }: WorkerStatus, directive: Directive): Promise<boolean> {
  const sure =
    directive !== 'terminate' ||
    (await confirm({
      title: `Terminate ${id}?`,
      text: 'From its next heartbeat it takes no more jobs, and it exits when its running jobs have ended.',
      ...{ action: 'Terminate', danger: true },
    }));
  const told = () => api.post('admin/workers/directive', { directive, worker_id: id });
  return sure && act(told, `${id} ${EFFECTS[directive]}.`);
}

async function tellAll(directive: Directive, count: number): Promise<boolean> {
  const sure = await confirm({
    title:
      directive === 'running' ? 'Resume all workers?' : `${directive === 'quiet' ? 'Quiet' : 'Terminate'} all workers?`,
    text: `${counted(count, 'worker')}: each ${EFFECTS[directive]}.`,
    ...{ action: `Notify ${number(count)}`, danger: directive === 'terminate' },
  });
  return sure && act(() => api.post('admin/workers/directive', { directive }), 'All workers were notified.');
}

async function remove({ id, active_jobs }: WorkerStatus): Promise<boolean> {
  const sure = await confirm({
    title: `Remove ${id}?`,
    text: `It has stopped sending heartbeats. ${active_jobs > 0 ? 'Its jobs run elsewhere at once.' : 'It holds no jobs.'}`,
    ...{ action: 'Remove', danger: true },
  });
  return sure && act(() => api.del(`admin/workers/${segment(id)}`), `${id} was removed.`);
}

export function WorkerTable({ workers, reload }: { workers: Resource<WorkerList>; reload: () => void }) {
  const after = (work: Promise<boolean>) => work.then((done) => done && reload());
  return (
    <Loaded of={workers}>
      {({ items, summary }) =>
        summary.total === 0 ? (
          <Empty icon="workers" title="No workers yet">
            A worker that pulls appears with its first heartbeat: <code>npx tocsin create worker</code>, or{' '}
            <code>POST /ojs/v1/workers/heartbeat</code>. Handlers that jobs are pushed to are listed below.
          </Empty>
        ) : (
          <>
            <div class="stats workers-stats">
              {(['running', 'quiet', 'terminate', 'stale'] as const).map((state) => (
                <Stat
                  key={state}
                  label={state === 'terminate' ? 'Terminating' : capitalized(state)}
                  tone={state === 'stale' && summary.stale > 0 ? 'red' : ''}
                >
                  <Count value={summary[state]} />
                </Stat>
              ))}
            </div>
            {can('admin:write') && (
              <div class="actions all-workers">
                <span class="faint">All workers</span>
                {(['quiet', 'running', 'terminate'] as const).map((directive) => (
                  <button
                    key={directive}
                    type="button"
                    class={`small${directive === 'terminate' ? ' danger' : ''}`}
                    onClick={() => after(tellAll(directive, summary.total))}
                  >
                    {directive === 'running' ? 'Resume all' : directive === 'quiet' ? 'Quiet all' : 'Terminate all'}
                  </button>
                ))}
              </div>
            )}
            <DataTable
              label="Workers"
              rows={items}
              rowKey={({ id }) => id}
              rowHref={({ id }) => aside({ worker: id })}
              columns={columns(after)}
              keys={
                can('admin:write')
                  ? {
                      q: { label: 'Quiet or resume', run: (row) => after(toggle(row)) },
                      t: { label: 'Terminate', run: (row) => after(tell(row, 'terminate')) },
                    }
                  : {}
              }
              empty={<Empty icon="workers" title="No worker on this page" />}
            />
            <Pager total={summary.total} perPage={PER_PAGE} />
            {query('worker') !== '' && <WorkerDrawer id={query('worker')} />}
          </>
        )
      }
    </Loaded>
  );
}

const toggle = (row: WorkerStatus) => tell(row, row.directive === 'running' ? 'quiet' : 'running');

function columns(after: (work: Promise<boolean>) => void): Column<WorkerStatus>[] {
  return [
    {
      id: 'id',
      label: 'Worker',
      sort: ({ id }) => id,
      render: ({ id, hostname, pid }) => (
        <>
          <a href={aside({ worker: id })}>
            <Foreign>{id}</Foreign>
          </a>
          {hostname && (
            <span class="under">
              <Foreign>{hostname}</Foreign>
              {pid !== null && `, process ${pid}`}
            </span>
          )}
        </>
      ),
    },
    {
      id: 'state',
      label: 'State',
      sort: ({ state }) => state,
      render: ({ state, directive, reported_state }) => (
        <>
          <Badge tone={TONES[state] ?? 'neutral'}>{state}</Badge>
          {directive !== 'running' && reported_state === 'running' && state !== 'stale' && (
            <span class="faint"> no heartbeat yet</span>
          )}
        </>
      ),
    },
    {
      id: 'held',
      label: 'Holds',
      end: true,
      sort: ({ active_jobs }) => active_jobs,
      render: ({ active_jobs, concurrency }) => (
        <span class="num">
          <Count value={active_jobs} />
          {concurrency !== null && <span class="faint"> / {number(concurrency)}</span>}
        </span>
      ),
    },
    {
      id: 'queues',
      label: 'Queues',
      wide: true,
      render: ({ queues }) =>
        queues.length === 0 ? <span class="faint">–</span> : <Foreign>{queues.join(', ')}</Foreign>,
    },
    {
      id: 'heartbeat',
      label: 'Last heartbeat',
      sort: ({ last_heartbeat_at }) => last_heartbeat_at,
      render: ({ last_heartbeat_at }) => <Time at={last_heartbeat_at} />,
    },
    { id: 'since', label: 'Since', wide: true, render: ({ started_at }) => <Time at={started_at} /> },
    ...actionsColumn(can('admin:write'), (row: WorkerStatus) => (
      <span class="row-actions">
        {row.state === 'stale' ? (
          <button type="button" class="small" onClick={() => after(remove(row))}>
            Remove
          </button>
        ) : (
          <>
            <button type="button" class="small" onClick={() => after(toggle(row))}>
              {row.directive === 'running' ? 'Quiet' : 'Resume'}
            </button>
            {row.directive !== 'terminate' && (
              <button type="button" class="small" onClick={() => after(tell(row, 'terminate'))}>
                Terminate
              </button>
            )}
          </>
        )}
      </span>
    )),
  ];
}

/** One worker with the jobs that it holds. */
function WorkerDrawer({ id }: { id: string }) {
  const worker = useResource((signal) => api.get<WorkerDetail>(`admin/workers/${segment(id)}`, {}, signal), [id]);
  return (
    <Drawer title={`Worker ${id}`} name="worker">
      <Loaded of={worker}>
        {(data) => (
          <>
            <Facts
              of={[
                ['State', <Badge tone={TONES[data.state] ?? 'neutral'}>{data.state}</Badge>],
                ['Id', <Id text={data.id} />],
                ['Host', data.hostname && <Foreign>{data.hostname}</Foreign>],
                ['Process', data.pid],
                ['Version', data.version && <Foreign>{data.version}</Foreign>],
                ['Jobs at once', data.concurrency],
                ['Queues', data.queues.length > 0 && <Foreign>{data.queues.join(', ')}</Foreign>],
                ['Since', <Time at={data.started_at} />],
                ['Last heartbeat', <Time at={data.last_heartbeat_at} />],
              ]}
            />
            <h3 class="held">Its jobs</h3>
            <HeldJobs jobs={data.jobs} />
          </>
        )}
      </Loaded>
    </Drawer>
  );
}

function Id({ text }: { text: string }) {
  return (
    <>
      <Foreign>{text}</Foreign>
      <Copy text={text} label="id" />
    </>
  );
}

function HeldJobs({ jobs }: { jobs: readonly LeasedJob[] }) {
  if (jobs.length === 0) return <p class="faint">None.</p>;
  return (
    <ul class="held-jobs text">
      {jobs.map(({ id, type, queue, attempt, started_at, lease_expires_at }) => (
        <li key={id}>
          <div>
            <JobLink id={id} /> <Foreign>{type}</Foreign>
          </div>
          <div class="faint">
            <QueueLink name={queue} />, attempt {number(attempt)}, began <Time at={started_at} />, leased until{' '}
            <Time at={lease_expires_at} />
          </div>
        </li>
      ))}
    </ul>
  );
}
