/** Validates arguments against a schema that was checked when it was registered (`check.ts`). */
import { type Schema, type SchemaDraft, Validator } from '@cfworker/json-schema';
import { isObject } from '../envelope/fields';
import { cut } from '../text';
import type { JsonSchema } from './check';
import { NESTED, SIMPLE } from './keywords';
import type { Misfit } from './misfit';
import { longestFor } from './pattern';

/** How much is told of one job that does not fit. */
const MAX_MISFITS = 10;
const MAX_MESSAGE = 300;

/** Lists longer than this are not searched for repetitions: that takes the square of their length. */
const LONGEST_UNIQUE = 1_000;

/** Texts longer than this are tried on no format. */
const LONGEST_FORMAT = 2_048;

/** Characters of arguments up to which all that does not fit is looked for; of larger ones, the first thing. */
const MAX_SEARCHED = 65_536;

const DRAFTS: readonly [RegExp, SchemaDraft][] = [
  [/draft-04/, '4'],
  [/draft-0[67]/, '7'],
  [/2019-09/, '2019-09'],
];

/** These only say that something below them does not fit. */
const WRAPPERS = [
  ...['properties', 'patternProperties', 'additionalProperties', 'unevaluatedProperties', 'propertyNames'],
  ...['items', 'prefixItems', 'additionalItems', 'unevaluatedItems', 'allOf', '$ref', 'if'],
];

/** Finds what does not fit; nothing when all does. */
export type Validate = (args: readonly unknown[], chars: number) => Misfit[];

/**
 * The validator of a schema. One whose `type` is `object` is about the first argument, as args are always a list; any other
 * about the list.
 */
export function validatorOf(schema: JsonSchema): Validate {
  const isAboutFirst = schema.type === 'object';
  const guarded = guard(schema) as Schema;
  const draft = DRAFTS.find(([name]) => name.test(String(schema.$schema ?? '')))?.[1] ?? '2020-12';
  const all = new Validator(structuredClone(guarded), draft, false);
  const first = new Validator(guarded, draft, true);
  const root = isAboutFirst ? 'args[0]' : 'args';
  return (args, chars) => {
    const value = isAboutFirst ? (args[0] ?? null) : args;
    const { valid, errors } = (chars > MAX_SEARCHED ? first : all).validate(value);
    if (valid) return [];
    const told = errors.filter(({ keyword }) => !WRAPPERS.includes(keyword));
    return (told.length > 0 ? told : errors).slice(0, MAX_MISFITS).map(({ instanceLocation, error, keyword }) => ({
      path: root + pathOf(instanceLocation),
      message: cut(keyword === 'false' ? 'Nothing may stand here.' : error, MAX_MESSAGE),
    }));
  };
}

/**
 * The same schema, without what only explains it, in which what takes more than the length of a text or list is not tried on long ones: these do not fit.
 * The validator tries all keywords of a schema at once, so each stands behind a condition of its own.
 */
function guard(schema: unknown): unknown {
  if (!isObject(schema)) return schema;
  const guarded: JsonSchema = {};
  const conditions: JsonSchema[] = [];
  for (const [name, value] of Object.entries(schema)) {
    if (Object.hasOwn(NESTED, name)) guarded[name] = guardBelow(NESTED[name] as string, value);
    else if (name === 'pattern')
      conditions.push(unlessLonger('maxLength', longestFor(value as string), { pattern: value }));
    else if (name === 'format') conditions.push(unlessLonger('maxLength', LONGEST_FORMAT, { format: value }));
    else if (name === 'uniqueItems' && value === true)
      conditions.push(unlessLonger('maxItems', LONGEST_UNIQUE, { uniqueItems: true }));
    else if (Object.hasOwn(SIMPLE, name)) guarded[name] = value;
  }
  if (conditions.length > 0) guarded.allOf = [...((guarded.allOf as unknown[] | undefined) ?? []), ...conditions];
  return guarded;
}

function guardBelow(kind: string, value: unknown): unknown {
  if (Array.isArray(value)) return value.map(guard);
  if (kind !== 'named' || !isObject(value)) return guard(value);
  return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, guard(child)]));
}

function unlessLonger(bound: 'maxLength' | 'maxItems', longest: unknown, what: JsonSchema): JsonSchema {
  // biome-ignore lint/suspicious/noThenProperty: the name of a keyword
  return { if: { [bound]: longest }, then: what, else: { [bound]: longest } };
}

/** `#/0/customer/name` as `[0].customer.name`. */
function pathOf(location: string): string {
  const names = location.split('/').slice(1);
  return names
    .map((part) => decode(part))
    .map((name) =>
      /^\d+$/.test(name) ? `[${name}]` : /^[\w$-]+$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`,
    )
    .join('');
}

function decode(part: string): string {
  const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
