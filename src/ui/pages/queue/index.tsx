/** One queue: how it gets on, why nothing runs, what runs in it, its settings, limits and cost. */
import type { ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Priorities } from '../../../contract/queues';
import type { Cost, Percentiles, TypeStats, TypeStatsList } from '../../../contract/stats';
import { PageActions } from '../../components/actions';
import { Empty, Loaded, openTab, PageHead, PlainTable, Section, Stat, type Tab, Tabs } from '../../components/page';
import { Collection, column, countColumn, textColumn } from '../../components/table';
import { Duration, JOB_STATES, Link } from '../../components/text';
import { can, type Resource, useGet } from '../../core/api';
import { capitalized, number } from '../../core/format';
import { useLive } from '../../core/live';
import { href, segment } from '../../core/router';
import { LimitKeys } from '../limits/keys';
import { CostStats, CostTable } from '../queues/costs';
import { type History, HistoryChart, useHistory } from '../queues/history';
import { ACTIONS, isNotable, StandingBadge } from '../queues/mode';
import { Pace } from '../queues/pace';
import type { QueueItem } from '../queues/types';
import { DangerTab } from './danger';
import { GroupsTab } from './groups';
import { SettingsTab } from './settings';
import type { QueueTab } from './tab';
import { Why } from './why';
import './queue.css';

interface QueueTabs extends Tab {
  scope?: string;
  /** Only for such queues; absent: for all. */
  isFor?: (queue: QueueItem) => boolean;
  of: ComponentType<QueueTab>;
}

const TABS: readonly QueueTabs[] = [
  { id: 'overview', label: 'Overview', of: OverviewTab },
  { id: 'types', label: 'Jobs by type', of: TypesTab },
  { id: 'priorities', label: 'Priorities', of: PrioritiesTab },
  {
    ...{ id: 'groups', label: 'Groups', of: GroupsTab },
    isFor: ({ configuration }) => configuration?.groups !== undefined,
  },
  { id: 'settings', label: 'Settings', of: SettingsTab },
  { id: 'limits', label: 'Limits', of: ({ queue }) => <LimitKeys queue={queue.name} /> },
  { id: 'cost', label: 'Cost', of: CostTab },
  { id: 'danger', label: 'Danger zone', of: DangerTab, scope: 'admin:purge' },
];

export default function QueuePage({ params: { name = '' } }: { params: Readonly<Record<string, string>> }) {
  const queue = useGet<QueueItem>(`admin/queues/${segment(name)}`, { include: 'recent' });
  const history = useHistory(name);
  const round = useRounds(name, queue, history);
  const tabs = TABS.filter(
    ({ scope, isFor }) =>
      (scope === undefined || can(scope)) && (isFor === undefined || (queue.data !== undefined && isFor(queue.data))),
  );
  const Open = tabs.find(({ id }) => id === openTab(tabs))?.of ?? OverviewTab;
  return (
    <div class="queue-page">
      <PageHead
        title={<bdi>{name}</bdi>}
        badge={queue.data && isNotable(queue.data) && <StandingBadge of={queue.data} />}
        name={name}
        up={{ href: href('queues'), text: 'Queues' }}
      >
        {queue.data && can('admin:write') && (
          <PageActions title="Queue" of={queue.data} actions={ACTIONS} onDone={queue.reload} />
        )}
      </PageHead>
      <Tabs tabs={tabs} />
      <Loaded of={queue}>
        {(data) => <Open queue={data} history={history} round={round} reload={queue.reload} />}
      </Loaded>
    </div>
  );
}

/** Asks the queue after its events: it is awake then. @returns a number that rises with each answer */
function useRounds(name: string, queue: Resource<QueueItem>, { add, points }: History): number {
  const [round, setRound] = useState(0);
  const before = useRef<QueueItem>(undefined);
  useEffect(() => {
    if (before.current && queue.data) {
      add(before.current, queue.data);
      setRound((count) => count + 1);
    }
    before.current = queue.data;
  }, [queue.data]);
  useLive(`queue:${name}`, {
    onEvents: queue.reload,
    onGap: () => {
      // The points that are loaded then have what changed since.
      before.current = undefined;
      queue.reload();
      points.reload();
      setRound((count) => count + 1);
    },
  });
  return round;
}

function OverviewTab({ queue, history, round, reload }: QueueTab) {
  const { name, counts, concurrency } = queue;
  return (
    <>
      <div class="stats" data-testid="states">
        {JOB_STATES.filter((state) => counts[state] > 0 || !['pending', 'cancelled'].includes(state)).map((state) => (
          <Stat
            key={state}
            label={capitalized(state)}
            value={counts[state]}
            href={href('jobs', { queue: name, state })}
            sub={state === 'active' && concurrency.limit !== null && `of ${number(concurrency.limit)} at once`}
          />
        ))}
      </div>
      <Why queue={queue} round={round} reload={reload} />
      <Section title="Pace">
        <div class="stats">
          <Pace of={[queue]} />
        </div>
      </Section>
      <HistoryChart history={history} />
      <Section title="Durations">
        <PlainTable
          label="Durations"
          head={['Last half hour', 'p50', 'p95', 'p99']}
          rows={[timesOf('Waiting for a turn', queue.queue_time_ms), timesOf('Running', queue.latency_ms)]}
          end={1}
        />
      </Section>
    </>
  );
}

const timesOf = (label: string, { p50, p95, p99 }: Percentiles) => [
  label,
  ...[p50, p95, p99].map((ms) => <Duration ms={ms} />),
];

function TypesTab({ queue: { name }, round }: QueueTab) {
  const types = useGet<TypeStatsList>('admin/stats/types', { queue: name }, round);
  const times = (id: 'duration_ms' | 'queue_time_ms', part: 'p50' | 'p95', label: string) =>
    column<TypeStats>(`${id}.${part}`, label, { end: true, sort: (row) => row[id][part] ?? -1 }, (row) => (
      <Duration ms={row[id][part]} />
    ));
  const hrefOf = ({ type }: Pick<TypeStats, 'type'>) => href('jobs', { queue: name, type });
  return (
    <Collection
      of={types}
      label="Jobs by type"
      rowKey={({ type }) => type}
      rowHref={hrefOf}
      columns={[
        textColumn('type', 'Type', (row) => <Link to={hrefOf(row)} text={row.type} />),
        countColumn('enqueued', 'Enqueued'),
        countColumn('completed', 'Completed'),
        countColumn('failed', 'Failed'),
        countColumn('retried', 'Retried', { wide: true }),
        countColumn('discarded', 'Discarded'),
        countColumn('expired', 'Expired', { wide: true }),
        times('queue_time_ms', 'p50', 'Waits p50'),
        times('queue_time_ms', 'p95', 'Waits p95'),
        times('duration_ms', 'p50', 'Runs p50'),
        times('duration_ms', 'p95', 'Runs p95'),
      ]}
      empty={<Empty icon="jobs" title="No jobs counted yet" text="A type appears with its first job." />}
    />
  );
}

function PrioritiesTab({ queue: { name }, round }: QueueTab) {
  const priorities = useGet<Priorities>(`queues/${segment(name)}/priority-stats`, {}, round);
  return (
    <Loaded of={priorities}>
      {({ distribution }) => {
        const most = Math.max(1, ...distribution.map(({ count }) => count));
        const highestFirst = [...distribution].sort((a, b) => b.priority - a.priority);
        return distribution.length === 0 ? (
          <Empty icon="jobs" title="No job waits or runs" />
        ) : (
          <ul class="card" aria-label="Jobs by priority, highest first">
            {highestFirst.map(({ priority, count }) => (
              <li key={priority} class="priority-bar">
                <span>
                  <span class="faint">at</span> {number(priority)}
                </span>
                <i style={{ width: `${(100 * count) / most}%` }} />
                <span>{number(count)}</span>
              </li>
            ))}
          </ul>
        );
      }}
    </Loaded>
  );
}

function CostTab({ queue: { name }, round }: QueueTab) {
  const costs = useGet<Cost>('admin/stats/cost', { queue: name }, round);
  return (
    <Loaded of={costs}>
      {(found) =>
        found.items.length === 0 ? (
          <Empty icon="jobs" title="No cost yet" />
        ) : (
          <>
            <div class="stats">
              <CostStats of={found} />
            </div>
            <CostTable costs={found} />
          </>
        )
      }
    </Loaded>
  );
}
