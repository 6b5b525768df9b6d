/** Which schemas may be registered, what they find, and which of them a job means. */
import { describe, expect, it } from 'vitest';
import { checkSchema, type JsonSchema } from '../../../src/job/schemas/check';
import { longestFor } from '../../../src/job/schemas/pattern';
import { byVersion, Registry } from '../../../src/job/schemas/registry';
import { validatorOf } from '../../../src/job/schemas/validator';

const find = (schema: JsonSchema, args: unknown[]) => validatorOf(checkSchema(schema, 'schema'))(args, 0);
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
    [{ pattern: '(a+)+$' }, '400 schema/pattern'],
    [{ patternProperties: { 'a*b*c*': true } }, '400 schema/patternProperties/a*b*c*'],
    [laughs(20), '400 schema/$defs/d7'],
    [{ enum: ['x'.repeat(70_000)] }, '413 schema'],
  ])('%j is none', (schema, refused) => {
    expect(fieldOf(schema)).toBe(refused);
  });

  it('nests so many levels and no more', () => {
    const nested = (levels: number): JsonSchema => (levels === 0 ? { type: 'string' } : { items: nested(levels - 1) });
    expect(fieldOf(nested(32))).toBe('accepted');
    expect(fieldOf(nested(33))).toMatch(/^400/);
  });
});

describe('a pattern', () => {
  it.each([
    ['^[A-Z]{3}$', 1_048_576],
    ['^a+$', 1_048_576],
    ['a+b', 4_096],
    ['^[^@]+@[^@]+$', 4_096],
    ['^[^@]+@[^@]+\\.[^@]+$', 256],
    ['^(?:foo|bar)$', 1_048_576],
    ['^(ab)?c{2,5}$', 1_048_576],
  ])('%s is tried on so much', (pattern, longest) => {
    expect(longestFor(pattern)).toBe(longest);
  });

  it.each(['(a+)+', '(a|a)*b', '((a|b))+', '(\\w+\\.)*\\w+', '(a{1,9}){20}', '(a)\\1', '(?=a)a', '^a+b+c+d+e+$', '['])(
    '%s may not be used',
    (pattern) => {
      expect(typeof longestFor(pattern)).toBe('string');
    },
  );
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

  it('tries no pattern, format or comparison of all with all on what is too long for it: it does not fit', () => {
    const word = { type: 'array', items: { pattern: '^[^@]+@[^@]+\\.[^@]+$' } };
    expect(find(word, [`${'a'.repeat(100)}@b.example`])).toEqual([]);
    expect(find(word, [`${'a'.repeat(300)}@b.example`])).toMatchObject([{ path: 'args[0]' }]);
    expect(find(word, [7])).toEqual([]);
    const unique = { type: 'array', uniqueItems: true };
    expect(find(unique, [1, 2, 1])).toHaveLength(1);
    expect(
      find(
        unique,
        Array.from({ length: 1_001 }, (_, at) => at),
      ),
    ).toHaveLength(1);
    expect(find({ type: 'array', items: { format: 'email' } }, ['nobody'])).toMatchObject([{ path: 'args[0]' }]);
    const began = performance.now();
    find({ type: 'array', items: { pattern: 'x*x*y' } }, Array(100).fill('x'.repeat(256)));
    expect(performance.now() - began).toBeLessThan(5_000);
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
    registry.misfits('a.b', JSON.stringify({ type: 'a.b', args: [], meta: {}, ...job })).map(({ path }) => path);

  it('that a job means: by URI, by version, by meta, else the latest', () => {
    expect(misfits({})).toEqual(['args']);
    expect(misfits({ version: 1 })).toEqual([]);
    expect(misfits({ version: '1' })).toEqual([]);
    expect(misfits({ meta: { schema_version: 1 } })).toEqual([]);
    expect(misfits({ schema: 'urn:one', version: 2 })).toEqual([]);
    expect(misfits({ schema: 'urn:elsewhere' })).toEqual(['args']);
    expect(misfits({ version: 3 })).toEqual(['version']);
    expect(registry.misfits('other.type', '{}')).toEqual([]);
  });
});
