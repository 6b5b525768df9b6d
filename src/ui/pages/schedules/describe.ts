/** Describes in English when an expression fires. What is rare is left to the expression itself. */

const NICKNAMES: Readonly<Record<string, string>> = {
  '@hourly': 'every hour',
  '@daily': 'every day at 00:00',
  '@midnight': 'every day at 00:00',
  '@weekly': 'Sunday at 00:00',
  '@monthly': 'the 1st of every month at 00:00',
  '@yearly': '1 January at 00:00',
  '@annually': '1 January at 00:00',
};

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June'],
  ...['July', 'August', 'September', 'October', 'November', 'December'],
];

const isNumber = (field: string) => /^\d+$/.test(field);
const isList = (field: string) => /^\d+(,\d+)*$/.test(field);
const two = (value: string | number) => String(value).padStart(2, '0');

/** @returns undefined: it has no short reading */
export function describe(expression: string): string | undefined {
  const text = expression.trim();
  const nickname = NICKNAMES[text.toLowerCase()];
  if (nickname) return nickname;
  const every = /^@every\s+(\S+)$/i.exec(text)?.[1];
  if (every) return `every ${every.replace(/^PT?/i, '').toLowerCase()}`;
  const fields = text.split(/\s+/);
  if (fields.length < 5 || fields.length > 6) return undefined;
  const [second, minute, hour, day, month, weekday] = fields.length === 6 ? fields : ['0', ...fields];
  const time = timeOf(second as string, minute as string, hour as string);
  const date = dateOf(day as string, month as string, weekday as string);
  if (time === undefined || date === undefined) return undefined;
  if (time.startsWith('at')) return `${date === '' ? 'every day' : date} ${time}`;
  return date === '' ? time : `${time}, ${date}`;
}

function timeOf(second: string, minute: string, hour: string): string | undefined {
  const step = /^\*\/(\d+)$/;
  const span = /^(\d+)-(\d+)$/.exec(hour);
  if (second !== '0') {
    const seconds = step.exec(second)?.[1];
    const isEach = minute === '*' && hour === '*';
    if (isEach && (seconds || second === '*')) return every(seconds ?? '1', 'second');
    const [h, m, s] = [hour, minute, second];
    return [h, m, s].every(isNumber) ? `at ${two(h)}:${two(m)}:${two(s)}` : undefined;
  }
  if (isList(hour) && isList(minute)) {
    const times = hour.split(',').flatMap((h) => minute.split(',').map((m) => `${two(h)}:${two(m)}`));
    return times.length > 6 ? undefined : `at ${listed(times)}`;
  }
  const during = span ? ` from ${two(span[1] ?? '')}:00 to ${two(span[2] ?? '')}:59` : '';
  const minutes = step.exec(minute)?.[1] ?? (minute === '*' ? '1' : undefined);
  if (minutes && (hour === '*' || span)) return every(minutes, 'minute') + during;
  const hours = step.exec(hour)?.[1] ?? (hour === '*' || span ? '1' : undefined);
  if (!hours || !isNumber(minute)) return undefined;
  return `${every(hours, 'hour')}${Number(minute) === 0 ? '' : `, ${minute} minutes past`}${during}`;
}

const every = (count: string, unit: string) => (Number(count) === 1 ? `every ${unit}` : `every ${count} ${unit}s`);

/** Empty: every day. */
function dateOf(day: string, month: string, weekday: string): string | undefined {
  const months = month === '*' ? '' : namesOf(month, MONTHS, 1);
  const isAny = (field: string) => field === '*' || field === '?';
  if (months === undefined || (!isAny(day) && !isAny(weekday))) return undefined;
  if (!isAny(weekday)) {
    const days = /^(1-5|MON-FRI)$/i.test(weekday) ? 'Monday to Friday' : namesOf(weekday, DAYS, 0);
    return days && (months === '' ? days : `${days} in ${months}`);
  }
  if (isAny(day)) return months === '' ? '' : `every day in ${months}`;
  const days = /^L$/i.test(day) ? 'last day' : isList(day) ? listed(day.split(',').map(ordinal)) : undefined;
  return days && `the ${days} of ${months === '' ? 'every month' : months}`;
}

function namesOf(field: string, names: readonly string[], first: number): string | undefined {
  const nameOf = (part: string) =>
    isNumber(part)
      ? names[Number(part) - first]
      : names.find((name) => /^[A-Z]{3}$/i.test(part) && name.slice(0, 3).toLowerCase() === part.toLowerCase());
  const parts = field.split(',').map((part) => {
    const ends = part.split('-').map(nameOf);
    return ends.length > 2 || ends.includes(undefined) ? undefined : ends.join(' to ');
  });
  return parts.includes(undefined) ? undefined : listed(parts as string[]);
}

const listed = (parts: readonly string[]): string =>
  parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;

function ordinal(day: string): string {
  const value = Number(day);
  const isTeen = value >= 11 && value <= 13;
  return `${value}${isTeen ? 'th' : (['th', 'st', 'nd', 'rd'][value % 10] ?? 'th')}`;
}
