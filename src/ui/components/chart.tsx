/**
 * Series of numbers over time: a small one within a line, and a large one with axes, whose code is loaded when it is
 * shown.
 */
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { number, timeOfDay } from '../core/format';
import type { PlotProps, Series } from './plot';

export type { Series } from './plot';

export interface SparklineProps {
  values: readonly number[];
  /** What it shows, for those who do not see it: "processed per minute, last 30 minutes". */
  label: string;
  width?: number;
  height?: number;
}

/** A line without axes. */
export function Sparkline({ values, label, width = 96, height = 24 }: SparklineProps) {
  const most = Math.max(1, ...values);
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  const y = (value: number) => (height - 1.5 - (value / most) * (height - 3)).toFixed(1);
  const line = values.map((value, index) => `${(index * step).toFixed(1)},${y(value)}`).join(' ');
  const last = values.at(-1) ?? 0;
  return (
    <svg class="sparkline" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img">
      <title>{`${label}: now ${number(last)}, at most ${number(Math.max(0, ...values))}`}</title>
      <polygon points={`0,${height} ${line} ${width},${height}`} />
      <polyline points={line} />
    </svg>
  );
}

export interface ChartProps {
  /** What the chart shows. */
  label: string;
  /** Epoch ms, rising. */
  times: readonly number[];
  series: readonly Series[];
  height?: number;
  /** How a value is written. Default: with separators. */
  format?: (value: number) => string;
}

/** A chart with axes and a legend; the same numbers as a table for those who want them. */
export function Chart({ label, times, series, height = 180, format = number }: ChartProps) {
  const [asTable, setAsTable] = useState(false);
  const [Plot, setPlot] = useState<ComponentType<PlotProps>>();
  useEffect(() => {
    import('./plot').then((loaded) => setPlot(() => loaded.Plot));
  }, []);
  return (
    <figure class="chart">
      <figcaption>
        <span>{label}</span>
        <button type="button" class="link" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
          {asTable ? 'As a chart' : 'As a table'}
        </button>
      </figcaption>
      {asTable ? (
        <NumbersTable {...{ label, times, series, format }} />
      ) : (
        <div style={{ minHeight: `${height}px` }}>{Plot && <Plot {...{ times, series, height, format }} />}</div>
      )}
    </figure>
  );
}

function NumbersTable({ label, times, series, format }: Required<Omit<ChartProps, 'height'>>) {
  return (
    <div class="table-frame scrolls">
      <table class="table plain" aria-label={label}>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map((one) => (
              <th key={one.label} scope="col" class="end">
                {one.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.map((at, index) => (
            <tr key={at}>
              <th scope="row">{timeOfDay(at)}</th>
              {series.map((one) => {
                const value = one.values[index];
                return (
                  <td key={one.label} class="end" data-label={one.label}>
                    {value === null || value === undefined ? '–' : format(value)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
