/** Readers for members of a request: the typed value, or 400 with the path. The caller handles `null` and absence. */
import { fitsBytes, utf8Bytes } from '../bytes';
import { DURATION_SCHEMA, MAX_DURATION_MS, parseDuration } from '../duration';
import { ApiError, invalidPolicy, invalidRequest, payloadTooLarge } from '../errors';
import { isUuidV7 } from '../ids';
import { own } from '../own';
import { isRawNumber } from './exact';
import { isQueueName, QUEUE_RULE, QUEUE_SCHEMA } from './names';
import { FLAWS, RefusedPart } from './storable';

/** A JSON object: neither null nor an array, nor a number that is kept as it was written. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);
}

export type Schema = Readonly<Record<string, unknown>>;

/** A reader of one member, which says what it accepts. A function without a schema is one too: it accepts anything. */
export interface Reader<T> {
  /** @throws {ApiError} 400 naming `field` */
  (value: unknown, field: string): T;
  /** A function: the form is made at its first use, because it has many members or contains itself. */
  schema?: Schema | (() => Schema);
}

export function described<T>(schema: Schema | (() => Schema), read: (value: unknown, field: string) => T): Reader<T> {
  return Object.assign(read, { schema });
}

export function describe({ schema }: Pick<Reader<unknown>, 'schema'>): Schema {
  return typeof schema === 'function' ? schema() : (schema ?? {});
}

/** A reader of values that `parse` accepts, not undefined. @param rule what the value must be, for the message */
export function reader<T>(
  parse: (value: unknown) => T | undefined,
  rule: string,
  schema: Schema | (() => Schema) = { description: rule },
): Reader<T> {
  return described(schema, (value, field) => {
    const parsed = parse(value);
    if (parsed !== undefined) return parsed;
    throw invalidRequest(field, `${field} ${rule}.`);
  });
}

/** A reader of texts that fit, of whole characters. */
export function readText(
  fits: (text: string) => boolean,
  rule: string,
  schema: Schema = { description: rule },
): Reader<string> {
  return described({ type: 'string', ...schema }, (value, field) => {
    if (typeof value === 'string' && !value.isWellFormed()) throw invalidRequest(field, `${field} ${FLAWS.not_text}.`);
    if (typeof value === 'string' && fits(value)) return value;
    throw invalidRequest(field, `${field} ${rule}.`);
  });
}

/** A JSON object. @throws {ApiError} also why it cannot be stored, if it is a {@link RefusedPart} */
export const readObject = reader(
  (value) => {
    if (value instanceof RefusedPart) throw value.error;
    return isObject(value) ? value : undefined;
  },
  'must be an object',
  { type: 'object' },
);

export const readBoolean = reader(
  (value) => (typeof value === 'boolean' ? value : undefined),
  'must be true or false',
  {
    type: 'boolean',
  },
);

/** Any string, also one that is not stored as it is: an id to look for, or the text of an error. */
export const readString = reader((value) => (typeof value === 'string' ? value : undefined), 'must be a string', {
  type: 'string',
});

export function readInteger(min: number, max: number): Reader<number> {
  return reader(
    (value) => {
      const fits = typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
      // Adding 0 turns −0 into 0.
      return fits ? value + 0 : undefined;
    },
    `must be an integer from ${min} to ${max}`,
    { type: 'integer', minimum: min, maximum: max },
  );
}

export function readNumber(min: number, max: number): Reader<number> {
  return reader(
    (value) => (typeof value === 'number' && value >= min && value <= max ? value + 0 : undefined),
    `must be a number from ${min} to ${max}`,
    { type: 'number', minimum: min, maximum: max },
  );
}

/** A positive number of milliseconds, at most 36,500 days. */
export const readMilliseconds: Reader<number> = readInteger(1, MAX_DURATION_MS);

/** A duration in any of the accepted forms; returns milliseconds. */
export const readDuration = reader(
  parseDuration,
  'must be a duration such as "PT30S", "30s" or an integer of milliseconds',
  DURATION_SCHEMA,
);

/** {@link readDuration}, above zero. */
export const readPositive: Reader<number> = described(DURATION_SCHEMA, (value, field) => {
  const ms = readDuration(value, field);
  if (ms > 0) return ms;
  throw invalidRequest(field, `${field} must be longer than zero.`);
});

/** Whatever is there: another reader looks at it. */
export const readAny: Reader<unknown> = (value) => value;

/** A name: 1 to `max` characters, without U+0000. */
export function readName(max: number): Reader<string> {
  return readText(
    (text) => text !== '' && text.length <= max && !text.includes('\0'),
    `must be a string of 1 to ${max} characters without U+0000`,
    { minLength: 1, maxLength: max },
  );
}

/** As URL parsers read them, encoded or not, these segments of a path lead elsewhere. */
const DOTS = /^(\.|%2e){1,2}$/i;

/** A free name that is a segment of paths: as {@link readName}, and neither `.` nor `..`. */
export function readPathName(max: number): Reader<string> {
  return readText(
    (text) => text !== '' && text.length <= max && !text.includes('\0') && !DOTS.test(text),
    `must be a string of 1 to ${max} characters without U+0000, and neither "." nor ".."`,
    { minLength: 1, maxLength: max },
  );
}

export const readQueueName = readText(isQueueName, QUEUE_RULE, QUEUE_SCHEMA);

export const readUuidV7 = readText(isUuidV7, 'must be a UUIDv7 in lower case', { format: 'uuid' });

export function readList<T>(max: number, item: Reader<T>): Reader<T[]> {
  const schema = () => ({ type: 'array', items: describe(item), maxItems: max });
  return described(schema, (value, field) => {
    if (!Array.isArray(value)) throw invalidRequest(field, `${field} must be an array.`);
    if (value.length > max)
      throw invalidRequest(field, `${field} has ${value.length} entries, at most ${max} are allowed.`);
    return value.map((entry: unknown, index) => item(entry, `${field}[${index}]`));
  });
}

/** A list with at least one entry, without repetitions. */
export function readSome<T>(max: number, item: Reader<T>): Reader<T[]> {
  const read = readList(max, item);
  return described(
    () => ({ ...describe(read), minItems: 1 }),
    (value, field) => {
      const list = read(value, field);
      if (list.length === 0) throw invalidRequest(field, `${field} must have at least one entry.`);
      return [...new Set(list)];
    },
  );
}

export function readWord<const T extends string>(words: readonly T[]): Reader<T> {
  const rule = `must be one of ${words.join(', ')}`;
  return reader((value) => words.find((word) => word === value), rule, { type: 'string', enum: words });
}

/** One of these words, each of which stands for a value. */
export function readMeaning<T>(meanings: Readonly<Record<string, T>>): Reader<T> {
  const word = readWord(Object.keys(meanings));
  return described(describe(word), (value, field) => own(meanings, word(value, field)) as T);
}

/** A reader for a part of a policy: mistakes are 422, not 400. */
export function inPolicy<T>(read: Reader<T>): Reader<T> {
  return described(
    () => describe(read),
    (value, path) => {
      try {
        return read(value, path);
      } catch (error) {
        if (!(error instanceof ApiError) || error.data.status !== 400) throw error;
        const field = String(error.data.details?.field);
        throw invalidPolicy(field, error.message.slice(field.length + 1).replace(/\.$/, ''));
      }
    },
  );
}

/** The JSON object that the text is; undefined when it is none. @param read what turns text into a value */
export function parseObject(
  text: string,
  read: (text: string) => unknown = JSON.parse,
): Record<string, unknown> | undefined {
  try {
    const value = read(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** `text`, of at most `max` bytes in UTF-8. @throws {ApiError} 413 naming `field` */
export function withinBytes(text: string, max: number, field: string): string {
  if (!fitsBytes(text, max)) throw payloadTooLarge(field, utf8Bytes(text), max);
  return text;
}

/** Reads `record[name]` unless it is absent or null. `path` is the prefix of the field's name, e.g. `error.`. */
export function optional<T>(record: Record<string, unknown>, name: string, read: Reader<T>, path = ''): T | undefined {
  const value = own(record, name);
  return value === undefined || value === null ? undefined : read(value, path + name);
}

/** `T` without `undefined` as a value: members that may be undefined may be absent instead. */
export type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** The members that are not undefined, in the same order: what is absent stays absent. */
export function defined<T extends object>(members: T): Defined<T> {
  const present: Partial<T> = {};
  for (const name in members) if (members[name] !== undefined) present[name] = members[name];
  return present as unknown as Defined<T>;
}

/** Sets a member unless its value is undefined; {@link defined} copies too much where there are very many objects. */
export function setDefined<T extends object, Name extends keyof T>(
  target: T,
  name: Name,
  value: T[Name] | undefined,
): void {
  if (value !== undefined) target[name] = value;
}

/** `render(value)`, unless there is no value. */
export function given<T, R>(value: T | undefined, render: (value: T) => R): R | undefined {
  return value === undefined ? undefined : render(value);
}
