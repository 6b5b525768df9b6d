/** What the rows of a queue cost, by job type. */
import type { Cost } from '../../../contract/stats';
import { Empty, Loaded } from '../../components/state';
import { useGet } from '../../core/resource';
import { CostStats, CostTable } from '../queues/costs';
import type { QueueTab } from './tab';

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
