/**
 * Payloads for callers that may not see all of them. A rule is the end of a path: names joined by dots, without
 * regard to case; `*` is any one name.
 *
 * | rule | replaces |
 * |---|---|
 * | `password` | every member of this name, at any depth |
 * | `card.number`, `card.*` | this member, or every member, of an object named `card` |
 * | `args.0`, `meta.email` | the first argument; this member of `meta` |
 * | `result` | every result |
 * | `stream`, `stream.tokens` | the chunks of all output streams; those of one |
 *
 * Paths begin with the payload's member (`args`, `meta`, `result`, …); positions in arrays may be left out. Ids,
 * states, times, codes and types of errors are never replaced. `tags`, `group` and `rate_limit.key` reach beyond
 * payloads and are replaced by pseudonyms, which stay distinguishable.
 */
import { v5 as nameBased } from 'uuid';
import { defined, isObject } from '../job/envelope/fields';
import { UNKNOWN_MEMBERS } from '../job/envelope/render';
import { namedGroup, namedKey, overridePath } from '../job/waiting';

export const REDACTED = '[redacted]';

const PSEUDONYM = '[redacted:';

/** Is this what stands for something, rather than the thing itself? */
export const isPseudonym = (text: string) => text.startsWith(PSEUDONYM);

/** Is something in this JSON text that stands for what is not shown? */
export const holdsRedacted = (json: string) =>
  json.includes(JSON.stringify(REDACTED)) || json.includes(`"${PSEUDONYM}`);

/** The namespace of pseudonyms, so that they are not a hash of anything else. */
const SPACE = '6f1d3f0a-5a52-4c52-9a0e-6d2b7d1f0c11';

/** Makes pseudonyms, `[redacted:3fa9c1d20b7e]`, equal for equal texts. Without the secret no guess can be tested. */
export function pseudonyms(secret: string): (text: string) => string {
  const space = nameBased(secret, SPACE);
  return (text) => {
    const [first, second] = nameBased(text, space).split('-');
    return `${PSEUDONYM}${first}${second}]`;
  };
}

type Rule = readonly string[];
export type RedactionRules = readonly Rule[];

/** Rules at most, and names and characters of one. */
const MAX_RULES = 200;
const MAX_NAMES = 16;
const MAX_CHARACTERS = 256;

/** Hold what an application or its handlers have said. */
const PAYLOADS: ReadonlySet<string> = new Set([
  'args',
  'meta',
  'metadata',
  'result',
  'parent_results',
  'progress_data',
  'checkpoint',
  'fields',
  'payload',
  'stream',
]);

/** Of a durable step: what its handler has said. A signal has its payload. */
const STEP_PAYLOADS: ReadonlySet<string> = new Set(['result', 'error']);

/** In the audit log. Earlier releases have stored what was long as text, which no path leads into. */
const AUDITED: ReadonlySet<string> = new Set(['change', 'filter']);

/** Of an error: what its handler has said, not what the protocol makes of it. */
const ERROR_TEXTS: ReadonlySet<string> = new Set(['message', 'stack', 'backtrace', 'details']);

/** Reads rules. @throws {Error} naming the rule that is wrong */
export function readRedactionRules(texts: readonly string[]): RedactionRules {
  if (texts.length > MAX_RULES) throw new Error(`there may be ${MAX_RULES} rules at most`);
  return texts.map((text) => {
    const names = text.toLowerCase().split('.');
    // Brackets and quotes are those of a JSON list: as a rule they would redact nothing.
    const fits = names.every((name) => name === '*' || /^[^\s,*[\]{}"]+$/.test(name));
    if (fits && names.length <= MAX_NAMES && text.length <= MAX_CHARACTERS) return names;
    throw new Error(`"${text.slice(0, 60)}" must be names joined by dots, each whole or "*", such as card.number`);
  });
}

type Fits = readonly (readonly [rule: Rule, met: number])[];

/** Makes a copy of an answer without what not everybody may see. */
export interface Redactor {
  <T>(answer: T): T;
  /** How a key that jobs count under is shown; absent: as it is. */
  limitKey?: (key: string) => string;
}

const TAGS = 'tags';
const GROUPS = 'group';
const LIMIT_KEYS = 'rate_limit.key';

/** Makes a redactor, which returns copies. @param pseudonym of a tag, a group, or a limit key */
export function redactor(rules: RedactionRules, pseudonym = pseudonyms('')): Redactor {
  const names = new Set(rules.map((rule) => rule.join('.')));
  const [hidesTags, hidesKeys] = [names.has(TAGS), names.has(LIMIT_KEYS)];
  const hidesGroups = hidesKeys || names.has(GROUPS);

  /** The rules at a member of this name; null: one is met, the value is not shown. */
  const at = (name: string, before: Fits): Fits | null => {
    const lower = name.toLowerCase();
    const after: [Rule, number][] = [];
    for (const [rule, met] of [...rules.map((rule) => [rule, 0] as const), ...before]) {
      if (rule[met] !== '*' && rule[met] !== lower) continue;
      if (met + 1 === rule.length) return null;
      after.push([rule, met + 1]);
    }
    return after;
  };

  const member = (name: string, value: unknown, before: Fits): unknown => {
    const fits = at(name, before);
    return fits === null ? REDACTED : inside(value, fits);
  };

  const inside = (value: unknown, fits: Fits): unknown => {
    if (Array.isArray(value)) {
      return value.map((item: unknown, place) => {
        const named = at(String(place), fits);
        return named === null ? REDACTED : inside(item, [...fits, ...named]);
      });
    }
    return isObject(value) ? mapped(value, (item, name) => member(name, item, fits)) : value;
  };

  /** A payload as a whole; one that is hidden keeps its form, so that clients can read the answer. */
  const payload = (name: string, value: unknown): unknown => {
    const fits = at(name, []);
    if (fits !== null) return inside(value, fits);
    if (Array.isArray(value)) return value.map(() => REDACTED);
    if (isObject(value)) return mapped(value, () => REDACTED);
    return value === null ? null : REDACTED;
  };

  /** An error, a list of errors, or the message of one. */
  const error = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(error);
    const fits = at('error', []);
    const errorText = (name: string, item: unknown) => (fits === null ? REDACTED : member(name, item, fits));
    if (typeof value === 'string') return errorText('message', value);
    return isObject(value)
      ? mapped(value, (item, name) => (ERROR_TEXTS.has(name) ? errorText(name, item) : around(item)))
      : value;
  };

  /** In the audit log, what is done to a limit key or a group has that as its target. */
  const isHiddenTarget = (action: unknown) =>
    typeof action === 'string' &&
    ((hidesKeys && action.startsWith('limit.')) || (hidesGroups && action.startsWith('group.')));

  const hidden = (value: unknown): unknown =>
    Array.isArray(value) ? value.map(hidden) : typeof value === 'string' && value !== '' ? pseudonym(value) : value;

  /** The limits of a job, or what it waits for. Only the words that name its key or group are replaced in a text. */
  const withoutNames = ({ key, group, detail, ...others }: Naming): Naming => {
    // An object of an earlier release names the group in words alone.
    if (group === undefined && others.reason?.startsWith('group')) return { ...others, detail: REDACTED };
    const named: [say: (name: string) => string, name: string][] = [];
    if (hidesKeys && key !== undefined) named.push([namedKey, key], [overridePath, key]);
    if (hidesGroups && group !== undefined) named.push([namedGroup, group]);
    const text = named.reduce((all, [say, name]) => all?.replaceAll(say(name), () => say(pseudonym(name))), detail);
    const shownKey = key !== undefined && hidesKeys ? pseudonym(key) : key;
    return { ...others, ...defined({ detail: text, group, key: shownKey }) };
  };

  /** What the protocol says, with payloads somewhere in it. */
  const around = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(around);
    if (!isObject(value)) return value;
    const unknown = (value as { [UNKNOWN_MEMBERS]?: readonly string[] })[UNKNOWN_MEMBERS];
    return mapped(value, (item, name) => {
      if (hidesTags && (name === 'tags' || name === 'tag')) return hidden(item);
      if (hidesGroups && name === 'group' && !isSchedule(value)) return hidden(item);
      if (hidesGroups && isNaming(name, item)) return around(withoutNames(item));
      if (name === 'target' && isHiddenTarget((value as { action?: unknown }).action)) return hidden(item);
      if (PAYLOADS.has(name) || unknown?.includes(name)) return payload(name, item);
      // The state of a checkpoint; that of a job is a word.
      if (name === 'state' && typeof item === 'object') return payload(name, item);
      if (name === 'steps' && isObject(item)) return mapped(item, step);
      if (AUDITED.has(name) && isObject(item) && typeof item.text === 'string' && item.truncated === true) {
        return { ...item, text: REDACTED };
      }
      if (name === 'data') return Object.hasOwn(value, 'progress') ? payload(name, item) : dataOf(value, item);
      return name === 'error' || name === 'errors' || name === 'sample' ? error(item) : around(item);
    });
  };

  /** The record of a step. Its name is the handler's, and says nothing of what lies there. */
  const step = (record: unknown): unknown =>
    isObject(record)
      ? mapped(record, (item, name) => (STEP_PAYLOADS.has(name) ? payload(name, item) : around(item)))
      : record;

  /** The data of an event are the protocol's; a history has failures there. */
  const dataOf = (event: object, data: unknown) => (Object.hasOwn(event, 'event_type') ? error(data) : around(data));

  const redact = <T>(answer: T) => around(answer) as T;
  return hidesKeys ? Object.assign(redact, { limitKey: pseudonym }) : redact;
}

/** A member of an answer that may name a key that jobs count under, or a group. */
interface Naming {
  key?: string;
  group?: string;
  detail?: string;
  reason?: string;
}

const NAMING = ['key', 'group', 'detail', 'reason'] as const;

/** An application may have a member of this name, which can hold anything. */
const isNaming = (name: string, value: unknown): value is Naming =>
  (name === 'rate_limit' || name === 'waiting_for') &&
  isObject(value) &&
  NAMING.every((member) => value[member] === undefined || typeof value[member] === 'string');

/** The group of a schedule is another one: of schedules that are declared together. */
const isSchedule = (value: object) => Object.hasOwn(value, 'cron') || Object.hasOwn(value, 'expression');

/** `Object.fromEntries` defines its members, so that one named `__proto__` is an ordinary one. */
const mapped = (value: object, change: (item: unknown, name: string) => unknown): Record<string, unknown> =>
  Object.fromEntries(Object.entries(value).map(([name, item]) => [name, change(item, name)]));
