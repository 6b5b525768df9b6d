import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasDigits, isSuspicious } from '../../../src/job/envelope/json-text';
import { emptiedAt, nestingDepth, outlineOf } from '../../../src/job/envelope/nesting';
import { unstorableIn, withWholeCharacters } from '../../../src/job/envelope/storable';

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
  const problem = (text: string) => {
    const found = unstorableIn(JSON.parse(text))?.flaw;
    if (found !== undefined) expect(isSuspicious(text, outlineOf(text, 100)), text).toBe(true);
    return found;
  };

  it('are lone surrogates in values and names, at any depth', () => {
    expect(problem('{"a":["\\ud800"]}')).toBe('not_text');
    expect(problem('{"a":{"\\udfff":1}}')).toBe('not_text');
  });

  it('are not paired surrogates, nor the text of an escape', () => {
    expect(problem('{"a":"\\ud83d\\ude00"}')).toBeUndefined();
    expect(problem('{"a":"\\\\ud800"}')).toBeUndefined();
  });

  it('are numbers that JSON could write only as null', () => {
    expect(problem('{"a":1e999}')).toBe('out_of_range');
    expect(problem('{"a":1e100}')).toBeUndefined();
    const digits = '9'.repeat(300);
    expect(problem(`{"a":${digits}e10}`)).toBe('out_of_range');
    for (const number of ['1e999', '-1e999', '9'.repeat(400), `-0.5${'0'.repeat(9)}E+999`]) {
      expect(problem(number), number).toBe('out_of_range');
      expect(problem(`[ ${number}]`), number).toBe('out_of_range');
      expect(problem(`["${number}"]`), number).toBeUndefined();
    }
    const text = '{"a":[0,{"b":-1e400}]}';
    expect(unstorableIn(JSON.parse(text))?.path).toEqual(['a', 1, 'b']);
  });

  it('nest more than 100 levels deep', () => {
    const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
    expect(unstorableIn(nested(100))).toBeUndefined();
    expect(unstorableIn({ a: nested(99) })).toBeUndefined();
    expect(unstorableIn(nested(101))?.flaw).toBe('too_deep');
    expect(unstorableIn({ a: nested(100) })?.flaw).toBe('too_deep');
  });

  it('are replaced by U+FFFD where a text is kept in part, and nothing else is', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^[\\u"d8\ud800\udc00😀]*$/u));
    fc.assert(
      fc.property(text, text, (name, value) => {
        const kept = JSON.parse(withWholeCharacters(JSON.stringify({ [name]: [value] })));
        expect(kept).toEqual(JSON.parse(JSON.stringify({ [name.toWellFormed()]: [value.toWellFormed()] })));
      }),
    );
  });
});

describe('a text that is emptied at a level', () => {
  it('nests as deeply as that, and is as it was above', () => {
    const cut = (value: unknown, levels: number): unknown => {
      if (typeof value !== 'object' || value === null) return value;
      if (levels === 1) return Array.isArray(value) ? [] : {};
      if (Array.isArray(value)) return value.map((item) => cut(item, levels - 1));
      return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, cut(item, levels - 1)]));
    };
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), fc.integer({ min: 1, max: 5 }), (text, limit) => {
        expect(JSON.stringify(JSON.parse(emptiedAt(limit, text)))).toBe(JSON.stringify(cut(JSON.parse(text), limit)));
      }),
    );
  });

  it('is short, however deep it went or how it ended', () => {
    expect(emptiedAt(3, `${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`)).toBe('[[[]]]');
    expect(emptiedAt(3, '['.repeat(1_000_000))).toBe('[[[');
    expect(emptiedAt(2, '[[[]]}')).toBe('[[]}');
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
