/** Checks a JSON Schema before it is registered, and bounds the cost of a validation by it. */
import { utf8Bytes } from '../job/bytes';
import { isObject } from '../job/envelope/fields';
import { type ApiError, invalidRequest, payloadTooLarge } from '../job/errors';
import { quote } from '../job/text';
import { Pattern } from './pattern';

export type JsonSchema = Record<string, unknown>;

/** Bytes of a schema as JSON, levels of nesting, and schemas in it with references expanded. */
export const MAX_SCHEMA_BYTES = 65_536;
const MAX_LEVELS = 32;
const MAX_UNFOLDED = 10_000;

/** States of all patterns of a schema, which are kept in memory. */
const MAX_STATES = 20_000;

type Nesting = 'one' | 'list' | 'named';
const nesting = (kind: Nesting, keywords: string) => keywords.split(' ').map((name) => [name, kind] as const);

/** Where subschemas lie below a keyword: it is one, or there are many in a list or by name. */
const NESTED: ReadonlyMap<string, Nesting> = new Map([
  ...nesting('one', 'not if then else contains propertyNames items additionalItems unevaluatedItems'),
  ...nesting('one', 'additionalProperties unevaluatedProperties'),
  ...nesting('list', 'allOf anyOf oneOf prefixItems'),
  ...nesting('named', 'properties patternProperties dependentSchemas $defs definitions'),
]);

const TYPES = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'];

const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
const isNumber = (value: unknown) => typeof value === 'number';
const isText = (value: unknown) => typeof value === 'string';
const isTexts = (value: unknown) => Array.isArray(value) && value.every(isText);
const isType = (value: unknown) => TYPES.includes(value as string);

/** What the values of the other keywords must be, and how to say so. */
const SIMPLE: Readonly<Record<string, [fits: (value: unknown) => boolean, rule: string]>> = {
  type: [
    (value) => isType(value) || (Array.isArray(value) && value.length > 0 && value.every(isType)),
    `must be one of ${TYPES.join(', ')}, or a list of them`,
  ],
  enum: [(value) => Array.isArray(value) && value.length <= 10_000, 'must be a list of at most 10000 values'],
  const: [() => true, ''],
  required: [isTexts, 'must be a list of names'],
  dependentRequired: [(value) => isObject(value) && Object.values(value).every(isTexts), 'must have lists of names'],
  multipleOf: [(value) => isNumber(value) && (value as number) > 0, 'must be a number above 0'],
  uniqueItems: [(value) => typeof value === 'boolean', 'must be true or false'],
  pattern: [isText, 'must be a string'],
  format: [isText, 'must be a string'],
  $ref: [(value) => isText(value) && /^#(?:\/|$)/.test(value as string), 'must point into the same schema: #/…'],
  ...Object.fromEntries(
    ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'].map((name) => [
      name,
      [isNumber, 'must be a number'],
    ]),
  ),
  ...Object.fromEntries(
    ['Length', 'Items', 'Properties', 'Contains']
      .flatMap((what) => [`min${what}`, `max${what}`])
      .map((name) => [name, [isCount, 'must be a whole number from 0']]),
  ),
};

/** Keywords that would lead elsewhere than the schema says on its face. */
const REFUSED = ['$dynamicRef', '$dynamicAnchor', '$recursiveRef', '$recursiveAnchor', '$anchor', 'dependencies'];

/** Refuses what may not be registered. @param field its path in the request @throws {ApiError} 400, 413 */
export function checkSchema(schema: unknown, field: string): JsonSchema {
  if (!isObject(schema)) throw invalidRequest(field, `${field} must be a JSON Schema: an object.`);
  const bytes = utf8Bytes(JSON.stringify(schema));
  if (bytes > MAX_SCHEMA_BYTES) throw payloadTooLarge(field, bytes, MAX_SCHEMA_BYTES);
  if (!Object.keys(schema).some((name) => Object.hasOwn(SIMPLE, name) || NESTED.has(name))) {
    throw invalidRequest(field, `${field} has no effect: none of its members is a keyword of JSON Schema.`);
  }
  const checker = new Checker(field);
  checker.check(schema, '', 0);
  checker.unfold('');
  return schema;
}

class Checker {
  private readonly below = new Map<string, string[]>();
  private readonly sizes = new Map<string, number>();

  private states = 0;

  constructor(private readonly field: string) {}

  /** @param place a JSON pointer */
  check(schema: unknown, place: string, level: number): void {
    if (level > MAX_LEVELS) throw this.refusal(place, `is nested more than ${MAX_LEVELS} levels deep`);
    const below: string[] = [];
    this.below.set(place, below);
    if (typeof schema === 'boolean') return;
    if (!isObject(schema)) throw this.refusal(place, 'must be a schema: an object, true or false');
    for (const [name, value] of Object.entries(schema)) {
      const at = `${place}/${escaped(name)}`;
      if (REFUSED.includes(name) || (name === '$id' && place !== '')) throw this.refusal(at, 'is not supported');
      const nesting = NESTED.get(name);
      if (nesting) {
        for (const [path, child] of this.children(nesting, value, at)) {
          if (name === 'patternProperties') this.checkPattern(unescaped(path.slice(at.length + 1)), path);
          this.check(child, path, level + 1);
          // What is only defined costs nothing until it is referred to.
          if (name !== '$defs' && name !== 'definitions') below.push(path);
        }
        continue;
      }
      const [fits, rule] = (Object.hasOwn(SIMPLE, name) && SIMPLE[name]) || [];
      if (fits && !fits(value)) throw this.refusal(at, rule as string);
      if (name === 'pattern') this.checkPattern(value as string, at);
      if (name === '$ref') below.push(pointerOf(value as string));
    }
  }

  /** How many schemas there are from here on, references put in their places. */
  unfold(place: string, way: readonly string[] = []): number {
    const known = this.sizes.get(place);
    if (known !== undefined) return known;
    const below = this.below.get(place);
    const from = way.at(-1) ?? '';
    if (!below) throw this.refusal(`${from}/$ref`, `points to ${quote(place)}, which is not a schema`);
    if (way.includes(place)) throw this.refusal(`${from}/$ref`, 'points to a schema that contains it');
    let size = 1;
    for (const child of below) size += this.unfold(child, [...way, place]);
    if (size > MAX_UNFOLDED) throw this.refusal(place, `is too large with its references resolved`);
    this.sizes.set(place, size);
    return size;
  }

  private children(nesting: Nesting, value: unknown, at: string): [place: string, schema: unknown][] {
    if (nesting === 'one' && !(Array.isArray(value) && at.endsWith('/items'))) return [[at, value]];
    if (nesting === 'list' && !(Array.isArray(value) && value.length > 0))
      throw this.refusal(at, 'must be a list of schemas');
    if (nesting === 'named' && !isObject(value)) throw this.refusal(at, 'must have schemas by name');
    return Object.entries(value as object).map(([name, schema]) => [`${at}/${escaped(name)}`, schema]);
  }

  private checkPattern(source: string, at: string): void {
    const pattern = Pattern.of(source);
    if (typeof pattern === 'string') throw this.refusal(at, `: the pattern ${quote(source)} ${pattern}`);
    this.states += pattern.size;
    if (this.states > MAX_STATES) throw this.refusal(at, ': the patterns of the schema are too large together');
  }

  private refusal(place: string, why: string): ApiError {
    const path = this.field + place;
    return invalidRequest(path, `${quote(path)}${why.startsWith(':') ? '' : ' '}${why}.`);
  }
}

const escaped = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1');
export const unescaped = (name: string) => name.replaceAll('~1', '/').replaceAll('~0', '~');

/** The pointer of a `$ref` within its schema: `/$defs/name`. */
export function pointerOf(reference: string): string {
  try {
    return decodeURIComponent(reference.slice(1));
  } catch {
    return reference.slice(1);
  }
}
