/** Which schemas may be registered, what they find, and which of them a job means. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkSchema, type JsonSchema } from '../../src/schemas/check';
import { Pattern } from '../../src/schemas/pattern';
import { byVersion, Registry, validatorOf } from '../../src/schemas/registry';
import { Work } from '../../src/schemas/work';
import { histories } from '../support/long';

const find = (schema: JsonSchema, args: unknown[]) => validatorOf(checkSchema(schema, 'schema'))(args, new Work());
const fieldOf = (schema: unknown): string => {
  try {
    checkSchema(schema, 'schema');
  } catch (error) {
    const { data } = error as { data: { status: number; details: { field: string } } };
    return `${data.status} ${data.details.field}`;
  }
  return 'accepted';
};

/** A chain of definitions, each of which refers twice to the next: unfolded it has 2^length schemas. */
const laughs = (length: number): JsonSchema => ({
  type: 'array',
  allOf: [{ $ref: '#/$defs/d0' }],
  $defs: Object.fromEntries(
    Array.from({ length }, (_, at) => {
      const next = { $ref: `#/$defs/d${at + 1}` };
      return [`d${at}`, at === length - 1 ? { minItems: 1 } : { allOf: [next, next] }];
    }),
  ),
});

describe('a schema that may be registered', () => {
  it.each([
    [{ type: 'array', prefixItems: [{ type: 'string' }], items: false }],
    [
      {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        $id: 'urn:x',
        title: 'x',
        type: 'object',
        properties: {},
      },
    ],
    [{ type: 'array', items: { $ref: '#/$defs/a~1b' }, $defs: { 'a/b': { type: 'integer' } } }],
    [{ type: 'object', properties: { pattern: { pattern: '^[A-Z]{3}$' }, id: { type: 'string', format: 'uuid' } } }],
    [{ $schema: 'http://json-schema.org/draft-07/schema#', items: [{ type: 'string' }], additionalItems: false }],
    [laughs(5)],
  ])('%j is one', (schema) => {
    expect(fieldOf(schema)).toBe('accepted');
  });

  it.each([
    [[], '400 schema'],
    ['{}', '400 schema'],
    [{}, '400 schema'],
    [{ title: 'nothing' }, '400 schema'],
    [{ type: 'text' }, '400 schema/type'],
    [{ type: [] }, '400 schema/type'],
    [{ required: 'name' }, '400 schema/required'],
    [{ minLength: -1 }, '400 schema/minLength'],
    [{ multipleOf: 0 }, '400 schema/multipleOf'],
    [{ properties: { a: 7 } }, '400 schema/properties/a'],
    [{ properties: { 'a/b': { type: 'x' } } }, '400 schema/properties/a~1b/type'],
    [{ anyOf: [] }, '400 schema/anyOf'],
    [{ items: { $ref: 'https://example.com/x' } }, '400 schema/items/$ref'],
    [{ items: { $ref: '#/$defs/none' } }, '400 schema/items/$ref'],
    [{ items: { $ref: '#' } }, '400 schema/items/$ref'],
    [{ $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } }, '400 schema/$defs/b/$ref'],
    [{ $dynamicRef: '#x', type: 'object' }, '400 schema/$dynamicRef'],
    [{ items: { $id: 'urn:other', type: 'string' } }, '400 schema/items/$id'],
    [{ pattern: '(a)\\1' }, '400 schema/pattern'],
    [{ patternProperties: { '(?=a)b': true } }, '400 schema/patternProperties/(?=a)b'],
    [{ items: Array(20).fill({ pattern: 'a{1500}' }) }, '400 schema/items/13/pattern'],
    [laughs(20), '400 schema/$defs/d7'],
    [{ enum: ['x'.repeat(70_000)] }, '413 schema'],
  ])('%j is none', (schema, refused) => {
    expect(fieldOf(schema)).toBe(refused);
  });

  it('nests up to a maximum number of levels', () => {
    const nested = (levels: number): JsonSchema => (levels === 0 ? { type: 'string' } : { items: nested(levels - 1) });
    expect(fieldOf(nested(32))).toBe('accepted');
    expect(fieldOf(nested(33))).toMatch(/^400/);
  });
});

describe('a pattern', () => {
  /** Sources that take a backtracking engine more than a lifetime on the text beside them. */
  const HOSTILE: [pattern: string, text: string][] = [
    [`^${'a{0,16}'.repeat(8)}$`, `${'a'.repeat(128)}!`],
    ['^(a+)+$', `${'a'.repeat(100_000)}!`],
    ['(a|a)*b', 'a'.repeat(100_000)],
    [`^${'(a|a)'.repeat(30)}b`, 'a'.repeat(30)],
    [`^${'a?'.repeat(100)}${'a'.repeat(100)}b`, 'a'.repeat(200)],
    ['^(a?){30}a{30}b', 'a'.repeat(60)],
    ['(\\w+\\.)*\\w+@', 'a.'.repeat(50_000)],
    ['x*x*x*x*y', 'x'.repeat(100_000)],
  ];

  it.each(HOSTILE)('%# is tried in a number of steps that grows with the text alone', (source, text) => {
    const pattern = Pattern.of(source) as Pattern;
    expect(pattern.test(text, new Work(2 * (text.length + 2) * pattern.size + 1_000))).toBe(false);
  });

  it.each([
    '(a)\\1',
    '(?<x>a)\\k<x>',
    '(?=a)a',
    '(?<!a)b',
    '(?i:a)',
    '[',
    '^.{0,3000}$',
    '(){1000000000}',
    'a'.repeat(513),
  ])('%s may not be used', (source) => {
    expect(Pattern.of(source)).toEqual(expect.any(String));
  });

  it('finds what the engine of JavaScript finds', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        ...['a', 'b', '.', '[ab]', '[^a]', '[]', '\\w', '\\d', '\\s', '\\b', '\\B', '^', '$', '\\.', '\\/', 'é', '😀'],
      ),
      fc.constantFrom(
        ...[
          '\\u0061',
          '\\u{1F600}',
          '\\uD83D\\uDE00',
          '\\x61',
          '\\cJ',
          '\\p{L}',
          '\\P{Lu}',
          '[\\]\\-a]',
          '[😀-😂]',
          '\\n',
          '(',
        ],
      ),
    );
    const { source } = fc.letrec<{ source: string }>((tie) => ({
      source: fc.oneof(
        { maxDepth: 5 },
        piece,
        fc.tuple(tie('source'), tie('source')).map(([a, b]) => a + b),
        fc.tuple(tie('source'), tie('source')).map(([a, b]) => `(?:${a}|${b})`),
        fc.tuple(fc.constantFrom('(', '(?:', '(?<n>'), tie('source')).map(([open, a]) => `${open}${a})`),
        fc
          .tuple(tie('source'), fc.constantFrom('*', '+', '?', '{2}', '{0,2}', '{1,}', '*?', '{2,3}?'))
          .map(([a, often]) => `(?:${a})${often}`),
      ),
    }));
    const text = fc.string({
      unit: fc.constantFrom('a', 'b', '1', ' ', '.', '\n', 'é', '😀', '\ud83d', '/', '-'),
      maxLength: 8,
    });
    fc.assert(
      fc.property(source, text, (source, text) => {
        let native: RegExp;
        try {
          native = new RegExp(source, 'u');
        } catch {
          return Pattern.of(source) === 'is not a regular expression of JavaScript with the flag u';
        }
        const pattern = Pattern.of(source);
        return typeof pattern !== 'string' && pattern.test(text, new Work()) === native.test(text);
      }),
      { numRuns: histories(3_000) },
    );
  });
});

describe('validation', () => {
  const customer = {
    type: 'object',
    required: ['id', 'amount'],
    properties: { id: { type: 'string' }, amount: { type: 'integer', minimum: 0 }, 'odd name': { type: 'null' } },
    additionalProperties: false,
  };

  it('is about the first argument where the schema is about an object, else about the list', () => {
    expect(find(customer, [{ id: 'a', amount: 1 }, 'more'])).toEqual([]);
    expect(find({ type: 'array', minItems: 2 }, [1])).toEqual([{ path: 'args', message: expect.any(String) }]);
    expect(find({ type: 'array', prefixItems: [customer] }, [{ id: 'a', amount: 1 }])).toEqual([]);
    expect(find(customer, [])).toMatchObject([{ path: 'args[0]' }]);
  });

  it('names each place that does not fit, and no place above it', () => {
    const misfits = find(customer, [{ id: 7, amount: -1, more: true, 'odd name': 1 }]);
    expect(misfits.map(({ path }) => path).sort()).toEqual([
      'args[0].amount',
      'args[0].id',
      'args[0].more',
      'args[0]["odd name"]',
    ]);
    expect(find(customer, [{ id: 'a' }])).toEqual([{ path: 'args[0]', message: expect.stringContaining('amount') }]);
  });

  it('tells ten places at most', () => {
    expect(find({ items: { type: 'string' } }, Array(50).fill(7))).toHaveLength(10);
  });

  it('tries no format on a text above 2048 characters: it does not fit', () => {
    const mail = { type: 'array', items: { format: 'email' } };
    expect(find(mail, ['ada@example.com', 7])).toEqual([]);
    expect(find(mail, ['nobody'])).toMatchObject([{ path: 'args[0]' }]);
    expect(find({ type: 'array', items: { format: 'json-pointer' } }, [`/${'a'.repeat(2_048)}`])).toHaveLength(1);
  });

  it('finds repetitions in lists of any length, whatever the order of members', () => {
    const unique = { type: 'array', uniqueItems: true };
    expect(
      find(
        unique,
        Array.from({ length: 50_000 }, (_, at) => at),
      ),
    ).toEqual([]);
    expect(find(unique, [{ a: 1, b: ['x'] }, '1', 1, { b: ['x'], a: 1 }])).toMatchObject([{ path: 'args' }]);
  });

  const tree = (levels: number): JsonSchema =>
    levels === 0 ? { type: 'number' } : { anyOf: Array(8).fill(tree(levels - 1)), minLength: 1 };
  const many = (value: unknown) => Array(40_000).fill(value);
  it.each<[string, JsonSchema, unknown[]]>([
    ['a pattern on a long text', { items: { pattern: `(${'a?'.repeat(200)})+b` } }, ['a'.repeat(1_000_000)]],
    ['alternatives in alternatives', { items: { not: tree(3) } }, many('x')],
    [
      'many required names',
      { items: { not: { required: Array.from({ length: 5_000 }, (_, at) => `n${at}`) } } },
      many({}),
    ],
    [
      'many patterns of names',
      {
        items: { patternProperties: Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`^a*${at}$`, true])) },
      },
      many({ aaaaaaaa: 1 }),
    ],
    [
      'a comparison of large values, again and again',
      { allOf: Array(90).fill({ items: { uniqueItems: true } }) },
      [Array.from({ length: 50_000 }, (_, at) => [at])],
    ],
    [
      'items sought at every level',
      { allOf: Array(60).fill({ contains: { type: 'string', maxLength: 9 } }) },
      many('abcdefgh'),
    ],
    ['regular expressions', { items: { format: 'regex' } }, Array(500).fill('[\\p{L}]'.repeat(250))],
  ])('refuses %s beyond the work of a request', (_, schema, args) => {
    expect(find({ type: 'array', ...schema }, args)).toEqual([
      { path: 'args', message: expect.stringContaining('more work than one request may use') },
    ]);
  });

  it('shares the work of a request among its jobs', () => {
    const validate = validatorOf(checkSchema({ type: 'array', items: { type: 'integer' } }, 'schema'));
    const work = new Work(1_000);
    expect(validate(Array(100).fill(1), work)).toEqual([]);
    expect(validate(Array(100).fill(1), work)).toMatchObject([{ path: 'args' }]);
  });

  it('takes hostile names for ordinary ones', () => {
    const args = JSON.parse('[{"__proto__": 1, "constructor": 2}]');
    expect(find({ type: 'object', additionalProperties: { type: 'integer' } }, args)).toEqual([]);
    expect(find({ type: 'object', additionalProperties: false }, args)).not.toEqual([]);
  });
});

describe('versions', () => {
  it('are in the order of their numbers, a release after what leads up to it', () => {
    const sorted = ['1', '10', '2', '2.0.1', '2.0.0', '1.10', '1.9', '2.0.0-beta'].map((version) => ({ version }));
    expect(sorted.sort(byVersion).map(({ version }) => version)).toEqual([
      '10',
      '2.0.1',
      '2',
      '2.0.0',
      '2.0.0-beta',
      '1.10',
      '1.9',
      '1',
    ]);
  });

  const registry = new Registry('7.1', [
    { type: 'a.b', version: '1', uri: 'urn:one', created_at: 2, schema: { type: 'array', maxItems: 0 } },
    { type: 'a.b', version: '2', uri: 'urn:two', created_at: 1, schema: { type: 'array', minItems: 1 } },
  ]);
  const misfits = (job: Record<string, unknown>) =>
    registry
      .misfits('a.b', JSON.stringify({ type: 'a.b', args: [], meta: {}, ...job }), new Work())
      .map(({ path }) => path);

  it('that a job means: by URI, by version, by meta, else the latest', () => {
    expect(misfits({})).toEqual(['args']);
    expect(misfits({ version: 1 })).toEqual([]);
    expect(misfits({ version: '1' })).toEqual([]);
    expect(misfits({ meta: { schema_version: 1 } })).toEqual([]);
    expect(misfits({ schema: 'urn:one', version: 2 })).toEqual([]);
    expect(misfits({ schema: 'urn:elsewhere' })).toEqual(['args']);
    expect(misfits({ version: 3 })).toEqual(['version']);
    expect(registry.misfits('other.type', '{}', new Work())).toEqual([]);
  });
});
