/** A queue that filters, out of those that there are. */
import { api } from '../core/api';
import { useResource } from '../core/resource';
import { SelectFilter } from './list';

export function QueueFilter() {
  const queues = useResource(
    (signal) => api.get<{ items: readonly { name: string }[] }>('admin/queues', { per_page: 100 }, signal),
    [],
  );
  return (
    <SelectFilter
      name="queue"
      label="Queue"
      all="All queues"
      options={(queues.data?.items ?? []).map(({ name }) => [name, name] as const)}
    />
  );
}
