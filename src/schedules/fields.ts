/** Reads the fields of a cron expression into a calendar. An error names the field and its mistake. */
import { type Calendar, type DayRule, nearestWorkday, weekdayOf } from './calendar';

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

/** Reads five or six fields. @throws {FieldError} */
export function readFields(fields: readonly string[]): Calendar {
  const all = fields.length === 5 ? ['0', ...fields] : fields;
  if (all.length !== 6) {
    throw new FieldError(
      'expression',
      `has ${fields.length} ${fields.length === 1 ? 'field' : 'fields'}; 5 or 6 are expected`,
    );
  }
  const read = all.map((text, index) => readField(text, RULES[index] as FieldRule));
  const [seconds, minutes, hours, days, months, weekdays] = read as [Field, Field, Field, Field, Field, Field];
  const isInMonth: DayRule = (day, month) => days.numbers.includes(day) || days.rules.some((fits) => fits(day, month));
  const isInWeek: DayRule = (day, month) =>
    weekdays.numbers.includes(weekdayOf(day, month)) || weekdays.rules.some((fits) => fits(day, month));
  // Two restricted day fields: either is enough.
  const isDay: DayRule =
    days.isAny || weekdays.isAny
      ? (day, month) => isInMonth(day, month) && isInWeek(day, month)
      : (day, month) => isInMonth(day, month) || isInWeek(day, month);
  return { seconds: seconds.numbers, minutes: minutes.numbers, hours: hours.numbers, months: months.numbers, isDay };
}

interface Field {
  /** Those that match, each once. */
  numbers: readonly number[];
  /** Entries that depend on the month. */
  rules: readonly DayRule[];
  /** It does not count as restricted, which decides how the two day fields combine. */
  isAny: boolean;
}

function readField(text: string, rule: FieldRule): Field {
  const items = text.split(',').map((item) => readItem(item, rule));
  const numbers = new Set(items.flatMap((item) => (typeof item === 'function' ? [] : numbersIn(item, rule))));
  return {
    numbers: [...numbers].sort((a, b) => a - b),
    rules: items.filter((item) => typeof item === 'function'),
    isAny: items.some((item) => typeof item !== 'function' && item.isWhole && item.step === 1),
  };
}

/** The numbers from `from` to `to`, and whether that is any of the field. */
interface Span {
  from: number;
  to: number;
  step: number;
  isWhole: boolean;
}

function numbersIn({ from, to, step }: Span, rule: FieldRule): number[] {
  const numbers = Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, index) => from + index * step);
  return rule === DAY_OF_WEEK ? numbers.map((number) => number % 7) : numbers;
}

function readItem(item: string, rule: FieldRule): Span | DayRule {
  if (item === '') throw wrong(rule, 'has an empty entry');
  const special = readSpecial(item.toUpperCase(), rule);
  if (special !== undefined) return special;
  const [span = '', stepText, ...rest] = item.split('/');
  if (rest.length > 0) throw wrong(rule, `"${item}" has more than one step`);
  const isDay = rule === DAY_OF_MONTH || rule === DAY_OF_WEEK;
  const isWhole = span === '*' || (span === '?' && isDay);
  const ends = isWhole ? { from: rule.min, to: topOf(rule) } : readSpan(span, item, stepText !== undefined, rule);
  if (stepText === undefined) return { ...ends, step: 1, isWhole };
  const step = readNumber(stepText);
  const size = topOf(rule) - rule.min + 1;
  if (step === undefined || step < 1 || step > size) {
    throw wrong(rule, `"${item}": the step must be a whole number from 1 to ${size}`);
  }
  return { ...ends, step, isWhole };
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

const readNumber = (text: string): number | undefined => (/^\d{1,4}$/.test(text) ? Number(text) : undefined);

/** `L`, `LW`, `15W` in the day of the month; `5L`, `5#2`, `5#L` in the day of the week. */
function readSpecial(item: string, rule: FieldRule): DayRule | undefined {
  if (rule === DAY_OF_MONTH) {
    if (item === 'L') return (day, { length }) => day === length;
    if (item === 'LW') return (day, month) => day === nearestWorkday(month.length, month);
    const written = /^(\d{1,2})W$/.exec(item)?.[1];
    if (written === undefined) return undefined;
    const near = readValue(written, item, rule);
    return (day, month) => near <= month.length && day === nearestWorkday(near, month);
  }
  if (rule !== DAY_OF_WEEK) return undefined;
  const [, word, nth] = /^([A-Z]{3}|\d)(L|#.*)$/.exec(item) ?? [];
  if (word === undefined || nth === undefined) return undefined;
  const weekday = readValue(word, item, rule) % 7;
  if (nth !== 'L' && !/^#[1-5L]$/.test(nth))
    throw wrong(rule, `"${item}": after # comes 1 to 5, or L for the last one`);
  const isNth: DayRule = nth.endsWith('L')
    ? (day, { length }) => day + 7 > length
    : (day) => Math.ceil(day / 7) === Number(nth.slice(1));
  return (day, month) => weekdayOf(day, month) === weekday && isNth(day, month);
}

const topOf = (rule: FieldRule): number => (rule === DAY_OF_WEEK ? 6 : rule.max);

const wrong = (rule: FieldRule, message: string): FieldError => new FieldError(rule.name, message);
