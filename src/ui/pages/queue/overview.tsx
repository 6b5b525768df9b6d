/** How a queue gets on: counts, what holds its jobs back, pace over time, how long jobs wait and take. */

import type { Percentiles } from '../../../contract/stats';
import { JOB_STATES } from '../../components/badge';
import { Section, Stat } from '../../components/page';
import { Count, Duration } from '../../components/text';
import { href } from '../../core/base';
import { capitalized, number } from '../../core/format';
import { HistoryChart } from '../queues/history';
import { Pace } from '../queues/pace';
import type { QueueTab } from './tab';
import { Why } from './why';

export function OverviewTab({ queue, history, round, reload }: QueueTab) {
  const { name, counts, concurrency } = queue;
  return (
    <>
      <div class="stats" data-testid="states">
        {JOB_STATES.filter((state) => counts[state] > 0 || !['pending', 'cancelled'].includes(state)).map((state) => (
          <Stat
            key={state}
            label={capitalized(state)}
            href={href('jobs', { queue: name, state })}
            {...(state === 'active' &&
              concurrency.limit !== null && { sub: `of ${number(concurrency.limit)} at once` })}
          >
            <Count value={counts[state]} />
          </Stat>
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
        <div class="table-frame">
          <table class="table plain times" aria-label="Durations">
            <thead>
              <tr>
                <th scope="col">Last half hour</th>
                <th scope="col" class="end">
                  p50
                </th>
                <th scope="col" class="end">
                  p95
                </th>
                <th scope="col" class="end">
                  p99
                </th>
              </tr>
            </thead>
            <tbody>
              <Times label="Waiting for a turn" of={queue.queue_time_ms} />
              <Times label="Running" of={queue.latency_ms} />
            </tbody>
          </table>
        </div>
      </Section>
    </>
  );
}

function Times({ label, of: times }: { label: string; of: Percentiles }) {
  return (
    <tr>
      <td class="main">{label}</td>
      {(['p50', 'p95', 'p99'] as const).map((part) => (
        <td key={part} class="end" data-label={part}>
          <Duration ms={times[part]} />
        </td>
      ))}
    </tr>
  );
}
