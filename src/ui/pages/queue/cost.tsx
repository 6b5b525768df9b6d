/** What the rows of a queue cost, by job type. */
import { Stat } from '../../components/page';
import { Empty, Loaded } from '../../components/state';
import { Count, Time } from '../../components/text';
import { api } from '../../core/api';
import { useResource } from '../../core/resource';
import { type Costs, CostTable, dollars } from '../queues/costs';
import type { QueueTab } from './tab';

export function CostTab({ queue: { name }, round }: QueueTab) {
  const costs = useResource((signal) => api.get<Costs>('admin/stats/cost', { queue: name }, signal), [name, round]);
  return (
    <Loaded of={costs}>
      {(found) =>
        found.items.length === 0 ? (
          <Empty icon="jobs" title="It has cost nothing yet" />
        ) : (
          <>
            <div class="stats">
              <Stat label="Rows written" sub={found.since && <>since {<Time at={found.since} />}</>}>
                <Count value={found.total.rows_written} />
              </Stat>
              <Stat label="Their price" sub={`$${found.dollars_per_million_rows} per million rows`}>
                {dollars(found.total.dollars)}
              </Stat>
            </div>
            <CostTable costs={found} />
          </>
        )
      }
    </Loaded>
  );
}
