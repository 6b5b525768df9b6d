import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseJob, withFingerprint } from '../../src/job/envelope/parse';
import { ApiError } from '../../src/job/errors';
import { blocks } from '../../src/job/unique/conflicts';
import { canonicalJson, fingerprintOf } from '../../src/job/unique/fingerprint';
import { readUnique } from '../../src/job/unique/policy';

const NOW = Date.UTC(2026, 6, 1);
const job = { type: 'a.b', queue: 'q', args: [7, { id: 1, name: 'x' }, { id: 2 }], meta: { tenant: 't', trace: 'u' } };
const read = (policy: unknown) => readUnique(policy, 'options.unique', job);
const dimensions = (policy: unknown) => read(policy).dimensions;
const policyOf = (policy: unknown) => read(policy).policy;

describe('what a fingerprint is made of', () => {
  it.each([
    ['nothing said', {}, { type: 'a.b' }],
    ['the type alone', { keys: ['type'] }, { type: 'a.b' }],
    ['keys without the type, which is always part', { keys: ['queue'] }, { type: 'a.b', queue: 'q' }],
    ['key as an array', { key: ['queue'] }, { type: 'a.b', queue: 'q' }],
    ['a key that names members of arguments', { key: ['id'] }, { type: 'a.b', args: [{ id: 1 }, { id: 2 }] }],
    ['both in one key', { key: ['queue', 'name'] }, { type: 'a.b', queue: 'q', args: [{ name: 'x' }, {}] }],
    ['key as a text', { key: 'order-1' }, { type: 'a.b', key: 'order-1' }],
    ['key as a text in its queue', { key: 'x', keys: ['queue'] }, { type: 'a.b', key: 'x', queue: 'q' }],
    ['all arguments', { keys: ['args'] }, { type: 'a.b', args: job.args }],
    ['chosen arguments', { keys: ['args'], args_keys: ['id'] }, { type: 'a.b', args: [{ id: 1 }, { id: 2 }] }],
    ['an argument of one object', { args_keys: ['name'] }, { type: 'a.b', args: [{ name: 'x' }, {}] }],
    ['chosen meta', { keys: ['meta'], meta_keys: ['tenant'] }, { type: 'a.b', meta: { tenant: 't' } }],
    ['chosen meta, implied', { meta_keys: ['tenant'] }, { type: 'a.b', meta: { tenant: 't' } }],
    ['null members, which are absent', { keys: null, key: null, period: null }, { type: 'a.b' }],
  ])('%s', (_, policy, expected) => {
    expect(dimensions(policy)).toEqual(expected);
  });

  it('does not depend on the order or repetition in which keys are named', () => {
    expect(dimensions({ args_keys: ['name', 'id', 'id'] })).toEqual(dimensions({ args_keys: ['id', 'name'] }));
  });
});

describe('a policy', () => {
  const open = ['scheduled', 'available', 'pending', 'active', 'retryable'];

  it('looks across queues unless its keys name the queue', () => {
    expect(policyOf({})).toEqual({ scope: 'global', states: open, on_conflict: 'reject' });
    expect(policyOf({ keys: ['queue'] }).scope).toBe('queue');
  });

  it.each([
    ['queued', open.filter((state) => state !== 'active')],
    ['active', open],
    ['exists', [...open, 'completed', 'cancelled', 'discarded']],
  ])('unique_while %s means certain states', (word, states) => {
    expect(policyOf({ unique_while: word }).states).toEqual(states);
  });

  it.each([
    ['reject', 'reject'],
    ['ignore', 'ignore'],
    ['ignore_new', 'ignore'],
    ['replace', 'replace'],
    ['cancel_existing', 'replace'],
    ['replace_except_schedule', 'replace_except_schedule'],
  ])('on_conflict %s means %s', (word, meaning) => {
    expect(policyOf({ on_conflict: word }).on_conflict).toBe(meaning);
  });

  it('reads its period in every form of a duration, under all its names', () => {
    for (const [name, value] of [
      ['period', 'PT1H'],
      ['within', '1h'],
      ['period', 3_600_000],
      ['period_ms', 3_600_000],
    ] as const) {
      expect(policyOf({ [name]: value }).period_ms).toBe(3_600_000);
    }
  });

  it('blocks from the creation of the existing job until its period is over', () => {
    const policy = { states: ['available' as const], period_ms: 100 };
    const at = (age: number) => blocks(policy, { state: 'available', createdAt: NOW }, NOW + age);
    expect([at(0), at(99), at(100)]).toEqual([true, true, false]);
    expect(blocks(policy, { state: 'active', createdAt: NOW }, NOW)).toBe(false);
  });
});

it.each([
  ['no object', 'type', ''],
  ['true', true, ''],
  ['an unknown member', { perod: '1h' }, '.perod'],
  ['keys that are no list', { keys: 'type' }, '.keys'],
  ['no keys', { keys: [] }, '.keys'],
  ['an unknown key', { keys: ['type', 'id'] }, '.keys[1]'],
  ['a key of the prototype', { keys: ['constructor'] }, '.keys[0]'],
  ['key and keys', { key: ['type'], keys: ['type'] }, '.key'],
  ['a key with an absent argument', { key: ['type', 'id', 'nope'] }, '.key[2]'],
  ['a key with argument keys beside it', { key: ['id'], args_keys: ['id'] }, '.args_keys'],
  ['a period in ms that is text', { period_ms: '1h' }, '.period_ms'],
  ['a period and one in ms', { period: '1h', period_ms: 5 }, '.period_ms'],
  ['an empty key', { key: '' }, '.key'],
  ['a key with U+0000', { key: 'a\0' }, '.key'],
  ['a key that is a number', { key: 5 }, '.key'],
  ['an absent argument', { keys: ['args'], args_keys: ['id', 'nope'] }, '.args_keys[1]'],
  ['an inherited argument', { args_keys: ['toString'] }, '.args_keys[0]'],
  ['no argument keys', { keys: ['args'], args_keys: [] }, '.args_keys'],
  ['argument keys that are not used', { keys: ['type'], args_keys: ['id'] }, '.args_keys'],
  ['meta without its keys', { keys: ['meta'] }, '.meta_keys'],
  ['an absent member of meta', { keys: ['meta'], meta_keys: ['nope'] }, '.meta_keys[0]'],
  ['meta keys that are not used', { keys: ['type'], meta_keys: ['tenant'] }, '.meta_keys'],
  ['a period that is none', { period: 'soon' }, '.period'],
  ['a negative period', { period: -1 }, '.period'],
  ['no period at all', { within: 0 }, '.within'],
  ['two periods', { period: '1h', within: '1h' }, '.within'],
  ['no states', { states: [] }, '.states'],
  ['an unknown state', { states: ['running'] }, '.states[0]'],
  ['states and unique_while', { states: ['active'], unique_while: 'active' }, '.unique_while'],
  ['an unknown unique_while', { unique_while: 'forever' }, '.unique_while'],
  ['an unknown action', { on_conflict: 'explode' }, '.on_conflict'],
])('%s is refused by name', (_, policy, member) => {
  const refusal = (() => {
    try {
      read(policy);
    } catch (error) {
      return error instanceof ApiError ? error.data : undefined;
    }
  })();
  expect(refusal).toMatchObject({ status: 400, details: { field: `options.unique${member}` } });
  expect(refusal?.message).toContain(`options.unique${member}`);
});

it('an error names the unique policy where the client wrote it', () => {
  const input = { type: 'a', args: [], unique: { keys: [] } };
  expect(() => parseJob(input, { now: NOW, path: 'jobs[3]' })).toThrow('jobs[3].unique.keys');
});

describe('a fingerprint', () => {
  const shuffled = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(shuffled);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([name, member]) => [name, shuffled(member)]),
    );
  };

  it('is the same for members in any order, and JSON that means the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = canonicalJson(value);
        expect(canonicalJson(shuffled(value))).toBe(text);
        expect(canonicalJson(JSON.parse(text))).toBe(text);
      }),
    );
  });

  it('differs for values that differ, as long as no text needs normalising', () => {
    const value = fc.jsonValue({ stringUnit: 'grapheme-ascii' });
    fc.assert(
      fc.property(value, value, (a, b) => {
        const same = JSON.stringify(shuffled(sorted(a))) === JSON.stringify(shuffled(sorted(b)));
        expect(canonicalJson(a) === canonicalJson(b)).toBe(same);
      }),
    );
  });

  function sorted(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(sorted);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, member]) => [name, sorted(member)]),
    );
  }

  it('is the same for composed and decomposed text, in values and in names', () => {
    expect(canonicalJson({ 'e\u0301': ['a\u030a'] })).toBe(canonicalJson({ '\u00e9': ['\u00e5'] }));
    expect(canonicalJson({ '\u00e9': 1, 'e\u0301': 2 })).toBe(canonicalJson({ 'e\u0301': 2, '\u00e9': 1 }));
  });

  it('is SHA-256 of the canonical JSON', async () => {
    // printf '{"args":[1],"type":"a"}' | sha256sum
    expect(await fingerprintOf({ type: 'a', args: [1] })).toBe(
      'a79fd105c922aaaa67c17f2490a77d52359a395c422b386ce833b626c78d1745',
    );
  });

  it('is stored with the job and its policy, which is kept as written', async () => {
    const input = { type: 'a', args: [1], options: { unique: { keys: ['args'] } } };
    const { job: made, body, queue } = await withFingerprint(parseJob(input, { now: NOW }));
    expect(made.unique).toMatchObject({ fingerprint: body.fingerprint, scope: 'global', on_conflict: 'reject' });
    expect(JSON.parse(made.body)).toEqual(body);
    expect(body.unique).toEqual({ keys: ['args'] });
    expect(queue).toBe('default');
  });
});
