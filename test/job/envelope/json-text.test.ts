import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasDigits, unstorable } from '../../../src/job/envelope/json-text';
import { nestingDepth, outlineOf } from '../../../src/job/envelope/nesting';

describe('nesting depth of JSON text', () => {
  it('counts arrays and objects, not brackets in strings', () => {
    expect(nestingDepth('{"a":[{"b":"[[[[\\"[[["}]}', 100)).toBe(3);
    expect(nestingDepth('"\\\\"', 100)).toBe(0);
  });

  it('stops counting above the limit, however deep the text goes', () => {
    expect(nestingDepth('['.repeat(1_000_000), 100)).toBe(101);
  });

  it('agrees with a recursive count of the value', () => {
    const depth = (value: unknown): number =>
      typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depth)) : 0;
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        expect(nestingDepth(JSON.stringify(value), 100)).toBe(depth(JSON.parse(JSON.stringify(value))));
      }),
    );
  });
});

describe('values that cannot be stored', () => {
  const problem = (text: string) => unstorable(text, JSON.parse(text), outlineOf(text, 100))?.what;

  it('are lone surrogates in values and names, at any depth', () => {
    expect(problem('{"a":["\\ud800"]}')).toBe('a lone surrogate');
    expect(problem('{"a":{"\\udfff":1}}')).toBe('a lone surrogate');
  });

  it('are not paired surrogates, nor the text of an escape', () => {
    expect(problem('{"a":"\\ud83d\\ude00"}')).toBeUndefined();
    expect(problem('{"a":"\\\\ud800"}')).toBeUndefined();
  });

  it('are numbers that JSON could write only as null', () => {
    expect(problem('{"a":1e999}')).toBe('a number beyond the range of doubles');
    expect(problem('{"a":1e100}')).toBeUndefined();
    const digits = '9'.repeat(300);
    expect(problem(`{"a":${digits}e10}`)).toBe('a number beyond the range of doubles');
    for (const number of ['1e999', '-1e999', '9'.repeat(400), `-0.5${'0'.repeat(9)}E+999`]) {
      expect(problem(number), number).toBe('a number beyond the range of doubles');
      expect(problem(`[ ${number}]`), number).toBe('a number beyond the range of doubles');
      expect(problem(`["${number}"]`), number).toBeUndefined();
    }
    const text = '{"a":[0,{"b":-1e400}]}';
    expect(unstorable(text, JSON.parse(text), outlineOf(text, 100))?.path).toEqual(['a', 1, 'b']);
  });
});

describe('so many digits in a row', () => {
  it('are found wherever they stand', () => {
    const piece = fc.oneof(fc.stringMatching(/^\d{1,20}$/), fc.constantFrom('a', '/', ':', '"', 'é', ' '));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), fc.integer({ min: 1, max: 24 }), (pieces, count) => {
        const text = pieces.join('');
        expect(hasDigits(text, count)).toBe(new RegExp(`\\d{${count}}`).test(text));
      }),
      { numRuns: 1000 },
    );
  });
});
