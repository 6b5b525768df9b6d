/**
 * The drawing of a chart, a chunk of its own that is loaded with the first chart. Under the pointer the legend shows
 * the values of that moment. Dragging zooms into a range of time, and a double click shows all of it again. A click on
 * a name hides or shows its line.
 */
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { adopt } from '../core/styles';
import css from './plot.css' with { type: 'text' };
import { timeTicks, valueTicks } from './ticks';

adopt(css);

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
  format: (value: number) => string;
}

const LEFT = 52;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 24;

/** Places between ticks, at least, px. */
const TIME_SPACE = 64;
const VALUE_SPACE = 30;

/** A pointer that moves less has clicked, px. */
const DRAG = 6;

/** Half of what is shown of a single moment, ms. */
const ALONE_MS = 1_800_000;

const moment = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });

type Stretch = readonly [from: number, to: number];

/** What of a chart is shown, and where: places are px. */
interface Frame {
  times: readonly number[];
  lines: readonly (Series & { colour: string; isHidden: boolean })[];
  stretch: Stretch;
  width: number;
  height: number;
}

export function Plot({ times, series, height, format }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [zoom, setZoom] = useState<Stretch>();
  const [pointer, setPointer] = useState<{ x: number; y: number; from?: number | undefined }>();
  useLayoutEffect(() => {
    const measure = () => setWidth(place.current?.clientWidth ?? 0);
    const observer = new ResizeObserver(measure);
    measure();
    if (place.current) observer.observe(place.current);
    return () => observer.disconnect();
  }, []);

  const frame = useMemo(() => {
    const lines = series.map((one, index) => ({
      ...one,
      colour: one.tone ?? (TONES[index % TONES.length] as string),
      isHidden: hidden.has(one.label),
    }));
    return { times, lines, stretch: stretchOf(times, zoom), width, height };
  }, [times, series, hidden, zoom, width, height]);
  const [from, to] = frame.stretch;
  const timeAt = (x: number) => from + ((x - LEFT) / Math.max(1, width - LEFT - RIGHT)) * (to - from);
  const under = pointer && nearest(times, timeAt(pointer.x));

  const positionOf = ({ clientX, clientY, currentTarget }: PointerEvent) => {
    const { left, top } = (currentTarget as Element).getBoundingClientRect();
    return {
      x: Math.min(Math.max(clientX - left, LEFT), width - RIGHT),
      y: Math.min(Math.max(clientY - top, TOP), height - BOTTOM),
    };
  };
  const release = (event: PointerEvent) => {
    const start = pointer?.from;
    const at = positionOf(event);
    setPointer(at);
    if (start === undefined || Math.abs(at.x - start) < DRAG) return;
    setZoom([timeAt(Math.min(start, at.x)), timeAt(Math.max(start, at.x))]);
  };
  return (
    <div ref={place} class="plot">
      <svg
        aria-hidden="true"
        height={height}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          const at = positionOf(event);
          setPointer({ ...at, from: at.x });
        }}
        onPointerMove={(event) => setPointer({ ...positionOf(event), from: pointer?.from })}
        onPointerUp={release}
        onPointerCancel={() => setPointer(undefined)}
        onPointerLeave={() => setPointer(undefined)}
        onDblClick={() => setZoom(undefined)}
      >
        <Drawing frame={frame} format={format} />
        {pointer?.from !== undefined && (
          <rect
            class="chosen"
            x={Math.min(pointer.from, pointer.x)}
            width={Math.abs(pointer.x - pointer.from)}
            y={TOP}
            height={height - TOP - BOTTOM}
          />
        )}
        {pointer && under !== undefined && <Hair frame={frame} index={under} y={pointer.y} />}
      </svg>
      <div class="legend" aria-hidden="true">
        <span>Time: {under === undefined ? '–' : moment.format(times[under])}</span>
        {frame.lines.map(({ label, values, colour, isHidden }) => (
          <button
            key={label}
            type="button"
            tabIndex={-1}
            aria-pressed={!isHidden}
            onClick={() =>
              setHidden(new Set(isHidden ? [...hidden].filter((one) => one !== label) : [...hidden, label]))
            }
          >
            <i class="marker" style={{ background: `var(--${colour}-fill)` }} />
            {label}: {valueAt(values, under, format)}
          </button>
        ))}
      </div>
    </div>
  );
}

function valueAt(values: Series['values'], index: number | undefined, format: (value: number) => string): string {
  const value = index === undefined ? undefined : values[index];
  return value === null || value === undefined ? '–' : format(value);
}

/** Axes and lines. */
function Drawing({ frame, format }: { frame: Frame; format: (value: number) => string }) {
  const { times, lines, stretch, width, height } = frame;
  return useMemo(() => {
    if (width <= LEFT + RIGHT) return null;
    const { x, y, most } = scalesOf(frame);
    const floor = height - BOTTOM;
    return (
      <>
        {valueTicks(most, Math.floor((floor - TOP) / VALUE_SPACE)).map((value) => (
          <g key={`y${value}`}>
            <line x1={LEFT} x2={width - RIGHT} y1={y(value)} y2={y(value)} />
            <text x={LEFT - 8} y={y(value) + 4} text-anchor="end">
              {format(value)}
            </text>
          </g>
        ))}
        {timeTicks(stretch, Math.floor((width - LEFT - RIGHT) / TIME_SPACE)).map(({ at, label }) => (
          <g key={`x${at}`}>
            <line x1={x(at)} x2={x(at)} y1={TOP} y2={floor} />
            <text x={x(at)} y={floor + 16} text-anchor="middle">
              {label}
            </text>
          </g>
        ))}
        {lines.map(({ label, values, colour, isHidden }) => {
          if (isHidden) return null;
          const runs = runsOf(frame, values).map((run) =>
            run.map((index) => [x(times[index] as number), y(values[index] as number)]),
          );
          const path = runs.map((run) => `M${run.map((point) => point.map(written)).join('L')}h0`).join('');
          const area = runs.map((run) => {
            const [left, right] = [run[0]?.[0] ?? 0, run.at(-1)?.[0] ?? 0];
            const line = run.map((point) => point.map(written)).join('L');
            return `M${written(left)},${floor}L${line}L${written(right)},${floor}z`;
          });
          const [fill, stroke] = [`var(--${colour}-ground)`, `var(--${colour}-fill)`];
          // A moment alone has no line.
          const strokeWidth = times.length < 2 ? 5 : undefined;
          return (
            <g key={label}>
              <path class="area" d={area.join('')} style={{ fill }} />
              <path class="shape" d={path} style={{ stroke, strokeWidth }} />
            </g>
          );
        })}
      </>
    );
  }, [frame, format]);
}

const written = (place: number) => place.toFixed(1);

/** The moment that the pointer reads, and the points of the lines there. */
function Hair({ frame, index, y: pointerY }: { frame: Frame; index: number; y: number }) {
  const { times, lines, width, height } = frame;
  const { x, y } = scalesOf(frame);
  const at = x(times[index] as number);
  return (
    <>
      <line class="hair" x1={at} x2={at} y1={TOP} y2={height - BOTTOM} />
      <line class="hair" x1={LEFT} x2={width - RIGHT} y1={pointerY} y2={pointerY} />
      {lines.map(({ label, values, colour, isHidden }) => {
        const value = values[index];
        if (isHidden || value === null || value === undefined) return null;
        return <circle key={label} cx={at} cy={y(value)} r={3} style={{ fill: `var(--${colour}-fill)` }} />;
      })}
    </>
  );
}

/** All of the time, or what of it was chosen; what has no moments any more is left. */
function stretchOf(times: readonly number[], zoom: Stretch | undefined): Stretch {
  if (zoom && times.some((at) => isWithin(at, zoom))) return zoom;
  const [first = 0, last = 0] = [times[0], times.at(-1)];
  return first === last ? [first - ALONE_MS, last + ALONE_MS] : [first, last];
}

const isWithin = (at: number, [from, to]: Stretch) => at >= from && at <= to;

/** Places of moments and values. The highest value that is shown has some room above it. */
function scalesOf({ times, lines, stretch, width, height }: Frame) {
  const [from, to] = stretch;
  let highest = 0;
  for (const { values, isHidden } of lines) {
    if (isHidden) continue;
    times.forEach((at, index) => {
      if (isWithin(at, stretch)) highest = Math.max(highest, values[index] ?? 0);
    });
  }
  const most = Math.max(1, highest * 1.1);
  return {
    most,
    x: (at: number) => LEFT + ((at - from) / (to - from)) * (width - LEFT - RIGHT),
    y: (value: number) => TOP + (1 - value / most) * (height - TOP - BOTTOM),
  };
}

/** Which of the moments shown have values one after another. */
function runsOf({ times, stretch }: Frame, values: Series['values']): number[][] {
  const runs: number[][] = [];
  let run: number[] | undefined;
  times.forEach((at, index) => {
    const value = values[index];
    if (value === null || value === undefined || !isWithin(at, stretch)) run = undefined;
    else if (run) run.push(index);
    else {
      run = [index];
      runs.push(run);
    }
  });
  return runs;
}

/** The place of the moment that is closest. */
function nearest(times: readonly number[], at: number): number | undefined {
  let found: number | undefined;
  times.forEach((time, index) => {
    if (found === undefined || Math.abs(time - at) < Math.abs((times[found] as number) - at)) found = index;
  });
  return found;
}
