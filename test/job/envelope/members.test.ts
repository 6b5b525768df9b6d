// Readers say what they accept: a schema that is written apart from its reader would drift from it.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  describe as accepted,
  inPolicy,
  type Reader,
  readBoolean,
  readDuration,
  readInteger,
  readList,
  readName,
  readQueueName,
  readWord,
} from '../../../src/job/envelope/fields';
import { notMember, nullable, readMembers, required } from '../../../src/job/envelope/members';
import { invalidRequest, outcomeOf } from '../../../src/job/errors';
import { LIMIT_POLICY_SCHEMA, readLimitPolicy } from '../../../src/job/limits/policy';
import { validatorOf } from '../../../src/schemas/registry';
import { Work } from '../../../src/schemas/work';

const box = readMembers(
  {
    name: required(readName(5)),
    size: readInteger(1, 9),
    until: nullable(readDuration),
    kinds: readList(2, readWord(['red', 'blue'])),
  },
  (path, names) => invalidRequest(path, `${path} is not part of a box, which has ${names.join(', ')}.`),
);

/** Where a value is refused, and in which words. */
function refusal(read: () => unknown): unknown {
  const outcome = outcomeOf(read);
  return outcome.ok ? outcome.value : [outcome.error.details?.field, outcome.error.message];
}

describe('an object that is read by a table of its members', () => {
  it('has what was given, and leaves out what is absent or null', () => {
    expect(box({ name: 'a', size: null, kinds: ['red'] }, 'box')).toEqual({ name: 'a', kinds: ['red'] });
    expect(box({ name: 'a', until: null }, 'box')).toEqual({ name: 'a', until: null });
    expect(box({ name: 'a', until: '2s' }, 'box')).toEqual({ name: 'a', until: 2000 });
  });

  it('names the member that is wrong by its path', () => {
    const read = (value: unknown, field = 'jobs[2].box') => refusal(() => box(value, field));
    expect(read(7)).toEqual(['jobs[2].box', 'jobs[2].box must be an object.']);
    expect(read({})).toEqual(['jobs[2].box.name', 'jobs[2].box.name is required.']);
    expect(read({ name: null })).toEqual(['jobs[2].box.name', 'jobs[2].box.name is required.']);
    expect(read({ name: 'a', size: 10 }, 'box')).toEqual(['box.size', 'box.size must be an integer from 1 to 9.']);
    expect(read({ name: 'a', kinds: ['red', 'odd'] }, '')).toEqual(['kinds[1]', 'kinds[1] must be one of red, blue.']);
    expect(read({ colour: 1 }, '')).toEqual([
      'colour',
      'colour is not part of a box, which has name, size, until, kinds.',
    ]);
  });

  it('must have a required member, which may be null if it is nullable', () => {
    const read = readMembers({ until: required(nullable(readDuration)) });
    expect(read({ until: null }, '')).toEqual({ until: null });
    expect(refusal(() => read({}, ''))).toEqual(['until', 'until is required.']);
  });

  it('is refused with 422 as a part of a policy, in the same words and with the same schema', () => {
    const read = inPolicy(readMembers({ size: readInteger(1, 9) }, notMember));
    expect(read({ size: 3 }, 'box')).toEqual({ size: 3 });
    const outcomes = [{ size: 10 }, { sise: 1 }].map((value) => outcomeOf(() => read(value, 'box')));
    expect(outcomes).toMatchObject([
      { error: { status: 422, message: 'box.size: must be an integer from 1 to 9', details: { field: 'box.size' } } },
      {
        error: {
          status: 422,
          message: expect.stringContaining('Did you mean "size"?'),
          details: { field: 'box.sise' },
        },
      },
    ]);
    expect(accepted(read)).toEqual(accepted(readMembers({ size: readInteger(1, 9) }, notMember)));
  });

  it('says what it accepts', () => {
    expect(accepted(box)).toMatchObject({
      type: 'object',
      required: ['name'],
      additionalProperties: false,
      properties: {
        name: { type: 'string', minLength: 1, maxLength: 5 },
        size: { type: 'integer', minimum: 1, maximum: 9 },
        until: { type: ['integer', 'string', 'null'] },
        kinds: { type: 'array', maxItems: 2, items: { enum: ['red', 'blue'] } },
      },
    });
    expect(accepted(readMembers({ name: readName(5) }))).not.toHaveProperty('additionalProperties');
  });
});

/** Values of which about half are right for most members, and their neighbours. */
const value = fc.oneof(
  fc.constantFrom<unknown>(
    0,
    1,
    5,
    10_000,
    10_001,
    1.5,
    -1,
    '',
    'a',
    'minute',
    '5s',
    'PT1M',
    'odd one',
    true,
    null,
    [],
  ),
  fc.constantFrom<unknown>({ limit: 5, period: '1m' }, { limit: 5 }, { limit: 0, period: 1 }, 'wait', 'drop', [
    'a',
    'b',
  ]),
);

/** Fails when `read` takes a value that its schema refuses. */
function expectToAgree(read: (value: unknown) => unknown, schema: object, values: fc.Arbitrary<unknown>) {
  const validate = validatorOf({ items: schema });
  fc.assert(
    fc.property(values, (given) => {
      try {
        read(given);
      } catch {
        return;
      }
      expect(validate([given], new Work())).toEqual([]);
    }),
    { numRuns: 500 },
  );
}

describe('the schema of a reader', () => {
  const simple: [string, Reader<unknown>][] = [
    ['a boolean', readBoolean],
    ['an integer', readInteger(1, 10_000)],
    ['a name', readName(3)],
    ['a queue name', readQueueName],
    ['a duration', readDuration],
    ['a word', readWord(['wait', 'drop'])],
    ['a list', readList(1, readName(3))],
  ];
  it.each(simple)('fits every value that the reader of %s takes', (_, read) => {
    expectToAgree((given) => read(given, 'it'), accepted(read), value);
  });

  it('fits every limit policy that is accepted', () => {
    const names = ['key', 'concurrency', 'max_per_second', 'rate', 'period', 'throttle', 'on_limit'];
    const given = value.filter((one) => one !== null);
    const policy = fc.dictionary(fc.constantFrom(...names), given, { maxKeys: 3, noNullPrototype: true });
    expectToAgree((one) => readLimitPolicy(one, 'rate_limit', 'mail'), LIMIT_POLICY_SCHEMA(), policy);
  });
});
