/** Series of numbers over time: sparklines, and large charts whose code is loaded when one is shown. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { number, timeOfDay } from '../core/format';
import { Button } from './button';
import { Lazy } from './lazy';
import { PlainTable } from './page';
import type { PlotProps } from './plot';

/** @param props.label what it shows, for those who do not see it: "processed per minute, last 30 minutes" */
export function Sparkline(props: { values: readonly number[]; label: string; width: number }) {
  const { values, label, width } = props;
  const height = 24;
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

/** A drawing that can be shown as the table of its numbers instead. */
export function Figure(props: { title: ComponentChildren; table: ComponentChildren; children: ComponentChildren }) {
  const [asTable, setAsTable] = useState(false);
  return (
    <figure class="chart">
      <figcaption>
        <span>{props.title}</span>
        <Button
          label={asTable ? 'As a chart' : 'As a table'}
          class="link"
          aria-pressed={asTable}
          onClick={() => setAsTable(!asTable)}
        />
      </figcaption>
      {asTable ? props.table : props.children}
    </figure>
  );
}

const loadPlot = () => import('./plot');

/** A chart with axes and a legend; the same numbers as a table for those who want them. */
export function Chart({ label, times, series, height }: Omit<PlotProps, 'format'> & { label: string }) {
  const rowOf = (at: number, index: number) => [
    timeOfDay(at),
    ...series.map(({ values: { [index]: value = null } }) => (value === null ? '–' : number(value))),
  ];
  const head = ['Time', ...series.map((one) => one.label)];
  return (
    <Figure title={label} table={<PlainTable label={label} head={head} rows={times.map(rowOf)} end={1} scrolls />}>
      <div style={{ minHeight: `${height}px` }}>
        {<Lazy load={loadPlot} {...{ times, series, height }} format={number} />}
      </div>
    </Figure>
  );
}
