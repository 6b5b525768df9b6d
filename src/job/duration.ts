/**
 * Durations as clients write them, and the one form Tocsin writes back. Everything is whole milliseconds inside.
 *
 * | form | examples |
 * |---|---|
 * | integer, or a string of digits | `1500`, `"1500"`: milliseconds |
 * | number and one unit of `ms s m h d w` | `"500ms"`, `"12.5s"`, `"2w"` |
 * | ISO 8601 without years and months | `"PT1.5S"`, `"P1DT2H"`, `"P2W"` |
 *
 * A day has 24 hours. As ISO 8601 has it, only the last component may carry a fraction (with `.` or `,`).
 */
/** The longest duration that is accepted: 36500 days. */
export const MAX_DURATION_MS = 3_153_600_000_000;

/** A duration as a JSON Schema: its forms in words, since only {@link parseDuration} says which texts are one. */
export const DURATION_SCHEMA = {
  type: ['integer', 'string'],
  minimum: 0,
  maximum: MAX_DURATION_MS,
  description: 'A duration: whole milliseconds, or a text such as "500ms", "12.5s", "5m", "PT1M30S" or "P7D".',
} as const;

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const WEEK = 7 * DAY;

const UNIT_MS = { ms: 1, s: SECOND, m: MINUTE, h: HOUR, d: DAY, w: WEEK };

const DIGITS = /^\d+$/;
const HUMANISED = /^(\d+(?:\.\d+)?)(ms|[smhdw])$/;
// The lookaheads demand a component after P, and one after T. A fraction must be followed by nothing but its own unit.
const ISO =
  /^P(?=\d|T)(?:(\d+|\d+[.,]\d+(?=W$))W)?(?:(\d+|\d+[.,]\d+(?=D$))D)?(?:T(?=\d)(?:(\d+|\d+[.,]\d+(?=H$))H)?(?:(\d+|\d+[.,]\d+(?=M$))M)?(?:(\d+(?:[.,]\d+)?)S)?)?$/;
const ISO_UNITS_MS = [WEEK, DAY, HOUR, MINUTE, SECOND];

/** Reads a duration. @returns whole ms, 0 … {@link MAX_DURATION_MS}, rounded; undefined when invalid or out of range */
export function parseDuration(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isInteger(value) ? inRange(value) : undefined;
  if (typeof value !== 'string') return undefined;
  if (DIGITS.test(value)) return inRange(Number(value));
  const humanised = HUMANISED.exec(value);
  if (humanised) return inRange(Number(humanised[1]) * UNIT_MS[humanised[2] as keyof typeof UNIT_MS]);
  const iso = ISO.exec(value);
  if (!iso) return undefined;
  return inRange(
    ISO_UNITS_MS.reduce((sum, unit, index) => sum + Number((iso[index + 1] ?? '0').replace(',', '.')) * unit, 0),
  );
}

function inRange(ms: number): number | undefined {
  const rounded = Math.round(ms);
  // Adding 0 turns −0 into 0.
  return rounded >= 0 && rounded <= MAX_DURATION_MS ? rounded + 0 : undefined;
}

/** Writes whole ms (0 … {@link MAX_DURATION_MS}) as {@link parseDuration} reads them: `PT0.1S`, `P1DT2H`. */
export function formatDuration(ms: number): `P${string}` {
  const days = Math.floor(ms / DAY);
  const hours = Math.floor((ms % DAY) / HOUR);
  const minutes = Math.floor((ms % HOUR) / MINUTE);
  const seconds = Math.floor((ms % MINUTE) / SECOND);
  const millis = Math.floor(ms % SECOND);
  const fraction = millis ? `.${String(millis).padStart(3, '0').replace(/0+$/, '')}` : '';
  const date = days ? `${days}D` : '';
  const time = `${hours ? `${hours}H` : ''}${minutes ? `${minutes}M` : ''}${seconds || millis ? `${seconds}${fraction}S` : ''}`;
  if (!time) return date ? `P${date}` : 'PT0S';
  return `P${date}T${time}`;
}
