/** Numbers of a queue: its jobs by type and by priority, and what they cost. */
import type { Priorities } from '../../../contract/queues';
import type { Cost, TypeStats, TypeStatsList } from '../../../contract/stats';
import { Empty, Loaded } from '../../components/page';
import { Collection, column, countColumn, textColumn } from '../../components/table';
import { Duration, Link } from '../../components/text';
import { useGet } from '../../core/api';
import { number } from '../../core/format';
import { href, segment } from '../../core/router';
import { CostStats, CostTable } from '../queues/costs';
import type { QueueTab } from './tab';

export function TypesTab({ queue: { name }, round }: QueueTab) {
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

export function PrioritiesTab({ queue: { name }, round }: QueueTab) {
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

export function CostTab({ queue: { name }, round }: QueueTab) {
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
