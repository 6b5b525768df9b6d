import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cut, piecesOf, quote } from '../../src/job/text';

const isWhole = (text: string) => text.isWellFormed();
const anyText = fc.string({ unit: fc.constantFrom('a', 'ü', '€', '😀'), maxLength: 60 });

describe('a text', () => {
  it('is cut between characters, and no shorter than that takes', () => {
    fc.assert(
      fc.property(anyText, fc.nat(40), (text, max) => {
        const short = cut(text, max);
        expect(isWhole(short) && text.startsWith(short)).toBe(true);
        expect(short.length).toBeGreaterThanOrEqual(Math.min(text.length, max - 1));
        expect(short.length).toBeLessThanOrEqual(max);
      }),
    );
  });

  it('comes in whole pieces that make it up again', () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 2, max: 20 }), (text, max) => {
        const pieces = piecesOf(text, max);
        expect(pieces.join('')).toBe(text);
        expect(pieces.every((piece) => isWhole(piece) && piece.length <= max)).toBe(true);
      }),
    );
    expect(piecesOf('', 5)).toEqual(['']);
  });

  it('is quoted whole when it is short', () => {
    expect(quote('short')).toBe('short');
    expect(quote('x'.repeat(100_000))).toBe(`${'x'.repeat(200)}…`);
  });
});

describe('a text that is cut', () => {
  it('keeps its beginning, within the bound, and never half a surrogate pair', () => {
    const text = fc.string({ unit: 'grapheme-composite', maxLength: 40 });
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 20 }), (whole, max) => {
        const short = cut(whole, max);
        expect(whole.startsWith(short)).toBe(true);
        expect(short.length).toBeLessThanOrEqual(max);
        expect(short.length).toBeGreaterThanOrEqual(Math.min(max - 1, whole.length));
        expect(short.isWellFormed()).toBe(true);
      }),
    );
  });
});
