const exact = new Intl.NumberFormat('en');
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export const number = (value: number | bigint): string => exact.format(value);

/** 12.3K, where there is little room; pair it with {@link number} in a title. */
export const short = (value: number): string =>
  Math.abs(value) < 10_000 ? exact.format(value) : compact.format(value);

export const counted = (count: number, noun: string): string => `${number(count)} ${noun}${count === 1 ? '' : 's'}`;

/** The beginning of a text. @param most characters */
export const brief = (text: string, most = 120): string => (text.length > most ? `${text.slice(0, most)}…` : text);

/** "Available": a word of the API as a label. */
export const capitalized = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

/** @param share 0…1 */
export function percent(share: number): string {
  const value = share * 100;
  return `${value === 0 || value >= 10 ? Math.round(value) : value.toFixed(1)} %`;
}

const UNITS: readonly (readonly [string, number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
];

/** 240 ms, 1.2 s, 3 min 4 s, 2 d 3 h: two units at most. @param ms milliseconds */
export function duration(ms: number): string {
  if (ms < 0) return `−${duration(-ms)}`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(Math.floor(ms / 100) / 10).toFixed(1).replace('.0', '')} s`;
  const index = UNITS.findIndex(([, size]) => ms >= size);
  const [unit, size] = UNITS[index] ?? ['s', 1_000];
  const [lesser, lesserSize] = UNITS[index + 1] ?? ['', 0];
  const rest = lesserSize ? Math.floor((ms % size) / lesserSize) : 0;
  return `${Math.floor(ms / size)} ${unit}${rest > 0 ? ` ${rest} ${lesser}` : ''}`;
}

/** "1 h 30 min" for PT1H30M, as the API writes durations; any other text as it is. */
export function span(text: string): string {
  const parts = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?$/.exec(text)?.slice(1);
  if (!parts) return text;
  const [days = 0, hours = 0, minutes = 0, seconds = 0] = parts.map((part) => Number(part ?? 0));
  const ms = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000;
  return ms === 0 ? '0 s' : duration(ms);
}

/** 5 s ago, 3 min ago, 1 d 23 h ago, in 3 min 4 s: what is to come is counted down. @param now epoch ms */
export function relative(at: number, now: number): string {
  const ms = now - at;
  if (Math.abs(ms) < 1_000) return 'now';
  const text = duration(Math.floor(Math.abs(ms) / 1_000) * 1_000);
  // Seconds beside minutes would only flicker; hours beside days matter.
  const isBrief = ms > 0 || ms <= -600_000;
  const shown = isBrief ? text.replace(/^(\d+ min) .*$/, '$1') : text;
  return ms > 0 ? `${shown} ago` : `in ${shown}`;
}

const local = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' });
const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

export const absolute = (at: number): string => `${local.format(at)}\n${new Date(at).toISOString()}`;

/** 14:03:07, in this browser's zone. */
export const timeOfDay = (at: number): string => clock.format(at);

const dayAndTime = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
});

/** 14:03:07 of the same day, otherwise 29 Nov, 14:03: within a sentence, in this browser's zone. */
export function moment(at: number, now: number): string {
  const isToday = new Date(at).toDateString() === new Date(now).toDateString();
  return isToday ? timeOfDay(at) : dayAndTime.format(at);
}

/** A sentence of the server with its moments and durations as people write them. */
export const readable = (text: string, now: number): string =>
  text
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (at) => moment(Date.parse(at), now))
    .replace(/\bP(?:\d+D)?(?:T[\d.]+[HMS][\d.HMS]*)?\b/g, (length) => (length === 'P' ? length : span(length)));

export function bytes(size: number): string {
  if (size < 1024) return `${size} B`;
  const kib = size / 1024;
  return kib < 1024 ? `${kib.toFixed(kib < 10 ? 1 : 0)} KiB` : `${(kib / 1024).toFixed(1)} MiB`;
}
