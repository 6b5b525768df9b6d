/** Cron expressions (`docs/guides/schedules.md`): five or six fields, `@daily` and others, `@every` and a duration. */
import { MAX_DURATION_MS, parseDuration } from '../job/duration';
import { invalidRequest } from '../job/errors';
import { quote } from '../job/text';
import type { Calendar } from './calendar';
import { FieldError, readFields } from './fields';

export type Expression = { kind: 'cron'; calendar: Calendar } | { kind: 'every'; ms: number };

const SHORTHANDS: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};

const MIN_EVERY_MS = 1000;
const MAX_LENGTH = 1000;

/** Reads an expression. @param field its path in the request @throws {ApiError} 400 naming the wrong part and why */
export function parseExpression(text: unknown, field: string): Expression {
  if (typeof text !== 'string' || text.trim() === '') {
    throw invalidRequest(field, `${field} must be a cron expression such as "0 2 * * *", "@daily" or "@every 5m".`);
  }
  if (text.length > MAX_LENGTH) throw invalidRequest(field, `${field} has more than ${MAX_LENGTH} characters.`);
  const words = text.trim().split(/\s+/);
  if (words[0]?.startsWith('@')) return readShorthand(words, field);
  return readCron(words, field);
}

function readCron(words: readonly string[], field: string): Expression {
  try {
    return { kind: 'cron', calendar: readFields(words) };
  } catch (error) {
    if (!(error instanceof FieldError)) throw error;
    const where = error.field === 'expression' ? '' : `the ${error.field} `;
    throw invalidRequest(field, `${field}: ${where}${error.message}.`, { cron_field: error.field });
  }
}

function readShorthand(words: readonly string[], field: string): Expression {
  const word = (words[0] ?? '').toLowerCase();
  if (word === '@every') return { kind: 'every', ms: readInterval(words.slice(1).join(''), field) };
  const meaning = Object.hasOwn(SHORTHANDS, word) ? SHORTHANDS[word] : undefined;
  if (meaning === undefined || words.length > 1) {
    const known = [...Object.keys(SHORTHANDS), '@every <duration>'].join(', ');
    throw invalidRequest(field, `${field}: "${quote(words.join(' '))}" is not a shorthand; use one of ${known}.`);
  }
  return readCron(meaning.split(' '), field);
}

function readInterval(text: string, field: string): number {
  const ms = parseDuration(text) ?? parseGoDuration(text);
  if (ms === undefined)
    throw invalidRequest(field, `${field}: @every needs a duration such as "90s", "1h30m" or "PT5M".`);
  if (ms < MIN_EVERY_MS) throw invalidRequest(field, `${field}: @every needs at least one second.`);
  return ms;
}

/** Several numbers with units in falling order, as Go writes durations: `1h30m`. */
function parseGoDuration(text: string): number | undefined {
  const match = /^(?=.)(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?$/.exec(text);
  if (!match) return undefined;
  const [hours, minutes, seconds, millis] = match.slice(1).map((digits) => Number(digits ?? 0));
  const ms = (hours ?? 0) * 3_600_000 + (minutes ?? 0) * 60_000 + Math.round((seconds ?? 0) * 1000) + (millis ?? 0);
  return ms <= MAX_DURATION_MS ? ms : undefined;
}
