/** What has run in a queue, by job type. */
import type { TypeStats, TypeStatsList } from '../../../contract/stats';
import { Empty, Loaded } from '../../components/state';
import { DataTable } from '../../components/table';
import { Count, Duration, Foreign } from '../../components/text';
import { api } from '../../core/api';
import { href } from '../../core/base';
import { useResource } from '../../core/resource';
import type { QueueTab } from './tab';

export function TypesTab({ queue: { name }, round }: QueueTab) {
  const types = useResource(
    (signal) => api.get<TypeStatsList>('admin/stats/types', { queue: name }, signal),
    [name, round],
  );
  const count = (id: 'enqueued' | 'completed' | 'failed' | 'retried' | 'discarded' | 'expired', label: string) => ({
    ...{ id, label, end: true, wide: id === 'expired' || id === 'retried' },
    sort: (row: TypeStats) => row[id],
    render: (row: TypeStats) => <Count value={row[id]} />,
  });
  const times = (id: 'duration_ms' | 'queue_time_ms', part: 'p50' | 'p95', label: string) => ({
    ...{ id: `${id}.${part}`, label, end: true },
    sort: (row: TypeStats) => row[id][part] ?? -1,
    render: (row: TypeStats) => <Duration ms={row[id][part]} />,
  });
  return (
    <Loaded of={types}>
      {({ items }) => (
        <DataTable
          label="Jobs by type"
          rows={items}
          rowKey={({ type }) => type}
          rowHref={({ type }) => href('jobs', { queue: name, type })}
          columns={[
            {
              id: 'type',
              label: 'Type',
              sort: ({ type }) => type,
              render: ({ type }) => (
                <a href={href('jobs', { queue: name, type })}>
                  <Foreign>{type}</Foreign>
                </a>
              ),
            },
            count('enqueued', 'Enqueued'),
            count('completed', 'Completed'),
            count('failed', 'Failed'),
            count('retried', 'Retried'),
            count('discarded', 'Discarded'),
            count('expired', 'Expired'),
            times('queue_time_ms', 'p50', 'Waits p50'),
            times('queue_time_ms', 'p95', 'Waits p95'),
            times('duration_ms', 'p50', 'Runs p50'),
            times('duration_ms', 'p95', 'Runs p95'),
          ]}
          empty={
            <Empty icon="jobs" title="No jobs counted yet">
              A type appears with its first job.
            </Empty>
          }
        />
      )}
    </Loaded>
  );
}
