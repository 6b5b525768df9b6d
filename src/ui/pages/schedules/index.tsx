/** All schedules: when each fires next, how it went, whether it is stopped. */
import { useState } from 'preact/hooks';
import type { CronExecution, CronHistory, CronItems, CronSkipped, CronStatus } from '../../../contract/cron';
import { Actions, NewButton } from '../../components/actions';
import { JsonSection } from '../../components/json';
import { type Filter, FilterBar } from '../../components/list';
import { Drawer } from '../../components/overlays';
import { Empty, Facts, Loaded, PageHead, PlainTable, Section } from '../../components/page';
import { Collection, type Column, column, countColumn, textColumn, timeColumn } from '../../components/table';
import { Badge, Count, Foreign, JobLink, Link, type Look, QueueLink, Time } from '../../components/text';
import { api, can, useGet, useResource } from '../../core/api';
import { now } from '../../core/clock';
import { duration, moment, number } from '../../core/format';
import { useListUpdates } from '../../core/list-updates';
import { useLive } from '../../core/live';
import { aside, href, pageNumber, query, segment } from '../../core/router';
import { describe } from './describe';
import { ScheduleForm } from './form';
import { ACTIONS, ALL_ACTIONS, MISSES, OVERLAPS, pathOf, REASONS } from './types';
import './page.css';

const PER_PAGE = 100;

const FILTERS: readonly Filter[] = [
  { name: 'q', label: 'Filter by name, queue or type', chip: 'Text' },
  {
    name: 'status',
    label: 'State',
    choice: ['Any state', { active: 'Active', paused: 'Paused', completed: 'Completed' }],
  },
];

export default function SchedulesPage() {
  const page = pageNumber();
  const schedules = useGet<CronItems>('crons', { page, per_page: PER_PAGE });
  const [fired, setFired] = useState(0);

  const { changed } = useListUpdates<CronStatus, CronItems, CronStatus>(schedules, {
    keyOf: nameOf,
    about: ({ event, data }) => (event.startsWith('cron.') ? String(data.cron_name) : undefined),
    ask: (name) => api.get(pathOf(name)),
    isNew: (names) => names.length > 0,
  });
  const changedHere = () => {
    schedules.reload();
    setFired((count) => count + 1);
  };
  const mayWrite = can('data:write');
  return (
    <div class="schedules-page">
      <PageHead title="Schedules" sub={schedules.data && <>{schedules.data.pagination.total} in all</>}>
        <NewButton label="New schedule" scope="data:write" edit=":new" />
      </PageHead>
      <FilterBar of={FILTERS} />
      <Collection
        of={schedules}
        isWanted={isWanted}
        label="Schedules"
        columns={COLUMNS}
        rowKey={nameOf}
        nameOf={nameOf}
        rowHref={({ name }) => aside({ open: name })}
        changed={changed}
        actions={mayWrite && ACTIONS}
        onDone={changedHere}
        perPage={PER_PAGE}
        unmatched={schedules.data?.items.length !== 0 && 'No matching schedules'}
        empty={
          <Empty icon="schedules" title="No schedules yet">
            A schedule enqueues a job repeatedly. Create one here, or with <code>POST /ojs/v1/cron</code>.
          </Empty>
        }
      />
      {query('open') && <ScheduleDrawer name={query('open')} round={fired} onChanged={changedHere} />}
      {mayWrite && query('edit') && <ScheduleForm name={query('edit')} onSaved={changedHere} />}
    </div>
  );
}

function isWanted({ name, queue, type, status }: CronStatus): boolean {
  const text = query('q').trim().toLowerCase();
  const state = query('status');
  return (
    (text === '' || [name, queue, type].some((one) => one.toLowerCase().includes(text))) &&
    (state === '' || status === state)
  );
}

const nameOf = ({ name }: CronStatus) => name;
const time = (at: string | null, otherwise: number) => (at === null ? otherwise : Date.parse(at));

const COLUMNS: readonly Column<CronStatus>[] = [
  textColumn(
    'name',
    'Schedule',
    { under: ({ description: text }) => text && <Foreign>{text}</Foreign> },
    ({ name }) => <Link to={aside({ open: name })} text={name} />,
  ),
  textColumn('status', 'State', (row) => <ScheduleState of={row} />),
  column('when', 'When', { under: (row) => describe(row.expression) }, ({ expression, timezone }) => (
    <>
      <code class="num">{expression}</code> <span class="faint num">{timezone}</span>
    </>
  )),
  textColumn('type', 'Job', { id: 'job', wide: true, under: ({ queue }) => <>in {<QueueLink name={queue} />}</> }),
  timeColumn('last_run_at', 'Last run', { sort: ({ last_run_at: at }) => -time(at, 0) }),
  timeColumn(
    'next_run_at',
    'Next run',
    { sort: ({ next_run_at: at }) => time(at, Number.MAX_SAFE_INTEGER) },
    ({ next_run_at: at, enabled }) => <Time at={enabled ? at : null} />,
  ),
  countColumn('run_count', 'Runs', { wide: true }),
  countColumn('skipped_count', 'Skipped', { wide: true, tone: 'amber' }),
];

/** One schedule: its next runs in both zones, how its runs went, which it skipped. */
function ScheduleDrawer({ name, round, onChanged }: { name: string; round: number; onChanged: () => void }) {
  const one = useResource(
    async (signal) => {
      const [schedule, history] = await Promise.all([
        api.get<CronStatus>(pathOf(name), undefined, signal),
        api.get<CronHistory>(`${pathOf(name)}/history`, undefined, signal),
      ]);
      return { schedule, history };
    },
    [name, round],
  );
  const shown = one.data;
  const jobs = new Set(shown?.history.executions.map(({ job_id }) => job_id));
  useLive(shown && `queue:${shown.schedule.queue}`, {
    onEvents: (events) => {
      if (events.some(({ data }) => data.cron_name === name || jobs.has(String(data.job_id)))) one.reload();
    },
    onGap: one.reload,
  });
  return (
    <Drawer title={name}>
      <Loaded of={one}>
        {({ schedule, history }) => (
          <>
            <Actions scope="data:write" of={schedule} actions={ALL_ACTIONS} onDone={onChanged} />
            <About of={schedule} />
            <Section title="Next runs">
              <NextRuns of={schedule} />
            </Section>
            <Section title="Last runs">
              <Runs of={history.executions} />
            </Section>
            {history.skipped.length > 0 && <Skips of={history.skipped} />}
            <JsonSection title="Job" value={schedule.job_template} />
          </>
        )}
      </Loaded>
    </Drawer>
  );
}

const STATES: Readonly<Record<CronStatus['status'], Look>> = {
  active: ['green', 'play'],
  paused: ['amber', 'pause'],
  completed: ['neutral', 'check'],
};

const ScheduleState = ({ of: { status } }: { of: CronStatus }) => <Badge look={STATES[status]} text={status} />;

function About({ of: schedule }: { of: CronStatus }) {
  const { description, expression, timezone, overlap_policy, missed_policy, max_catchup: most, limit } = schedule;
  return (
    <>
      {description && (
        <p>
          <Foreign>{description}</Foreign>
        </p>
      )}
      <Facts
        of={[
          ['State', <ScheduleState of={schedule} />],
          [
            'When',
            <>
              <code>{expression}</code> {timezone}
              <small class="under">{describe(expression)}</small>
            </>,
          ],
          ['Job', <Foreign>{schedule.type}</Foreign>],
          ['Queue', <QueueLink name={schedule.queue} />],
          ['If the previous job has not ended', OVERLAPS[overlap_policy] ?? overlap_policy],
          [
            'Missed fires',
            `${MISSES[missed_policy] ?? missed_policy}${most === undefined ? '' : `, at most ${number(most)}`}`,
          ],
          ['Runs', <Count value={schedule.run_count} exact />],
          ['Skipped', <Count value={schedule.skipped_count} exact />],
          ['Waiting fires', schedule.waiting > 0 && <Count value={schedule.waiting} exact />],
          ['Ends after', limit !== undefined && <>{number(limit)} fires</>],
          ['From', schedule.start_at && <Time at={schedule.start_at} />],
          ['Until', schedule.end_at && <Time at={schedule.end_at} />],
          ['Group', schedule.group],
          ['Created', <Time at={schedule.created_at} />],
        ]}
      />
    </>
  );
}

const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone;

const inZone = (timeZone: string, withSeconds: boolean) =>
  new Intl.DateTimeFormat('en-GB', {
    ...{ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' },
    ...{ hour: '2-digit', minute: '2-digit', ...(withSeconds && { second: '2-digit' }), timeZone },
  });

/** The next five fires, as clocks in its zone and here show them. */
function NextRuns({ of: { timezone, next_fires: fires = [], enabled } }: { of: CronStatus }) {
  if (fires.length === 0 || !enabled) {
    return <p class="faint">{enabled ? 'None: the schedule has ended.' : 'None while it is paused.'}</p>;
  }
  const withSeconds = fires.some((at) => Date.parse(at) % 60_000 > 0);
  const zones = timezone === HERE ? [timezone] : [timezone, HERE];
  const rows = fires.map((at) => [
    ...zones.map((zone) => inZone(zone, withSeconds).format(Date.parse(at))),
    <Time at={at} />,
  ]);
  const head = [`In ${timezone}`, ...zones.slice(1).map((here) => `Here, ${here}`), 'When'];
  return <PlainTable label="Next runs" class="next-runs" head={head} rows={rows} end={zones.length} />;
}

const WORDS: Readonly<Record<string, string>> = {
  completed: 'completed',
  discarded: 'failed',
  cancelled: 'cancelled',
  active: 'runs',
};

function Runs({ of: executions }: { of: readonly CronExecution[] }) {
  if (executions.length === 0) return <Empty icon="schedules" title="No runs yet" />;
  const runs = executions
    .map((run) => ({ ...run, ms: run.started_at && run.completed_at ? spanOf(run.started_at, run.completed_at) : 0 }))
    .sort((a, b) => Date.parse(a.triggered_at) - Date.parse(b.triggered_at));
  const most = Math.max(1, ...runs.map(({ ms }) => ms));
  const byState = Map.groupBy(runs, ({ state }) => state);
  return (
    <>
      <ol class="runs" aria-label="Last runs">
        {runs.map(({ job_id: job, state, trigger, triggered_at: at, ms }) => {
          const text = `${state}${ms > 0 ? ` in ${duration(ms)}` : ''}, ${moment(Date.parse(at), now.value)}${trigger === 'manual' ? ', triggered by hand' : ''}`;
          return (
            <li key={job}>
              <a
                class={`run ${state}`}
                href={href(`jobs/${segment(job)}`)}
                title={text}
                style={{ height: `${Math.round(10 + 38 * (ms / most))}px` }}
              >
                <span class="hidden">{text}</span>
              </a>
            </li>
          );
        })}
      </ol>
      <p class="faint">
        {[...byState].map(([state, some]) => `${number(some.length)} ${WORDS[state] ?? state}`).join(', ')}; the longest
        took {duration(most)}
      </p>
    </>
  );
}

const spanOf = (from: string, to: string) => Math.max(0, Date.parse(to) - Date.parse(from));

const Skips = ({ of: skips }: { of: readonly CronSkipped[] }) => (
  <Section title="Skipped">
    <ul class="skips">
      {[...skips].reverse().map(({ scheduled_at: at, scheduled_until: until, reason, message, job_id: job }) => (
        <li key={`${at} ${reason}`}>
          <Time at={at} />
          {until && <Time before=" to " at={until} />}
          <span>
            {REASONS[reason] ?? reason}
            {message && <Foreign before=": ">{message}</Foreign>}
          </span>
          {job && <JobLink id={job} />}
        </li>
      ))}
    </ul>
  </Section>
);
