/** Where the axes of a chart have their ticks. */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Steps between ticks of time. */
const TIME_STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 4, 6, 12].map((hours) => hours * HOUR),
  ...[1, 2, 3, 7, 14, 28].map((days) => days * DAY),
];

/** Steps between values, times a power of ten. */
const VALUE_STEPS = [1, 2, 2.5, 5, 10];

const hour = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

/** From zero up. @param places how many fit beside each other */
export function valueTicks(most: number, places: number): number[] {
  const least = most / Math.max(1, places);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * (VALUE_STEPS.find((one) => one * power >= least) ?? 10);
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => Number((index * step).toPrecision(12)));
}

/** At round local times; the day where a day is a step. */
export function timeTicks([from, to]: readonly [number, number], places: number): { at: number; label: string }[] {
  const least = (to - from) / Math.max(1, places);
  const step = TIME_STEPS.find((one) => one >= least) ?? Math.ceil(least / DAY) * DAY;
  // Ticks are round where the clock is, which may be moved in between.
  const zoneAt = (at: number) => new Date(at).getTimezoneOffset() * MINUTE;
  const ticks: { at: number; label: string }[] = [];
  for (let local = Math.ceil((from - zoneAt(from)) / step) * step; ; local += step) {
    const at = local + zoneAt(local + zoneAt(local));
    if (at > to) return ticks;
    if (at >= from) ticks.push({ at, label: (step >= DAY ? day : hour).format(at) });
  }
}
