/** The chart library: a chunk of its own, loaded with the first chart. */
import uPlot from 'uplot';
import styles from 'uplot/dist/uPlot.min.css' with { type: 'text' };
import { adopt } from '../core/styles';

adopt(styles);

/** A line of a chart; null: there is no number for that time. */
export interface Series {
  label: string;
  values: readonly (number | null)[];
  tone?: 'blue' | 'violet' | 'green' | 'amber' | 'red' | 'neutral';
}

export interface PlotOptions {
  times: readonly number[];
  series: readonly Series[];
  height: number;
  format: (value: number) => string;
}

const DAY_MS = 86_400_000;
const hour = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const moment = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });

/** The time at an axis; the day where a day is a step. */
function timeAt(at: number, step: number): string {
  return (step >= DAY_MS ? day : hour).format(at);
}

const TONES = ['blue', 'red', 'green', 'amber', 'violet'] as const;

export interface Plot {
  /** Other numbers in the same lines. */
  update: (times: readonly number[], series: readonly Series[]) => void;
  destroy: () => void;
}

const dataOf = (times: readonly number[], series: readonly Series[]) =>
  [times, ...series.map(({ values }) => values)] as unknown as uPlot.AlignedData;

/** Draws into an element, as wide as it is. */
export function draw(place: HTMLElement, { times, series, height, format }: PlotOptions): Plot {
  const style = getComputedStyle(place);
  // Colours are asked of the page, so that a canvas has those of the theme.
  const colour = (name: string) => {
    const probe = document.createElement('i');
    probe.style.color = `var(--${name})`;
    place.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  };
  const faint = colour('text-2');
  const axis: uPlot.Axis = {
    stroke: faint,
    grid: { stroke: colour('line'), width: 1 },
    ticks: { show: false },
    font: `11px ${style.fontFamily}`,
  };
  const options: uPlot.Options = {
    width: place.clientWidth,
    height,
    ms: 1,
    cursor: { points: { size: 5 } },
    scales: { y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] } },
    axes: [
      { ...axis, size: 32, space: 64, values: (_, splits, __, ___, step) => splits.map((at) => timeAt(at, step)) },
      { ...axis, size: 52, values: (_, splits) => splits.map(format) },
    ],
    series: [
      { label: 'Time', value: (_, at: number | null) => (at === null ? '–' : moment.format(at)) },
      ...series.map(({ label, tone }, index) => ({
        label,
        stroke: colour(`${tone ?? TONES[index % TONES.length]}-fill`),
        fill: colour(`${tone ?? TONES[index % TONES.length]}-ground`)
          .replace(/^rgb\((.*)\)$/, 'rgb($1 / 35%)')
          .replaceAll(',', ' '),
        width: 1.5,
        value: (_: uPlot, value: number | null) => (value === null ? '–' : format(value)),
        points: { show: times.length < 2 },
      })),
    ],
  };
  const plot = new uPlot(options, dataOf(times, series), place);
  const resized = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height }));
  resized.observe(place);
  return {
    update: (at, next) => plot.setData(dataOf(at, next)),
    destroy: () => {
      resized.disconnect();
      plot.destroy();
    },
  };
}
