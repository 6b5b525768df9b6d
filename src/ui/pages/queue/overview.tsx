/** How a queue gets on: counts, what holds its jobs back, pace over time, how long jobs wait and take. */
import type { Percentiles } from '../../../contract/stats';
import { JOB_STATES } from '../../components/badge';
import { Section, Stat } from '../../components/page';
import { PlainTable } from '../../components/table';
import { Duration } from '../../components/text';
import { capitalized, number } from '../../core/format';
import { href } from '../../core/router';
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
            value={counts[state]}
            href={href('jobs', { queue: name, state })}
            {...(state === 'active' &&
              concurrency.limit !== null && { sub: `of ${number(concurrency.limit)} at once` })}
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
