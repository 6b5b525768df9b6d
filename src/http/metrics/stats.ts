/** Statistics for operators: the activity of the queues, over time and by type, and its cost. */
import { costsOf, readMetrics, readPoints } from '../../across/metrics';
import { type OfSome, type StatsPeriod, stats, type TypeStats } from '../../contract/stats';
import { invalidRequest } from '../../job/errors';
import { formatInstant } from '../../job/time';
import { percentiles } from '../../metrics/histogram';
import { COUNTERS, durationsOf, histogramOf, type Meter, read } from '../../metrics/meter';
import { HOUR_MS, history, KEEP_HOURS_MS, KEEP_MINUTES_MS, MINUTE_MS, startOf } from '../../metrics/series';
import { also } from '../../ojs/names';
import { type AppContext, unredacted } from '../context';
import { integerParam, pastParam, queueParam, textParam, wantsParam, wordParam } from '../request/query';
import { serve } from '../route';
import { DOLLARS_PER_MILLION_ROWS, dollarsOf, renderStats } from './render';
import { statsStream } from './stream';

export const statsRoutes = serve(stats, { show, history: showHistory, types, cost, stream: statsStream });

/** The one queue that a request is about. @throws {ApiError} 400 when it names several */
function oneQueue(c: AppContext): string | undefined {
  const named = queueParam(c, 'queue');
  if (named && named.length > 1) throw invalidRequest('queue', 'queue must name one queue.');
  return named?.[0];
}

const SHOWN_QUEUES = 50;

async function show(c: AppContext) {
  const queue = oneQueue(c);
  const detail = wantsParam(c, 'detail');
  const limit = integerParam(c, 'limit', 1, 200) ?? SHOWN_QUEUES;
  const reading = await readMetrics(c.env, queue);
  return unredacted(c, renderStats(reading, detail ? limit : 0, queue));
}

/** Periods of a history: their length, and the default and maximum range. */
const PERIODS = {
  '1m': { ms: MINUTE_MS, back: HOUR_MS, most: KEEP_MINUTES_MS },
  '5m': { ms: 5 * MINUTE_MS, back: 6 * HOUR_MS, most: KEEP_MINUTES_MS },
  '1h': { ms: HOUR_MS, back: KEEP_MINUTES_MS, most: KEEP_HOURS_MS },
  '1d': { ms: 24 * HOUR_MS, back: KEEP_HOURS_MS, most: KEEP_HOURS_MS },
} as const satisfies Record<StatsPeriod, object>;

async function showHistory(c: AppContext) {
  const queue = oneQueue(c);
  const type = textParam(c, 'type');
  const now = Date.now();
  const period = wordParam(c, 'period', Object.keys(PERIODS) as StatsPeriod[], '5m');
  const { ms, back, most } = PERIODS[period];
  const to = Math.min(pastParam(c, 'until', now) ?? now, now);
  const asked = pastParam(c, 'since', now) ?? to - back + ms;
  if (asked > to) throw invalidRequest('since', 'since must not be later than until.');
  const from = startOf(Math.max(asked, now - most), ms);
  const points = await readPoints(c.env, queue, { from, to, period_ms: ms, type });
  const data = history(points, { periodMs: ms, from, to }).map(({ at, ...rest }) => ({
    timestamp: formatInstant(at),
    ...rest,
  }));
  return unredacted(c, also('StatsHistory', { period, since: formatInstant(from), until: formatInstant(to), data }));
}

async function types(c: AppContext) {
  const { queues, total } = await readMetrics(c.env, oneQueue(c));
  const items = queues.flatMap(({ queue, totals }) =>
    totals.filter(([type]) => type !== '').map(([type, meter]) => ({ queue, type, ...renderMeter(meter) })),
  );
  items.sort((a, b) => b.enqueued - a.enqueued);
  return unredacted(c, { items, total: items.length, ...asPart(queues.length, total, c) });
}

function renderMeter(meter: Meter): Omit<TypeStats, 'queue' | 'type'> {
  const counts = Object.fromEntries(
    COUNTERS.filter((name) => name !== 'rows').map((name) => [name, read(meter, name)]),
  ) as Record<Exclude<(typeof COUNTERS)[number], 'rows'>, number>;
  return {
    ...counts,
    duration_ms: percentiles(durationsOf(meter)),
    queue_time_ms: percentiles(histogramOf(meter, 'queue_time')),
  };
}

/** Notes when not all queues were asked. */
const asPart = (asked: number, total: number, c: AppContext): OfSome =>
  asked < total && c.req.query('queue') === undefined ? { complete: false, queues_total: total } : {};

async function cost(c: AppContext) {
  const { queues, total } = await readMetrics(c.env, oneQueue(c));
  const items = queues
    .flatMap(costsOf)
    .filter(({ rows, jobs }) => rows > 0 || jobs > 0)
    .sort((a, b) => b.rows - a.rows)
    .map(({ queue, type, jobs, rows }) => ({
      ...{ queue, type, jobs, rows_written: rows },
      rows_per_job: jobs === 0 ? null : Math.round((rows / jobs) * 100) / 100,
      dollars: dollarsOf(rows),
      dollars_per_million_jobs: jobs === 0 ? null : Math.round((rows / jobs) * DOLLARS_PER_MILLION_ROWS * 100) / 100,
    }));
  const rows = items.reduce((sum, item) => sum + item.rows_written, 0);
  const since = queues.map(({ counted_since }) => counted_since);
  return unredacted(c, {
    items,
    total: { rows_written: rows, dollars: dollarsOf(rows) },
    since: since.length === 0 ? null : formatInstant(Math.min(...since)),
    dollars_per_million_rows: DOLLARS_PER_MILLION_ROWS,
    not_counted: ['requests', 'duration', 'storage', 'rows read', 'alarms set', 'rows of other objects than queues'],
    ...asPart(queues.length, total, c),
  });
}
