import type { Cost } from '../../../contract/stats';
import { Section, Stat } from '../../components/page';
import { Loaded, Skeleton } from '../../components/state';
import { useGet } from '../../core/resource';
import { CostStats, CostTable, dollars } from '../queues/costs';

const DEAREST = 5;

export function CostSummary() {
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
