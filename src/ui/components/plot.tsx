/** The drawing of a chart, loaded with the first one. Drag to zoom, double-click to reset, click a name to hide it. */
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import Drawing, { type AlignedData, type Axis } from 'uplot';
import base from 'uplot/dist/uPlot.min.css' with { type: 'text' };
import { adopt } from '../core/styles';
import { isDark } from '../core/theme';
import './plot.css';

adopt(base);

const TONES = ['blue', 'red', 'green', 'amber', 'violet'] as const;

/** A line of a chart; null: there is no number for that time. */
export interface Series {
  label: string;
  values: readonly (number | null)[];
  tone?: (typeof TONES)[number] | 'neutral';
}

export interface PlotProps {
  /** Epoch ms, rising. */
  times: readonly number[];
  series: readonly Series[];
  height: number;
  /** Passed in: an import would make a script of its own of what all pages share. */
  format: (value: number) => string;
}

const DAY_MS = 86_400_000;
const clock = { hour: '2-digit', minute: '2-digit' } as const;
const date = { day: 'numeric', month: 'short' } as const;
const [moment, hour, day] = [{ ...date, ...clock }, clock, date].map(
  (parts) => new Intl.DateTimeFormat('en-GB', parts),
);

export default function Plot({ times, series, height, format }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<Drawing>(undefined);
  const dark = isDark.value;
  const data = [times, ...series.map(({ values }) => values)] as unknown as AlignedData;

  useLayoutEffect(() => {
    const frame = place.current as HTMLDivElement;
    // Colours are read at each drawing: those of a canvas do not follow the theme by themselves.
    const colour = (css: string) => () => {
      frame.style.setProperty('outline-color', css);
      return getComputedStyle(frame).outlineColor;
    };
    const axis: Axis = {
      stroke: colour('var(--text-2)'),
      grid: { stroke: colour('var(--line)'), width: 1 },
      ticks: { show: false },
    };
    const fillOf = (index: number) => `var(--${series[index - 1]?.tone ?? TONES[(index - 1) % TONES.length]}-fill)`;
    const lines = series.map(({ label }, index) => ({
      label,
      value: (_: Drawing, value: number | null) => (value === null ? '' : format(value)),
      stroke: colour(fillOf(index + 1)),
      fill: colour(`color-mix(in srgb, ${fillOf(index + 1)} 9%, transparent)`),
      width: 1.5,
      // A moment alone has no line.
      points: { show: ({ data: [shown] }: Drawing) => shown.length < 2 },
    }));
    const drawing = new Drawing(
      {
        ...{ width: frame.clientWidth, height, ms: 1, series: [{ label: 'Time', value: timeOf }, ...lines] },
        axes: [
          {
            ...axis,
            size: 32,
            values: (_, at, __, ___, step) => at.map((one) => (step >= DAY_MS ? day : hour)?.format(one) ?? ''),
          },
          { ...axis, values: (_, values) => values.map(format), size: 56 },
        ],
        padding: [8, 8, 0, 0],
        scales: { y: { range: (_, __, most) => [0, Math.max(1, (most ?? 0) * 1.1)] } },
        legend: { markers: { width: 0, fill: (_, index) => fillOf(index) } },
      },
      data,
      frame,
    );
    plot.current = drawing;
    const observer = new ResizeObserver(() => drawing.setSize({ width: frame.clientWidth, height }));
    observer.observe(frame);
    return () => {
      observer.disconnect();
      drawing.destroy();
    };
  }, [height, series.map(({ label }) => label).join()]);

  useEffect(() => {
    const { data: [shown] = [[]], scales } = plot.current ?? {};
    // What was zoomed into stays.
    const { min, max } = scales?.x ?? {};
    const isWhole = typeof min !== 'number' || (min <= (shown[0] ?? min) && max === shown[shown.length - 1]);
    plot.current?.setData(data, isWhole);
    if (!isWhole) plot.current?.redraw();
  }, [times, series]);
  useEffect(() => plot.current?.redraw(), [dark]);
  return <div ref={place} class="plot" aria-hidden="true" />;
}

const timeOf = (_: Drawing, at: number | null): string => (at === null ? '' : (moment?.format(at) ?? ''));
