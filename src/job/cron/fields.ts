/**
 * Validates the fields of a cron expression and rewrites them into the plain form that `calendar.ts` reads. Each
 * field has its own rules; an error names the field and its mistake.
 */

interface FieldRule {
  name: string;
  min: number;
  max: number;
  /** Names of numbers, the first one for `min`, except in the day of the week. */
  words?: readonly string[];
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

const HOUR: FieldRule = { name: 'hour', min: 0, max: 23 };
const DAY_OF_MONTH: FieldRule = { name: 'day of month', min: 1, max: 31 };
/** 7 is Sunday as well. */
const DAY_OF_WEEK: FieldRule = { name: 'day of week', min: 0, max: 7, words: DAYS };

/** In the order of an expression with six fields; with five, the seconds are missing. */
const RULES: readonly FieldRule[] = [
  { name: 'second', min: 0, max: 59 },
  { name: 'minute', min: 0, max: 59 },
  HOUR,
  DAY_OF_MONTH,
  { name: 'month', min: 1, max: 12, words: MONTHS },
  DAY_OF_WEEK,
];

export class FieldError extends Error {
  override readonly name = 'FieldError';

  constructor(
    readonly field: string,
    message: string,
  ) {
    super(message);
  }
}

/** An expression whose fields are valid. */
export interface CronFields {
  /** Six fields, seconds first, numbers only. */
  pattern: string;
  /** Does every hour of the day match? Then the expression states an interval rather than a local time. */
  everyHour: boolean;
}

/** Reads five or six fields. @throws {FieldError} */
export function readFields(fields: readonly string[]): CronFields {
  const all = fields.length === 5 ? ['0', ...fields] : fields;
  if (all.length !== 6) {
    throw new FieldError(
      'expression',
      `has ${fields.length} ${fields.length === 1 ? 'field' : 'fields'}; 5 or 6 are expected`,
    );
  }
  let everyHour = false;
  const written = all.map((text, index) => {
    const rule = RULES[index] as FieldRule;
    const items = text.split(',').map((item) => readItem(item, rule));
    if (rule === HOUR) everyHour = coversAll(items, rule);
    // A field that has every value must not count as restricted: it decides how the two day fields combine.
    return items.some((item) => item.text === '*') ? '*' : items.map((item) => item.text).join(',');
  });
  return { pattern: written.join(' '), everyHour };
}

interface Item {
  text: string;
  /** The numbers that match, unless they depend on the month. */
  range?: { from: number; to: number; step: number };
}

function readItem(item: string, rule: FieldRule): Item {
  if (item === '') throw wrong(rule, 'has an empty entry');
  const special = readSpecial(item.toUpperCase(), rule);
  if (special !== undefined) return { text: special };
  const [span = '', stepText, ...rest] = item.split('/');
  if (rest.length > 0) throw wrong(rule, `"${item}" has more than one step`);
  const isDay = rule === DAY_OF_MONTH || rule === DAY_OF_WEEK;
  const whole = span === '*' || (span === '?' && isDay);
  const { from, to } = whole ? { from: rule.min, to: topOf(rule) } : readSpan(span, item, stepText !== undefined, rule);
  if (stepText === undefined) {
    if (whole) return { text: '*', range: { from, to, step: 1 } };
    return { text: from === to ? String(from) : `${from}-${to}`, range: { from, to, step: 1 } };
  }
  const step = readNumber(stepText);
  const size = topOf(rule) - rule.min + 1;
  if (step === undefined || step < 1 || step > size) {
    throw wrong(rule, `"${item}": the step must be a whole number from 1 to ${size}`);
  }
  if (whole && step === 1) return { text: '*', range: { from, to, step } };
  return { text: `${from}-${to}/${step}`, range: { from, to, step } };
}

/** `a` or `a-b`; followed by a step, `a` means from `a` on. */
function readSpan(span: string, item: string, stepped: boolean, rule: FieldRule): { from: number; to: number } {
  const [first = '', last, ...rest] = span.split('-');
  if (rest.length > 0) throw wrong(rule, `"${item}" cannot be read`);
  const from = readValue(first, item, rule);
  if (last === undefined) {
    // A lone 7 is written as 0: `7/2` begins on Sunday as `0/2` does.
    const first = rule === DAY_OF_WEEK ? from % 7 : from;
    return { from: first, to: stepped ? topOf(rule) : first };
  }
  let to = readValue(last, item, rule);
  if (rule === DAY_OF_WEEK && to === 0 && from > 0) to = 7;
  if (to < from) throw wrong(rule, `"${item}" has its ends in the wrong order`);
  return { from, to };
}

function readValue(text: string, item: string, rule: FieldRule): number {
  const word = rule.words?.indexOf(text.toLowerCase()) ?? -1;
  if (word >= 0) return word + rule.min;
  const value = readNumber(text);
  if (value === undefined) {
    const words = rule.words ? `, or ${rule.words[0]?.toUpperCase()} to ${rule.words.at(-1)?.toUpperCase()}` : '';
    throw wrong(rule, `"${item}" cannot be read; it takes ${rule.min} to ${rule.max}${words}`);
  }
  if (value < rule.min || value > rule.max) {
    throw wrong(rule, `"${item}" is out of range; ${rule.min} to ${rule.max} are possible`);
  }
  return value;
}

function readNumber(text: string): number | undefined {
  return /^\d{1,4}$/.test(text) ? Number(text) : undefined;
}

/** `L`, `LW`, `15W` in the day of the month; `5L`, `5#2`, `5#L` in the day of the week. */
function readSpecial(item: string, rule: FieldRule): string | undefined {
  if (rule === DAY_OF_MONTH) {
    if (item === 'L' || item === 'LW') return item;
    const day = /^(\d{1,2})W$/.exec(item)?.[1];
    return day === undefined ? undefined : `${readValue(day, item, rule)}W`;
  }
  if (rule !== DAY_OF_WEEK) return undefined;
  const [, day, nth] = /^([A-Z]{3}|\d)(L|#.*)$/.exec(item) ?? [];
  if (day === undefined || nth === undefined) return undefined;
  const number = readValue(day, item, rule) % 7;
  if (nth !== 'L' && !/^#[1-5L]$/.test(nth))
    throw wrong(rule, `"${item}": after # comes 1 to 5, or L for the last one`);
  return number + nth;
}

function topOf(rule: FieldRule): number {
  return rule === DAY_OF_WEEK ? 6 : rule.max;
}

function coversAll(items: readonly Item[], rule: FieldRule): boolean {
  const values = new Set<number>();
  for (const { range } of items) {
    for (let value = range?.from ?? 1; range && value <= range.to; value += range.step) values.add(value);
  }
  return values.size === rule.max - rule.min + 1;
}

function wrong(rule: FieldRule, message: string): FieldError {
  return new FieldError(rule.name, message);
}
