/** Workers that pull: their leases, and directives for them. */
import type { Directive, LeasedJob, WorkerDetail, WorkerList, WorkerStatus } from '../../../contract/workers';
import type { Action } from '../../components/actions';
import { Button } from '../../components/button';
import { Drawer } from '../../components/overlays';
import { Empty, Facts, Loaded, Stat } from '../../components/page';
import { Collection, type Column, column, countColumn, textColumn, timeColumn } from '../../components/table';
import { Badge, CountOf, Foreign, Id, JobLink, Link, None, QueueLink, Time, type Tone } from '../../components/text';
import { api, can, type Resource, useGet } from '../../core/api';
import { act, askAndAct } from '../../core/dialogs';
import { capitalized, counted, number } from '../../core/format';
import { aside, query, segment } from '../../core/router';

export const PER_PAGE = 50;

const TONES: Readonly<Record<string, Tone>> = { running: 'green', quiet: 'amber', terminate: 'violet', stale: 'red' };

const EFFECTS: Readonly<Record<Directive, string>> = {
  running: 'takes jobs again',
  quiet: 'takes no more jobs',
  terminate: 'exits when its jobs have ended',
};

async function direct({ id }: WorkerStatus, directive: Directive): Promise<boolean> {
  const work = () => api.post('admin/workers/directive', { directive, worker_id: id });
  const done = `${id} ${EFFECTS[directive]}.`;
  if (directive !== 'terminate') return act(work, done);
  const text = 'From its next heartbeat it takes no more jobs, and it exits when its running jobs have ended.';
  return askAndAct({ title: `Terminate ${id}?`, text, action: 'Terminate', danger: true }, work, done);
}

const VERBS: Readonly<Record<Directive, string>> = { quiet: 'Quiet', running: 'Resume', terminate: 'Terminate' };

function directAll(directive: Directive, count: number): Promise<boolean> {
  const question = {
    title: `${VERBS[directive]} all workers?`,
    text: `${counted(count, 'worker')}: each ${EFFECTS[directive]}.`,
    ...{ action: `Notify ${number(count)}`, danger: directive === 'terminate' },
  };
  return askAndAct(question, () => api.post('admin/workers/directive', { directive }), 'All workers were notified.');
}

function remove({ id, active_jobs }: WorkerStatus): Promise<boolean> {
  const text = `It has stopped sending heartbeats. ${active_jobs > 0 ? 'Its jobs run elsewhere at once.' : 'It holds no jobs.'}`;
  const question = { title: `Remove ${id}?`, text, action: 'Remove', danger: true };
  return askAndAct(question, () => api.del(`admin/workers/${segment(id)}`), `${id} was removed.`);
}

export const WorkerTable = ({ workers, reload }: { workers: Resource<WorkerList>; reload: () => void }) => (
  <Collection
    of={workers}
    note={({ summary }) => summary.total > 0 && <All of={summary} reload={reload} />}
    label="Workers"
    rowKey={({ id }) => id}
    rowHref={({ id }) => aside({ worker: id })}
    columns={COLUMNS}
    actions={can('admin:write') && ACTIONS}
    onDone={reload}
    perPage={PER_PAGE}
    empty={
      workers.data?.summary.total === 0 ? (
        <Empty icon="workers" title="No workers yet">
          A worker that pulls appears with its first heartbeat: call <code>runWorker</code> of{' '}
          <code>tocsin/client</code>, or <code>POST /ojs/v1/workers/heartbeat</code>. Handlers that jobs are pushed to
          are listed below.
        </Empty>
      ) : (
        <Empty icon="workers" title="No worker on this page" />
      )
    }
  >
    {() => query('worker') !== '' && <WorkerDrawer id={query('worker')} />}
  </Collection>
);

const All = ({ of: summary, reload }: { of: WorkerList['summary']; reload: () => void }) => (
  <>
    <div class="stats workers-stats">
      {(['running', 'quiet', 'terminate', 'stale'] as const).map((state) => (
        <Stat
          key={state}
          label={state === 'terminate' ? 'Terminating' : capitalized(state)}
          value={summary[state]}
          tone={state === 'stale' && summary.stale > 0 ? 'red' : ''}
        />
      ))}
    </div>
    {can('admin:write') && (
      <div class="actions all-workers">
        <span class="faint">All workers</span>
        {(Object.keys(VERBS) as Directive[]).map((directive) => (
          <Button
            label={`${VERBS[directive]} all`}
            key={directive}
            class={`small${directive === 'terminate' ? ' danger' : ''}`}
            onClick={async () => (await directAll(directive, summary.total)) && reload()}
          />
        ))}
      </div>
    )}
  </>
);

const isStale = ({ state }: WorkerStatus) => state === 'stale';

const ACTIONS: readonly Action<WorkerStatus>[] = [
  { label: 'Remove', run: remove, isFor: isStale },
  {
    label: ({ directive }) => VERBS[directive === 'running' ? 'quiet' : 'running'],
    key: ['q', 'Quiet or resume'],
    run: (row) => direct(row, row.directive === 'running' ? 'quiet' : 'running'),
    isFor: (row) => !isStale(row),
  },
  {
    label: VERBS.terminate,
    key: ['t', VERBS.terminate],
    run: (row) => direct(row, 'terminate'),
    isFor: (row) => !isStale(row) && row.directive !== 'terminate',
  },
];

const hostOf = ({ hostname, pid }: WorkerStatus) =>
  hostname && <Foreign>{`${hostname}${pid === null ? '' : `, process ${pid}`}`}</Foreign>;

const COLUMNS: readonly Column<WorkerStatus>[] = [
  textColumn('id', 'Worker', { under: hostOf }, ({ id }) => <Link to={aside({ worker: id })} text={id} />),
  textColumn('state', 'State', (row) => (
    <>
      <Badge look={[TONES[row.state] ?? 'neutral']} text={row.state} />
      {row.directive !== 'running' && row.reported_state === 'running' && !isStale(row) && (
        <span class="faint"> no heartbeat yet</span>
      )}
    </>
  )),
  countColumn('active_jobs', 'Holds', ({ active_jobs, concurrency }) => (
    <CountOf value={active_jobs} most={concurrency} />
  )),
  column('queues', 'Queues', { wide: true }, ({ queues }) =>
    queues.length === 0 ? <None /> : <Foreign>{queues.join(', ')}</Foreign>,
  ),
  timeColumn('last_heartbeat_at', 'Last heartbeat', { end: false, sort: (row) => row.last_heartbeat_at }),
  timeColumn('started_at', 'Since', { end: false, wide: true }),
];

function WorkerDrawer({ id }: { id: string }) {
  const worker = useGet<WorkerDetail>(`admin/workers/${segment(id)}`);
  return (
    <Drawer title={`Worker ${id}`} name="worker">
      <Loaded of={worker}>
        {(data) => (
          <>
            <Facts
              of={[
                ['State', <Badge look={[TONES[data.state] ?? 'neutral']} text={data.state} />],
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
