/** The retry policy, and the delays that it makes: what would follow if every attempt failed. */
import { useMemo, useState } from 'preact/hooks';
import { Json } from '../../components/json';
import { Loaded } from '../../components/state';
import { api } from '../../core/api';
import { duration, number } from '../../core/format';
import { useResource } from '../../core/resource';
import type { Job } from './types';

interface Row {
  failed_executions: number;
  delay_ms: number;
  min_ms: number;
  max_ms: number;
  cumulative_ms: number;
}

/** Attempts that are foreseen at most. */
const MOST = 25;

export function RetryPolicy({ of: job }: { of: Job }) {
  const { retry_policy: policy = {} } = job;
  const attempts = Math.min(MOST, Math.max(1, job.max_attempts - 1));
  const given = { ...(job.retry as object | undefined), max_attempts: job.max_attempts };
  const preview = useResource(
    (signal) =>
      api.post<{ delays: readonly Row[] }>(
        'admin/retry/preview',
        { policy: policyOf(policy, given), attempts },
        { signal },
      ),
    [JSON.stringify(policy), attempts],
  );
  return (
    <>
      {job.max_attempts > 1 ? (
        <Loaded of={preview}>{({ delays }) => <Curve delays={delays} done={job.attempt} />}</Loaded>
      ) : (
        <p class="faint">It is tried once.</p>
      )}
      <Json value={policy} label="retry policy" open={1} />
    </>
  );
}

/** The whole policy as the server tells it is one that it takes; where it does not, what the job itself says is close. */
function policyOf(policy: Readonly<Record<string, unknown>>, given: object): object {
  return Object.keys(policy).length > 0 ? policy : given;
}

const WIDTH = 640;
const HEIGHT = 170;
const LEFT = 56;
const BOTTOM = 22;

/** Delays over attempts, with the reach of the jitter around each; or the same as a table. */
function Curve({ delays, done }: { delays: readonly Row[]; done: number }) {
  const [asTable, setAsTable] = useState(false);
  return (
    <figure class="chart">
      <figcaption>
        <span>
          Delay after each failure{delays.length > 0 && `, ${duration(delays.at(-1)?.cumulative_ms ?? 0)} in all`}
        </span>
        <button type="button" class="link" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
          {asTable ? 'As a chart' : 'As a table'}
        </button>
      </figcaption>
      {asTable ? <Delays of={delays} /> : <Plot delays={delays} done={done} />}
    </figure>
  );
}

function Plot({ delays, done }: { delays: readonly Row[]; done: number }) {
  const { most, ticks } = useMemo(() => scaleOf(Math.max(...delays.map(({ max_ms }) => max_ms))), [delays]);
  const step = (WIDTH - LEFT - 12) / Math.max(1, delays.length);
  const x = (index: number) => LEFT + step * (index + 0.5);
  const y = (ms: number) => 8 + (HEIGHT - BOTTOM - 8) * (1 - ms / most);
  const line = delays.map(({ delay_ms }, index) => `${x(index).toFixed(1)},${y(delay_ms).toFixed(1)}`);
  const upper = delays.map(({ max_ms }, index) => `${x(index).toFixed(1)},${y(max_ms).toFixed(1)}`);
  const lower = delays.map(({ min_ms }, index) => `${x(index).toFixed(1)},${y(min_ms).toFixed(1)}`);
  const every = Math.ceil(delays.length / 12);
  return (
    <svg class="curve" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img">
      <title>{`Delays: ${delays.map(({ failed_executions: n, delay_ms }) => `after failure ${n} ${duration(delay_ms)}`).join(', ')}`}</title>
      {ticks.map((ms) => (
        <g key={ms}>
          <line class="grid" x1={LEFT} x2={WIDTH - 12} y1={y(ms)} y2={y(ms)} />
          <text x={LEFT - 8} y={y(ms) + 4} text-anchor="end">
            {duration(ms)}
          </text>
        </g>
      ))}
      <polygon class="reach" points={[...upper, ...lower.reverse()].join(' ')} />
      <polyline points={line.join(' ')} />
      {delays.map(({ failed_executions: n, delay_ms }, index) => (
        <g key={n}>
          <circle class={n <= done ? 'done' : ''} cx={x(index)} cy={y(delay_ms)} r={n <= done ? 4 : 3} />
          {index % every === 0 && (
            <text x={x(index)} y={HEIGHT - 5} text-anchor="middle">
              {n}
            </text>
          )}
        </g>
      ))}
    </svg>
  );
}

/** The top of the scale, and the lines below it, at round durations. */
function scaleOf(highest: number): { most: number; ticks: readonly number[] } {
  const most = Math.max(1, highest);
  const units = [1, 1_000, 60_000, 3_600_000, 86_400_000].filter((unit) => unit <= most);
  const unit = units.at(-1) ?? 1;
  const raw = most / unit / 3;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((factor) => factor * size >= raw) ?? 10) * size * unit;
  return { most, ticks: Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step) };
}

function Delays({ of: delays }: { of: readonly Row[] }) {
  return (
    <div class="table-frame scrolls">
      <table class="table plain" aria-label="Delays">
        <thead>
          <tr>
            <th scope="col">After failure</th>
            <th scope="col" class="end">
              Delay
            </th>
            <th scope="col" class="end">
              Between
            </th>
            <th scope="col" class="end">
              In all
            </th>
          </tr>
        </thead>
        <tbody>
          {delays.map(({ failed_executions: n, delay_ms, min_ms, max_ms, cumulative_ms }) => (
            <tr key={n}>
              <th scope="row">{number(n)}</th>
              <td class="end">{duration(delay_ms)}</td>
              <td class="end">{min_ms === max_ms ? '–' : `${duration(min_ms)} – ${duration(max_ms)}`}</td>
              <td class="end">{duration(cumulative_ms)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
