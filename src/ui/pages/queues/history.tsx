/** What happened over time, as a chart that continues with the queues' events. */
import { useMemo } from 'preact/hooks';
import type { Minute } from '../../../contract/stats';
import { Chart } from '../../components/chart';
import { Loaded, Section, Skeleton } from '../../components/page';
import { useGet } from '../../core/api';
import { query, withQuery } from '../../core/router';
import { MINUTE_MS, slid, useMinute } from './recent';
import type { QueueItem } from './types';
import './queues.css';

const RANGES = {
  hour: { label: 'Hour', period: '1m', periodMs: MINUTE_MS, per: 'minute', since: '59m' },
  day: { label: 'Day', period: '5m', periodMs: 5 * MINUTE_MS, per: '5 minutes', since: '24h' },
  month: { label: 'Month', period: '1h', periodMs: 60 * MINUTE_MS, per: 'hour', since: '30d' },
} as const;
type Range = keyof typeof RANGES;
type Counted = Exclude<keyof Minute, 'timestamp'>;

function rangeOf(): Range {
  const asked = query('range');
  return asked === 'day' || asked === 'month' ? asked : 'hour';
}

export type History = ReturnType<typeof useHistory>;

/** @param queue undefined: all queues together */
export function useHistory(queue?: string) {
  const { period, periodMs, since } = RANGES[rangeOf()];
  const points = useGet<{ data: readonly Minute[] }>('admin/stats/history', { period, since, queue });
  /** What is shown of a queue has changed from one reading to the next. */
  const add = (before: QueueItem | undefined, after: QueueItem) =>
    points.update(({ data }) => ({ data: withChange(data, before?.recent ?? [], after.recent, periodMs) }));
  return { points, add };
}

/** The points with what came to be between two readings of a queue's last half hour. */
function withChange(
  data: readonly Minute[],
  before: readonly Minute[],
  after: readonly Minute[],
  periodMs: number,
): readonly Minute[] {
  const known = new Map(before.map((point) => [Date.parse(point.timestamp), point]));
  const next = new Map(data.map((point) => [Date.parse(point.timestamp), point]));
  for (const point of after) {
    const at = Date.parse(point.timestamp);
    const old = known.get(at);
    const slot = Math.floor(at / periodMs) * periodMs;
    const held = next.get(slot);
    const sum = (name: Counted) => Math.max(0, (held?.[name] ?? 0) + point[name] - (old?.[name] ?? 0));
    next.set(slot, {
      timestamp: new Date(slot).toISOString(),
      ...{ processed: sum('processed'), failed: sum('failed'), enqueued: sum('enqueued') },
    });
  }
  return [...next.entries()].sort(([a], [b]) => a - b).map(([, point]) => point);
}

export function HistoryChart({ history: { points } }: { history: History }) {
  const range = rangeOf();
  return (
    <Section
      title="Over time"
      actions={
        <nav class="ranges" aria-label="Time shown">
          {Object.entries(RANGES).map(([id, { label }]) => (
            <a
              key={id}
              href={withQuery({ range: id === 'hour' ? null : id })}
              aria-current={id === range ? 'true' : undefined}
            >
              {label}
            </a>
          ))}
        </nav>
      }
    >
      <Loaded of={points} loading={<Skeleton rows={1} height={262} />}>
        {({ data }) => <Lines data={data} range={range} />}
      </Loaded>
    </Section>
  );
}

function Lines({ data, range }: { data: readonly Minute[]; range: Range }) {
  const { periodMs, per } = RANGES[range];
  const minute = useMinute();
  const end = Math.floor(minute / periodMs) * periodMs;
  const drawn = useMemo(() => {
    const points = slid(data, end, periodMs);
    const line = (label: string, name: Counted, tone: 'blue' | 'green' | 'red') => ({
      ...{ label, tone },
      values: points.map((point) => point[name]),
    });
    return {
      times: points.map(({ timestamp }) => Date.parse(timestamp)),
      series: [
        line('Enqueued', 'enqueued', 'blue'),
        line('Processed', 'processed', 'green'),
        line('Failed', 'failed', 'red'),
      ],
    };
  }, [data, end, periodMs]);
  return <Chart label={`Jobs per ${per}`} {...drawn} height={200} />;
}
