/** One schedule in a drawer: its next runs in both zones, how its runs went, which it skipped. */

import type { CronExecution, CronHistory, CronSkipped, CronStatus } from '../../../contract/cron';
import { Actions } from '../../components/actions';
import { JsonSection } from '../../components/json';
import { Drawer } from '../../components/overlays';
import { Empty, Facts, Loaded, Section } from '../../components/page';
import { PlainTable } from '../../components/table';
import { Badge, Count, Foreign, JobLink, type Look, QueueLink, Time } from '../../components/text';
import { api, useResource } from '../../core/api';
import { now } from '../../core/clock';
import { duration, moment, number } from '../../core/format';
import { useLive } from '../../core/live';
import { href, segment } from '../../core/router';
import { describe } from './describe';
import { ALL_ACTIONS, MISSES, OVERLAPS, pathOf, REASONS } from './types';

export function ScheduleDrawer({ name, round, onChanged }: { name: string; round: number; onChanged: () => void }) {
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

export const ScheduleState = ({ of: { status } }: { of: CronStatus }) => <Badge look={STATES[status]} text={status} />;

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
