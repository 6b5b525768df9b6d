/** What has run in a queue, by job type. */
import type { TypeStats, TypeStatsList } from '../../../contract/stats';
import { Collection } from '../../components/collection';
import { Empty } from '../../components/state';
import { countColumn, textColumn } from '../../components/table';
import { Duration, Link } from '../../components/text';
import { href } from '../../core/base';
import { useGet } from '../../core/resource';
import type { QueueTab } from './tab';

export function TypesTab({ queue: { name }, round }: QueueTab) {
  const types = useGet<TypeStatsList>('admin/stats/types', { queue: name }, round);
  const times = (id: 'duration_ms' | 'queue_time_ms', part: 'p50' | 'p95', label: string) => ({
    ...{ id: `${id}.${part}`, label, end: true },
    sort: (row: TypeStats) => row[id][part] ?? -1,
    render: (row: TypeStats) => <Duration ms={row[id][part]} />,
  });
  const hrefOf = ({ type }: Pick<TypeStats, 'type'>) => href('jobs', { queue: name, type });
  return (
    <Collection
      of={types}
      label="Jobs by type"
      rowKey={({ type }) => type}
      rowHref={hrefOf}
      columns={[
        textColumn('type', 'Type', { render: (row) => <Link to={hrefOf(row)} text={row.type} /> }),
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
