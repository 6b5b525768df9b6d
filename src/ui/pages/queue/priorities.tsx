import type { Priorities } from '../../../contract/queues';
import { Empty, Loaded } from '../../components/state';
import { segment } from '../../core/base';
import { number } from '../../core/format';
import { useGet } from '../../core/resource';
import type { QueueTab } from './tab';

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
