/** The delays that a retry policy makes, with the reach of the jitter around each; or the same as a table. */
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { RetryPreview } from '../../contract/system';
import { duration, number } from '../core/format';
import { Figure } from './chart';
import { PlainTable } from './page';
import './retry-curve.css';

/** @param done attempts that a job has failed already */
export function RetryCurve({ delays, done = 0 }: { delays: RetryPreview['delays']; done?: number }) {
  const total = delays.length > 0 && `, ${duration(delays.at(-1)?.cumulative_ms ?? 0)} in total`;
  const rows = delays.map(({ failed_executions: n, delay_ms, min_ms, max_ms, cumulative_ms }) => [
    number(n),
    duration(delay_ms),
    min_ms === max_ms ? '–' : `${duration(min_ms)} – ${duration(max_ms)}`,
    duration(cumulative_ms),
  ]);
  const head = ['After failure', 'Delay', 'Between', 'Total'];
  return (
    <Figure
      title={<>Delay after each failure{total}</>}
      table={<PlainTable label="Delays" head={head} rows={rows} end={1} scrolls />}
    >
      <Plot delays={delays} done={done} />
    </Figure>
  );
}

/** Until its real width is known, px. */
const WIDTH = 640;
const HEIGHT = 170;
const LEFT = 56;
const BOTTOM = 22;

function Plot({ delays, done }: { delays: RetryPreview['delays']; done: number }) {
  const drawing = useRef<SVGSVGElement>(null);
  const [width, setWidth] = useState(WIDTH);
  // Drawn as wide as it is shown, so that its texts are as large as all others.
  useLayoutEffect(() => {
    const measure = () => setWidth(drawing.current?.clientWidth || WIDTH);
    const observer = new ResizeObserver(measure);
    measure();
    if (drawing.current) observer.observe(drawing.current);
    return () => observer.disconnect();
  }, []);
  const { most, ticks } = useMemo(() => scaleOf(Math.max(...delays.map(({ max_ms }) => max_ms))), [delays]);
  const step = (width - LEFT - 12) / Math.max(1, delays.length);
  const x = (index: number) => LEFT + step * (index + 0.5);
  const y = (ms: number) => 8 + (HEIGHT - BOTTOM - 8) * (1 - ms / most);
  const point = (ms: number, index: number) => `${x(index).toFixed(1)},${y(ms).toFixed(1)}`;
  const upper = delays.map(({ max_ms }, index) => point(max_ms, index));
  const lower = delays.map(({ min_ms }, index) => point(min_ms, index));
  const every = Math.ceil((delays.length * 32) / width);
  return (
    <svg class="curve" ref={drawing} height={HEIGHT} role="img">
      <title>
        {`Delays: ${delays.map(({ failed_executions: n, delay_ms }) => `after failure ${n} ${duration(delay_ms)}`).join(', ')}`}
      </title>
      {ticks.map((ms) => (
        <g key={ms}>
          <line class="grid" x1={LEFT} x2={width - 12} y1={y(ms)} y2={y(ms)} />
          <text x={LEFT - 8} y={y(ms) + 4} text-anchor="end">
            {ms === 0 ? '0' : duration(ms)}
          </text>
        </g>
      ))}
      <polygon class="reach" points={[...upper, ...lower.reverse()].join(' ')} />
      <polyline points={delays.map(({ delay_ms }, index) => point(delay_ms, index)).join(' ')} />
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

function scaleOf(highest: number): { most: number; ticks: readonly number[] } {
  const most = Math.max(1, highest);
  const unit = [1, 1_000, 60_000, 3_600_000, 86_400_000].findLast((one) => one <= most) ?? 1;
  const raw = most / unit / 3;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = Math.max(1, ([1, 2, 5, 10].find((factor) => factor * size >= raw) ?? 10) * size * unit);
  return { most, ticks: Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step) };
}
