/** Validation and formats say what a library for JSON Schema says, which does not count its steps. */
import { Validator } from '@cfworker/json-schema';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FORMATS } from '../../src/schemas/formats';
import { validatorOf } from '../../src/schemas/registry';
import { Work } from '../../src/schemas/work';
import { histories } from '../support/long';

/** Values that meet each other often. */
const scalar = fc.constantFrom<unknown>(null, true, 0, 1, 2.5, 6, '', 'a', 'ab', 'bbb', '😀');
const name = fc.constantFrom('a', 'b', 'ab', 'c/d~', '__proto__');
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    scalar,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(fc.tuple(name, tie('value')), { maxLength: 4 }).map((members) => Object.fromEntries(members)),
  ),
}));
const count = fc.nat({ max: 3 });
const named = <T>(member: fc.Arbitrary<T>) => fc.dictionary(fc.constantFrom('a', 'b', 'ab'), member, { maxKeys: 3 });
const some = <T>(item: fc.Arbitrary<T>) => fc.array(item, { minLength: 1, maxLength: 3 });
const types = fc.constantFrom('array', 'boolean', 'integer', 'null', 'number', 'object', 'string');
const { schema } = fc.letrec<{ schema: Record<string, unknown> }>((tie) => {
  const below = fc.oneof(tie('schema'), fc.boolean());
  return {
    schema: fc.oneof(
      { maxDepth: 4 },
      fc.record({ type: fc.oneof(types, some(types)) }),
      fc.oneof(
        ...[{ const: value }, { enum: some(value) }, { uniqueItems: fc.boolean() }].map((each) =>
          fc.record<unknown>(each),
        ),
        ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'].map((keyword) =>
          fc.record({ [keyword]: count }),
        ),
        ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'].map((keyword) =>
          fc.record({ [keyword]: count }),
        ),
        fc.record({ multipleOf: fc.constantFrom(0.5, 2, 3) }),
        fc.record({ pattern: fc.constantFrom('^a', 'b+$', '^.$', '^$') }),
        fc.record({ required: fc.array(name, { maxLength: 2 }) }),
        fc.record({ dependentRequired: named(fc.array(name, { maxLength: 2 })) }),
      ) as fc.Arbitrary<Record<string, unknown>>,
      fc.oneof(
        ...['not', 'propertyNames'].map((keyword) => fc.record({ [keyword]: below })),
        ...['allOf', 'anyOf', 'oneOf'].map((keyword) => fc.record({ [keyword]: some(below) })),
        // biome-ignore lint/suspicious/noThenProperty: the name of a keyword
        fc.record({ if: below, then: below, else: below }, { requiredKeys: ['if'] }),
        fc.record(
          {
            properties: named(below),
            patternProperties: fc.dictionary(fc.constantFrom('^a', 'b'), below),
            additionalProperties: below,
          },
          { requiredKeys: [] },
        ),
        fc.record({ prefixItems: some(below), items: below, contains: below }, { requiredKeys: [] }),
        fc.record({ contains: below, minContains: count, maxContains: count }, { requiredKeys: ['contains'] }),
        fc.record({ items: some(below), additionalItems: below }, { requiredKeys: ['items'] }),
        fc.record({ dependentSchemas: named(below) }),
        fc.constantFrom({ $ref: '#/$defs/one' }, { $ref: '#/$defs/a~1b' }),
      ) as fc.Arbitrary<Record<string, unknown>>,
      fc.tuple(tie('schema'), tie('schema')).map(([a, b]) => ({ ...a, ...b })),
    ),
  };
});

/** Without what is decided otherwise on purpose. */
const drafts = ['https://json-schema.org/draft/2020-12/schema', 'http://json-schema.org/draft-07/schema#'];

describe('validation', () => {
  it('finds a value to fit where the library does', () => {
    const definitions = { one: { type: 'string', minLength: 1 }, 'a/b': { type: ['array', 'object', 'null'] } };
    fc.assert(
      fc.property(schema, value, fc.nat({ max: 1 }), (body, value, draft) => {
        const schema = { $schema: drafts[draft] as string, ...body, $defs: definitions };
        const validator = new Validator(structuredClone(schema), draft === 0 ? '2020-12' : '7');
        // A schema whose type is `object` is about the first argument, any other about the list.
        const isAboutFirst = (body as { type?: unknown }).type === 'object';
        const [args, instance] = isAboutFirst ? [[value ?? null], value ?? null] : [[value], [value]];
        expect(validatorOf(schema)(args, new Work()).length === 0).toBe(validator.validate(instance).valid);
      }),
      { numRuns: histories(5_000) },
    );
  });

  it('looks at what no other keyword has judged', () => {
    const fits = (schema: Record<string, unknown>, arg: unknown) =>
      validatorOf({ type: 'array', items: schema })([arg], new Work()).length === 0;
    const members = {
      properties: { a: true },
      anyOf: [
        { required: ['b'], properties: { b: true } },
        { required: ['c'], properties: { c: true } },
      ],
      if: { properties: { d: { const: 1 } }, required: ['d'] },
      unevaluatedProperties: false,
    };
    expect(fits(members, { a: 1, b: 1, c: 1, d: 1 })).toBe(true);
    expect(fits(members, { a: 1, b: 1, d: 2 })).toBe(false);
    expect(fits(members, { b: 1, e: 1 })).toBe(false);
    const items = { prefixItems: [true], contains: { type: 'string' }, unevaluatedItems: false };
    expect(fits(items, [1, 'a', 'b'])).toBe(true);
    expect(fits(items, [1, 'a', 2])).toBe(false);
    expect(fits({ allOf: [{ items: true }], unevaluatedItems: false }, [1, 2])).toBe(true);
  });
});

describe('a format', () => {
  const SAMPLES: Record<string, string[]> = {
    date: ['2024-02-29', '2023-02-29', '2024-13-01', '2024-00-10', '0001-12-31'],
    time: ['23:59:60Z', '12:00:00+01:30', '22:59:60-01:00', '12:00:60Z', '24:00:00Z', '01:02:03.5z', '01:02:03'],
    'date-time': ['2024-02-29T10:00:00Z', '2024-02-29 10:00:00.25-02:00', '2024-02-29T10:00:00'],
    duration: ['P1Y2M3DT4H5M6S', 'P1W', 'PT1M', 'P1Y1D', 'PT1H1S', 'P', 'PT', 'P1DT', 'P1W1D'],
    uri: [
      'http://a.b:80/c?d#e',
      'urn:x:y',
      'a',
      '//x',
      'http://[::1]/x',
      'http://u:p@h',
      'a:/b',
      'http://[v1.a]',
      'a:b:c',
    ],
    'uri-reference': [
      ...['../a', '#x', '?y', '//h/p', 'a:b', '', 'a/b:c', '%41', '%4', '/', 'a/b?c:d', 'a#b#c', '?a?b'],
      ...['//[::1', '//[::1]:80/x', '//[::1]x', '//h@[::1]', '//h?x@y', '///p'],
    ],
    'uri-template': ['/a/{b}{?c,d*}', '{x:3}', '{+x.y}', '{', '}', '{}', '{x,}', '{x:0}', '%41{x}'],
    email: [
      'ada@example.com',
      '"a b"@x.y',
      'a..b@c',
      '.a@c',
      'a@[127.0.0.1]',
      'a@[IPv6:::1]',
      'a@b@c',
      'a@-b',
      '"a"b"@c',
    ],
    hostname: ['example.com', '-a.b', 'a-.b', 'a..b', 'xn--a', 'a_b', ''],
    ipv4: ['1.2.3.4', '256.1.1.1', '01.2.3.4', '1.2.3', '1.2.3.4.5'],
    ipv6: [
      '::',
      '::1',
      '1::',
      '1:2:3:4:5:6:7:8',
      '1:2:3:4:5:6:7::',
      '::1.2.3.4',
      '1::2::3',
      '12345::',
      '1:2:3:4:5:6:1.2.3.4',
      ':1',
    ],
    regex: ['a+', '(', '\\Z', 'a\\Z'],
    uuid: ['01a1f88b-bfb1-7ec9-8394-b80000000001', '01A1F88B-BFB1-7EC9-8394-B80000000001', '01a1f88b'],
    'json-pointer': ['', '/a~0b', '/~2', 'a', '//'],
    'json-pointer-uri-fragment': ['#', '#/a~1', '#/%41', '#/%4', '/a'],
    'relative-json-pointer': ['0', '1#', '01', '2/a~0', '0a'],
  };
  /** Of these the library takes some against RFC 3986, such as `a://h:x` and `a"b`; they are compared by samples alone. */
  const BY_SAMPLES = ['uri', 'uri-reference'];

  it('says what the library says of samples, and of samples with a character more, fewer or other', () => {
    const characters = [...'aZ09.-_~:/?#[]@!$&%{}*+,;=" \\(|T', 'é', '\n'];
    const differences: string[] = [];
    for (const name of Object.keys(SAMPLES)) {
      const library = new Validator({ format: name });
      const own = FORMATS.get(name) as (text: string) => boolean;
      for (const sample of SAMPLES[name] as string[]) {
        const others = Array.from({ length: sample.length + 1 }, (_, at) =>
          ['', ...characters].flatMap((char) =>
            [0, 1].map((drop) => sample.slice(0, at) + char + sample.slice(at + drop)),
          ),
        );
        for (const text of [sample, ...(BY_SAMPLES.includes(name) ? [] : others.flat())]) {
          if (own(text) !== library.validate(text).valid)
            differences.push(`${name} ${own(text)} ${JSON.stringify(text)}`);
        }
      }
    }
    expect(differences).toEqual([]);
  });

  it('takes a time that grows with the length of a text alone', () => {
    const units = [...'aé0/:@"\\#?[ T.-', 'a-', '1.', '1:', '~0', '%41', '{a}', '{a,', 'http://', '😀'];
    for (const isFormat of FORMATS.values()) {
      for (const unit of units) {
        for (const before of ['', 'http://', 'a@', 'P', '"', '#/', '[']) isFormat(`${before}${unit.repeat(10_000)}!`);
      }
    }
  });

  it.each([':a', '1a:b', '//a@b@c', '//h:x', 'a"b'])('uri-reference refuses what RFC 3986 refuses: %s', (text) => {
    expect(FORMATS.get('uri-reference')?.(text)).toBe(false);
  });

  it.each([
    ['https://example.com/x?y', true],
    ['ftp://example.com', true],
    ['http://localhost:8787', true],
    ['example.com', false],
    ['mailto:a@b', false],
    ['https://exa mple.com', false],
    ['http://a-a-a-a-a-a-a-a-a-a-a-a-a-a-a-a-a-a', true],
    ['http://', false],
  ])('url is what can be read as an address of the web: %s', (text, fits) => {
    expect(FORMATS.get('url')?.(text)).toBe(fits);
  });
});
