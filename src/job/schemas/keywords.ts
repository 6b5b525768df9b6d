/** The keywords of JSON Schema that are understood, and what the value of each must be. */
import { isObject } from '../envelope/fields';

/** Where subschemas lie below a keyword: it is one, or there are many in a list or by name. */
export const NESTED: Readonly<Record<string, 'one' | 'list' | 'named'>> = {
  not: 'one',
  if: 'one',
  // biome-ignore lint/suspicious/noThenProperty: the name of a keyword
  then: 'one',
  else: 'one',
  contains: 'one',
  propertyNames: 'one',
  items: 'one',
  additionalItems: 'one',
  unevaluatedItems: 'one',
  additionalProperties: 'one',
  unevaluatedProperties: 'one',
  allOf: 'list',
  anyOf: 'list',
  oneOf: 'list',
  prefixItems: 'list',
  properties: 'named',
  patternProperties: 'named',
  dependentSchemas: 'named',
  $defs: 'named',
  definitions: 'named',
};

const TYPES = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'];

const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
const isNumber = (value: unknown) => typeof value === 'number';
const isText = (value: unknown) => typeof value === 'string';
const isTexts = (value: unknown) => Array.isArray(value) && value.every(isText);
const isType = (value: unknown) => TYPES.includes(value as string);

/** What the values of the other keywords must be, and how to say so. */
export const SIMPLE: Readonly<Record<string, [fits: (value: unknown) => boolean, rule: string]>> = {
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
export const REFUSED: ReadonlySet<string> = new Set([
  '$dynamicRef',
  '$dynamicAnchor',
  '$recursiveRef',
  '$recursiveAnchor',
  '$anchor',
  'dependencies',
]);
