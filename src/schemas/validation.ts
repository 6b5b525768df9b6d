/** Validates values against schemas, and counts steps: a harmless schema can be slow for a hostile value. */
import { isObject } from '../job/envelope/fields';
import { getOrInsert } from '../job/get-or-insert';
import { own } from '../job/own';
import { type JsonSchema, pointerOf, unescaped } from './check';
import { FORMATS } from './formats';
import { Pattern } from './pattern';
import { isMultipleOf, keyOf, lengthOf, typeOf } from './values';
import { OutOfWork, Work } from './work';

/** Bound of the report about one value that does not match. */
const MAX_FOUND = 10;

/** Texts longer than this are tried on no format. */
const LONGEST_FORMAT = 2_048;

/** Where a value lies below the one that is validated; undefined: it is that one. */
export interface ValuePlace {
  above: ValuePlace | undefined;
  name: string | number;
}

export interface Found {
  place: ValuePlace | undefined;
  message: string;
}

interface At {
  value: unknown;
  place: ValuePlace | undefined;
  /** Collects what does not fit; undefined: only whether all fits is asked. */
  sink: Found[] | undefined;
  /** Names and indexes of what some keyword has judged; undefined: no `unevaluated…` asks. */
  seen: Set<string | number> | undefined;
}

/** What is known of a schema once it was used. */
interface Known {
  steps: number;
  /** The values that are allowed, by their keys. */
  const?: ReadonlySet<unknown>;
  enum?: ReadonlySet<unknown>;
}

/** Is the report full? Then the first mismatch ends the search. */
const isFull = ({ sink }: At) => sink === undefined || sink.length >= MAX_FOUND;

/** Tells what does not fit. @returns false, as it does not */
function no({ sink, place }: At, message: string): false {
  if (sink && sink.length < MAX_FOUND) sink.push({ place, message });
  return false;
}

/** Do all fit, and did those before them? Looks at no more of them once the report is full. */
function all<T>(at: At, fitSoFar: boolean, each: readonly T[], fits: (one: T, index: number) => boolean): boolean {
  let fit = fitSoFar;
  for (let index = 0; index < each.length && (fit || !isFull(at)); index++) {
    if (!fits(each[index] as T, index)) fit = false;
  }
  return fit;
}

/** A comparison with a bound that a schema does not have is false. */
type Bounds = Record<'minimum' | 'maximum' | 'exclusiveMinimum' | 'exclusiveMaximum', number> &
  Record<`${'min' | 'max'}${'Length' | 'Items' | 'Properties' | 'Contains'}`, number>;

const list = (value: unknown) => value as readonly unknown[];
const names = (value: unknown) => value as Readonly<Record<string, unknown>>;

/** Validates any number of values against a schema, one after the other. */
export class Validation {
  private readonly known = new WeakMap<object, Known>();
  private readonly references = new Map<string, unknown>();
  private readonly patterns = new Map<string, Pattern | string>();
  private work = new Work();

  /** @param refersAlone a schema with `$ref` says nothing else, as up to draft 7 */
  constructor(
    private readonly root: JsonSchema,
    private readonly refersAlone: boolean,
  ) {}

  /** What does not fit; nothing when all does. @throws {OutOfWork} */
  find(value: unknown, work: Work): Found[] {
    this.work = work;
    const sink: Found[] = [];
    this.fits(this.root, { value, place: undefined, sink, seen: undefined });
    return sink;
  }

  fits(schema: unknown, at: At): boolean {
    if (!isObject(schema)) {
      this.work.spend(1);
      return schema !== false || no(at, 'No value is allowed here.');
    }
    this.work.spend(this.knownOf(schema).steps);
    const isAsked = 'unevaluatedProperties' in schema || 'unevaluatedItems' in schema;
    const own: At = { ...at, seen: at.seen || isAsked ? new Set() : undefined };
    let fits = this.general(schema, own);
    if (fits || !isFull(own)) fits = this.byType(schema, own) && fits;
    if (fits && at.seen && own.seen) this.merge(own.seen, at.seen);
    return fits;
  }

  private merge(from: ReadonlySet<string | number>, to: Set<string | number>): void {
    this.work.spend(from.size);
    for (const name of from) to.add(name);
  }

  /** What holds for values of any type. */
  private general(schema: JsonSchema, at: At): boolean {
    let fits = true;
    const { $ref, type, not, anyOf, allOf, oneOf } = schema;
    if ($ref !== undefined) {
      fits = this.fits(this.resolve($ref as string), at);
      if (this.refersAlone) return fits;
    }
    if (type !== undefined && !this.isOfType(type, at.value)) {
      const expected = (Array.isArray(type) ? type : [type]).join('", "');
      fits = no(at, `Instance type "${typeOf(at.value)}" is invalid. Expected "${expected}".`);
    }
    if ('const' in schema && !this.isAllowed(schema, 'const', [schema.const], at.value)) {
      fits = no(at, `Instance does not match ${this.shown(schema.const, at)}.`);
    }
    if ('enum' in schema && !this.isAllowed(schema, 'enum', list(schema.enum), at.value)) {
      fits = no(at, `Instance does not match any of ${this.shown(schema.enum, at)}.`);
    }
    if (!fits && isFull(at)) return false;
    if (not !== undefined && this.fits(not, { ...at, sink: undefined, seen: undefined })) {
      fits = no(at, 'Instance matched "not" schema.');
    }
    fits = all(at, fits, list(allOf ?? []), (each) => this.fits(each, at));
    if (!fits && isFull(at)) return false;
    if (anyOf !== undefined && this.countFitting(list(anyOf), at, at.seen ? Number.POSITIVE_INFINITY : 1) === 0) {
      fits = no(at, 'Instance does not match any subschemas.');
      this.reportAll(list(anyOf), at);
    }
    if (oneOf !== undefined) {
      const matches = this.countFitting(list(oneOf), at, Number.POSITIVE_INFINITY);
      if (matches !== 1) fits = no(at, `Instance does not match exactly one subschema (${matches} matches).`);
      if (matches === 0) this.reportAll(list(oneOf), at);
    }
    if (schema.if === undefined) return fits;
    const branch = this.fits(schema.if, { ...at, sink: undefined }) ? schema.then : schema.else;
    return (branch === undefined || this.fits(branch, at)) && fits;
  }

  private countFitting(schemas: readonly unknown[], at: At, most: number): number {
    let count = 0;
    for (const schema of schemas) {
      if (this.fits(schema, { ...at, sink: undefined }) && ++count === most) break;
    }
    return count;
  }

  private reportAll(schemas: readonly unknown[], at: At): void {
    for (const schema of schemas) if (!isFull(at)) this.fits(schema, { ...at, seen: undefined });
  }

  private byType(schema: JsonSchema, at: At): boolean {
    const { value } = at;
    if (this.refersAlone && schema.$ref !== undefined) return true;
    if (typeof value === 'string') return this.text(schema, value, at);
    if (typeof value === 'number') return this.number(schema, value, at);
    if (Array.isArray(value)) return this.items(schema, value, at);
    return isObject(value) ? this.members(schema, value, at) : true;
  }

  private text(schema: JsonSchema, text: string, at: At): boolean {
    let fits = true;
    const { pattern, format } = schema;
    const { minLength, maxLength } = schema as Bounds;
    if (minLength !== undefined || maxLength !== undefined) {
      this.work.spend(text.length >> 3);
      const length = lengthOf(text);
      if (length < minLength) fits = no(at, `String is too short (${length} < ${minLength}).`);
      if (length > maxLength) fits = no(at, `String is too long (${length} > ${maxLength}).`);
    }
    if (!fits && isFull(at)) return false;
    if (pattern !== undefined && !this.matches(pattern as string, text)) {
      fits = no(at, 'String does not match pattern.');
    }
    const isFormat = format === undefined ? undefined : FORMATS.get(format as string);
    if (!isFormat) return fits;
    if (text.length > LONGEST_FORMAT)
      return no(at, `String is too long for a format (${text.length} > ${LONGEST_FORMAT}).`);
    // The dearest of them reads a regular expression.
    this.work.spend(text.length * (format === 'regex' ? 16 : 1));
    return isFormat(text) ? fits : no(at, `String does not match format "${format}".`);
  }

  private number(schema: JsonSchema, number: number, at: At): boolean {
    let fits = true;
    const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema as Bounds;
    if (number < minimum) fits = no(at, `${number} is less than ${minimum}.`);
    if (number > maximum) fits = no(at, `${number} is greater than ${maximum}.`);
    if (number <= exclusiveMinimum) fits = no(at, `${number} is less than or equal to ${exclusiveMinimum}.`);
    if (number >= exclusiveMaximum) fits = no(at, `${number} is greater than or equal to ${exclusiveMaximum}.`);
    const { multipleOf } = schema;
    if (multipleOf !== undefined) {
      this.work.spend(64);
      if (!isMultipleOf(number, multipleOf as number)) fits = no(at, `${number} is not a multiple of ${multipleOf}.`);
    }
    return fits;
  }

  private items(schema: JsonSchema, items: readonly unknown[], at: At): boolean {
    let fits = true;
    const { minItems, maxItems } = schema as Bounds;
    if (items.length > maxItems) fits = no(at, `Array has too many items (${items.length} > ${maxItems}).`);
    if (items.length < minItems) fits = no(at, `Array has too few items (${items.length} < ${minItems}).`);
    const isTuple = Array.isArray(schema.items);
    const first = list(schema.prefixItems ?? (isTuple ? schema.items : []));
    const others = isTuple ? schema.additionalItems : schema.items;
    const judged = others === undefined ? items.slice(0, first.length) : items;
    fits = all(at, fits, judged, (item, index) =>
      this.below(index < first.length ? first[index] : others, index, item, at),
    );
    if (!fits && isFull(at)) return false;
    if (schema.contains !== undefined && !this.contains(schema, items, at)) fits = false;
    if (schema.uniqueItems === true && !this.areUnique(items, at)) fits = false;
    if (schema.unevaluatedItems === undefined) return fits;
    return all(at, fits, items, (item, index) => {
      return at.seen?.has(index) || this.below(schema.unevaluatedItems, index, item, at);
    });
  }

  private contains(schema: JsonSchema, items: readonly unknown[], at: At): boolean {
    const { minContains = 1, maxContains } = schema as Bounds;
    let count = 0;
    for (const [index, value] of items.entries()) {
      if (!this.fits(schema.contains, { value, place: undefined, sink: undefined, seen: undefined })) continue;
      at.seen?.add(index);
      count++;
    }
    if (count < minContains) {
      return no(at, `Array must contain at least ${minContains} items matching schema. ${count} items were found.`);
    }
    if (count > maxContains) {
      return no(at, `Array may contain at most ${maxContains} items matching schema. ${count} items were found.`);
    }
    return true;
  }

  private areUnique(items: readonly unknown[], at: At): boolean {
    const known = new Map<unknown, number>();
    for (const [index, item] of items.entries()) {
      const key = keyOf(item, this.work);
      const other = known.get(key);
      if (other !== undefined) return no(at, `Duplicate items at indexes ${other} and ${index}.`);
      known.set(key, index);
    }
    return true;
  }

  private members(schema: JsonSchema, value: JsonSchema, at: At): boolean {
    let fits = true;
    const present = Object.keys(value);
    this.work.spend(present.length >> 2);
    for (const name of list(schema.required ?? [])) {
      if (!Object.hasOwn(value, name as string)) fits = no(at, `Instance does not have required property "${name}".`);
    }
    const { minProperties, maxProperties } = schema as Bounds;
    const { length } = present;
    if (length < minProperties) fits = no(at, `Instance does not have at least ${minProperties} properties.`);
    if (length > maxProperties) fits = no(at, `Instance has more than ${maxProperties} properties.`);
    fits = all(at, fits, schema.propertyNames === undefined ? [] : present, (name) => {
      const place = { above: at.place, name };
      return this.fits(schema.propertyNames, { value: name, place, sink: at.sink, seen: undefined });
    });
    if (!fits && isFull(at)) return false;
    if (!this.dependents(schema, value, at)) fits = false;
    if (!fits && isFull(at)) return false;
    return this.eachMember(schema, present, value, at) && fits;
  }

  private dependents({ dependentRequired, dependentSchemas }: JsonSchema, value: JsonSchema, at: At): boolean {
    let fits = true;
    for (const [name, others] of Object.entries(names(dependentRequired ?? {}))) {
      if (!Object.hasOwn(value, name)) continue;
      this.work.spend(list(others).length);
      for (const other of list(others)) {
        if (!Object.hasOwn(value, other as string))
          fits = no(at, `Instance has "${name}" but does not have "${other}".`);
      }
    }
    return all(at, fits, Object.entries(names(dependentSchemas ?? {})), ([name, schema]) => {
      return !Object.hasOwn(value, name) || this.fits(schema, at);
    });
  }

  private eachMember(schema: JsonSchema, present: readonly string[], value: JsonSchema, at: At): boolean {
    const { additionalProperties: others, unevaluatedProperties: rest } = schema;
    const properties = names(schema.properties ?? {});
    const patterns = Object.entries(names(schema.patternProperties ?? {}));
    return all(at, true, present, (name) => {
      this.work.spend(1);
      const judges = Object.hasOwn(properties, name) ? [properties[name]] : [];
      for (const [pattern, judge] of patterns) {
        if (this.matches(pattern, name)) judges.push(judge);
      }
      if (judges.length === 0 && others !== undefined) judges.push(others);
      if (judges.length === 0 && rest !== undefined && !at.seen?.has(name)) judges.push(rest);
      return all(at, true, judges, (judge) => this.below(judge, name, value[name], at));
    });
  }

  private below(schema: unknown, name: string | number, value: unknown, at: At): boolean {
    at.seen?.add(name);
    return this.fits(schema, { value, place: { above: at.place, name }, sink: at.sink, seen: undefined });
  }

  private isOfType(type: unknown, value: unknown): boolean {
    const own = typeOf(value);
    const is = (one: unknown) => one === own || (one === 'integer' && own === 'number' && (value as number) % 1 === 0);
    return Array.isArray(type) ? type.some(is) : is(type);
  }

  private isAllowed(schema: JsonSchema, by: 'const' | 'enum', values: readonly unknown[], value: unknown): boolean {
    const known = this.knownOf(schema);
    known[by] ??= new Set(values.map((each) => keyOf(each, this.work)));
    return known[by].has(keyOf(value, this.work));
  }

  /** A value in a message; empty when no further misfit is recorded. */
  private shown(value: unknown, at: At): string {
    return isFull(at) ? '' : JSON.stringify(value);
  }

  private knownOf(schema: JsonSchema): Known {
    let known = this.known.get(schema);
    if (!known) {
      // Names that are looked for in every value, whether it has them or not.
      const looked = ['required', 'dependentRequired', 'dependentSchemas', 'patternProperties'].flatMap((keyword) =>
        Object.keys(names(own(schema, keyword) ?? {})),
      );
      known = { steps: 6 + Object.keys(schema).length + looked.length };
      this.known.set(schema, known);
    }
    return known;
  }

  private resolve(reference: string): unknown {
    return getOrInsert(this.references, reference, () => {
      const way = pointerOf(reference).split('/').slice(1).map(unescaped);
      return way.reduce<unknown>((schema, name) => own(schema as JsonSchema, name), this.root);
    });
  }

  /** @throws {OutOfWork} also where the pattern was registered before its kind was refused */
  private matches(source: string, text: string): boolean {
    const pattern = getOrInsert(this.patterns, source, () => Pattern.of(source));
    if (typeof pattern === 'string') throw new OutOfWork();
    return pattern.test(text, this.work);
  }
}
