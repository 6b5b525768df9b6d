/** How everything gets on: jobs by state, pace, what is wrong, what it costs. */
import type { Cost } from '../../../contract/stats';
import { Empty, Loaded, PageHead, Section, Skeleton, Stat } from '../../components/page';
import { column, DataTable } from '../../components/table';
import { Badge, Count, Foreign, JOB_STATES, Link, None, QueueLink, sentence, Time } from '../../components/text';
import { api, useGet, useResource } from '../../core/api';
import { capitalized, counted, duration, number } from '../../core/format';
import { href, segment } from '../../core/router';
import { CostStats, CostTable, dollars } from '../queues/costs';
import { FirstJob } from '../queues/first-job';
import { HistoryChart, useHistory } from '../queues/history';
import { isNotable, StandingBadge } from '../queues/mode';
import { Pace, paceColumn, paceOf } from '../queues/pace';
import { useMinute } from '../queues/recent';
import type { QueueItem, QueueList } from '../queues/types';
import { useQueueUpdates } from '../queues/updates';
import { Attention, useAttention } from './attention';
import { MaintenanceBanner, useMaintenance } from './maintenance';
import './overview.css';
import { useState } from 'preact/hooks';
import type { FailureGroups } from '../../../contract/failures';
import { isIntended } from '../../components/error';
import { Newer } from '../../components/list';
import type { LiveEvent } from '../../core/live';

const PER_PAGE = 100;

/** Queues asked at most; the numbers of more are those of these. */
const MAX_PAGES = 2;

const BUSIEST = 8;

async function loadQueues(signal: AbortSignal): Promise<QueueList> {
  const page = (number: number) =>
    api.get<QueueList>('admin/queues', { page: number, per_page: PER_PAGE, include: 'recent' }, signal);
  const all = await page(1);
  for (let next = 2; next <= MAX_PAGES && all.items.length < all.total; next++) {
    all.items = [...all.items, ...(await page(next)).items];
  }
  return all;
}

export default function OverviewPage() {
  const queues = useResource(loadQueues, []);
  const history = useHistory();
  const maintenance = useMaintenance();
  const attention = useAttention();
  const failures = useFailures();
  const changed = useQueueUpdates(queues, {
    belongs: () => (queues.data?.items.length ?? 0) < MAX_PAGES * PER_PAGE,
    onChange: history.add,
    onEvents: (events) => {
      attention.onEvents(events);
      failures.onEvents(events);
    },
    onGap: () => {
      history.points.reload();
      failures.groups.reload();
      attention.checks.reload();
    },
  });
  return (
    <div class="overview-page">
      <PageHead title="Overview" sub={<Extent of={queues.data} />} />
      <MaintenanceBanner of={maintenance} />
      <Loaded of={queues} loading={<Skeleton rows={2} height={78} />}>
        {(data) =>
          data.total === 0 ? (
            <FirstJob title="No job yet" />
          ) : (
            <>
              <Attention of={attention} queues={data} />
              <Numbers queues={data.items} />
              <HistoryChart history={history} />
              <div class="overview-parts">
                <Busiest queues={data.items} changed={changed} />
                <NewestFailures of={failures} />
              </div>
              <CostSummary />
            </>
          )
        }
      </Loaded>
    </div>
  );
}

function Extent({ of: list }: { of: QueueList | undefined }) {
  if (!list) return <>…</>;
  const { items, total } = list;
  const stopped = items.filter(({ status }) => status !== 'active').length;
  return (
    <>
      {counted(total, 'queue')}
      {stopped > 0 && sentence`, ${<a href={href('queues', { mode: 'paused' })}>{number(stopped)} not active</a>}`}
      {items.length < total && `; the numbers cover the first ${number(items.length)}`}
    </>
  );
}

function Numbers({ queues }: { queues: readonly QueueItem[] }) {
  const slowest = Math.max(...queues.map(({ queue_time_ms: { p95 } }) => p95 ?? -1));
  return (
    <>
      <div class="stats" data-testid="states">
        {JOB_STATES.filter((state) => state !== 'pending' && state !== 'cancelled').map((state) => (
          <Stat
            key={state}
            label={capitalized(state)}
            value={queues.reduce((sum, { counts }) => sum + counts[state], 0)}
            href={href('jobs', { state })}
          />
        ))}
      </div>
      <div class="stats second" data-testid="rates">
        <Pace of={queues} />
        <Stat label="Queue time" value={slowest < 0 ? <None /> : duration(slowest)} sub="p95, slowest queue" />
      </div>
    </>
  );
}

const openIn = ({ counts }: QueueItem) => counts.available + counts.active + counts.retryable;

function Busiest({ queues, changed }: { queues: readonly QueueItem[]; changed: ReadonlySet<string> }) {
  const minute = useMinute();
  const order = (a: QueueItem, b: QueueItem) => openIn(b) - openIn(a) || paceOf(b, minute) - paceOf(a, minute);
  const busiest = [...queues].sort(order).slice(0, BUSIEST);
  return (
    <Section title="Busiest queues" actions={<a href={href('queues')}>All queues</a>}>
      <DataTable
        label="Busiest queues"
        rows={busiest}
        rowKey={({ name }) => name}
        rowHref={({ name }) => href(`queues/${segment(name)}`)}
        changed={changed}
        columns={[
          column<QueueItem>('name', 'Queue', (row) => (
            <>
              <QueueLink name={row.name} /> {isNotable(row) && <StandingBadge of={row} />}
            </>
          )),
          column<QueueItem>('waits', 'Waiting', { end: true }, ({ counts }) => <Count value={counts.available} />),
          column<QueueItem>('runs', 'Running', { end: true }, ({ counts }) => <Count value={counts.active} />),
          paceColumn('pace', minute, { width: 72 }),
        ]}
        empty={null}
      />
    </Section>
  );
}

const DEAREST = 5;

function CostSummary() {
  const costs = useGet<Cost>('admin/stats/cost');
  return (
    <Section title="Cost">
      <Loaded of={costs} loading={<Skeleton rows={1} height={78} />}>
        {(found) => (
          <>
            <div class="stats">
              <CostStats of={found} />
              <Stat label="Per million jobs" value={dollars(perMillion(found))} sub="average of all jobs" />
            </div>
            <CostTable costs={{ ...found, items: found.items.slice(0, DEAREST) }} withQueue />
          </>
        )}
      </Loaded>
    </Section>
  );
}

function perMillion({ items, total }: Cost): number | null {
  const jobs = items.reduce((sum, item) => sum + item.jobs, 0);
  return jobs === 0 ? null : (total.dollars / jobs) * 1_000_000;
}

const SHOWN = 5;

function useFailures() {
  const [newer, setNewer] = useState(0);
  const groups = useGet<Pick<FailureGroups, 'items'>>('admin/failures', { sort: 'last_seen', per_page: SHOWN });
  const show = () => {
    setNewer(0);
    groups.reload();
  };
  const onEvents = (events: readonly LiveEvent[]) => {
    const failed = events.filter(({ event }) => event === 'job.retrying' || event === 'job.discarded').length;
    if (failed === 0) return;
    // Nothing moves below the eyes of a reader; where there is nothing yet, nothing can.
    if (groups.data?.items.length === 0) groups.reload();
    else setNewer((count) => count + failed);
  };
  return { groups, newer, show, onEvents };
}

const NewestFailures = ({ of: { groups, newer, show } }: { of: ReturnType<typeof useFailures> }) => (
  <Section title="Newest failures" actions={<a href={href('failures', { sort: 'last_seen' })}>All failures</a>}>
    <Newer count={newer} onShow={show} />
    <Loaded of={groups}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty icon="check" title="No failures" />
        ) : (
          <ul class="failure-list card">
            {items.map(({ fingerprint, type, error, count, last_seen_at, sample }) => (
              <li key={fingerprint}>
                <div class="line">
                  <Link to={href('failures', { group: fingerprint })} text={type} />
                  <span class="faint">
                    <Badge look={[isIntended(error) ? 'neutral' : 'red']} text={number(count)} />{' '}
                    <Time at={last_seen_at} />
                  </span>
                </div>
                <div class="message faint">
                  <Foreign>{sample.message || error.message}</Foreign>
                </div>
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  </Section>
);
