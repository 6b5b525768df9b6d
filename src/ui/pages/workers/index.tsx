/** Who runs jobs: workers that pull, known from their heartbeats, and the handlers that jobs are pushed to. */
import { useRef } from 'preact/hooks';
import type { TargetDetail, TargetList, TargetResumed, TargetState, TargetStatus } from '../../../contract/targets';
import type { Directive, LeasedJob, WorkerDetail, WorkerList, WorkerStatus } from '../../../contract/workers';
import type { Action } from '../../components/actions';
import { Button } from '../../components/button';
import { Drawer } from '../../components/overlays';
import { Empty, Facts, Loaded, PageHead, Section, Stat } from '../../components/page';
import { Collection, type Column, column, countColumn, textColumn, timeColumn } from '../../components/table';
import { Badge, CountOf, Foreign, Id, JobLink, Link, None, QueueLink, Time, type Tone } from '../../components/text';
import { api, can, type Resource, useGet } from '../../core/api';
import { act, askAndAct, toast } from '../../core/dialogs';
import { capitalized, counted, number } from '../../core/format';
import { useKeys } from '../../core/keyboard';
import { useLive } from '../../core/live';
import { aside, pageNumber, query, segment } from '../../core/router';
import './workers.css';

/** Minimum interval between reads of the workers while jobs run, ms. */
const EVERY_MS = 2_000;

export default function WorkersPage() {
  const page = pageNumber();
  const workers = useGet<WorkerList>('admin/workers', { page, per_page: PER_PAGE });
  const targets = useGet<TargetList>('admin/targets', { limit: 200 });
  const askedAt = useRef(0);
  const reload = () => {
    askedAt.current = Date.now();
    workers.reload();
  };
  const both = () => {
    reload();
    targets.reload();
  };
  useLive('all', {
    onEvents: (events) => {
      const has = (begin: string) => events.some(({ event }) => event.startsWith(begin));
      // A worker that begins, ends or falls silent is shown at once; numbers of jobs follow.
      if (has('worker.') || (has('job.') && Date.now() - askedAt.current > EVERY_MS)) reload();
      if (has('queue.push_')) targets.reload();
    },
    onGap: both,
  });
  useKeys('Workers', { u: { label: 'Reload', run: both } });
  return (
    <div class="workers-page">
      <PageHead title="Workers" sub="Workers that pull jobs, and handlers that jobs are pushed to">
        <Button label="Reload" onClick={both} />
      </PageHead>
      <WorkerTable workers={workers} reload={reload} />
      <Section title="Push targets">
        <TargetTable targets={targets} />
      </Section>
    </div>
  );
}

const PER_PAGE = 50;

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

const WorkerTable = ({ workers, reload }: { workers: Resource<WorkerList>; reload: () => void }) => (
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

const CIRCUITS: Readonly<Record<TargetState, Tone>> = { up: 'green', paused: 'amber', stopped: 'red' };

const Circuit = ({ state }: { state: TargetState }) => <Badge look={[CIRCUITS[state]]} text={state} />;

/** Asks a handler what it takes, in every queue that has stopped calling it; one that is up has nothing to be tried. */
const tryNow = ({ name }: TargetStatus): Promise<boolean> =>
  act(async () => {
    const { tried, resumed } = await api.post<TargetResumed>(`admin/targets/${segment(name)}/resume`);
    if (tried === 0) toast(`No queue has stopped calling ${name}.`);
    else if (resumed === tried) toast(`${name} is up again in ${queues(resumed)}.`);
    else toast(`${name} is still down in ${queues(tried - resumed)}.`, { kind: 'error' });
  });

const queues = (count: number) => counted(count, 'queue');

const TARGET_ACTIONS: readonly Action<TargetStatus>[] = [
  { label: ({ state }) => (state === 'up' ? 'Try' : 'Resume'), key: ['t', 'Call the handler now'], run: tryNow },
];

const TARGET_COLUMNS: readonly Column<TargetStatus>[] = [
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

/** Handlers: whether they take calls, and what went wrong when they do not. */
const TargetTable = ({ targets }: { targets: Resource<TargetList> }) => (
  <Collection
    of={targets}
    label="Push targets"
    rowKey={({ name }) => name}
    rowHref={({ name }) => aside({ target: name })}
    actions={can('admin:write') && TARGET_ACTIONS}
    columns={TARGET_COLUMNS}
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
