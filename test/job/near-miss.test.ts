import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { didYouMean, nearMiss, slipsAllowed, slipsBetween } from '../../src/job/near-miss';

/** The whole table, without any short cut. */
function plainly(a: string, b: string): number {
  const d = Array.from({ length: a.length + 1 }, (_, i) => Array.from({ length: b.length + 1 }, (_, j) => i + j));
  const at = (i: number, j: number) => d[i]?.[j] as number;
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      let slips = Math.min(at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1), at(i - 1, j) + 1, at(i, j - 1) + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        slips = Math.min(slips, at(i - 2, j - 2) + 1);
      (d[i] as number[])[j] = slips;
    }
  }
  return at(a.length, b.length);
}

const name = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '.'), minLength: 0, maxLength: 12 });

describe('slips between two names', () => {
  it('are counted as the whole table counts them, up to the bound', () => {
    fc.assert(
      fc.property(name, name, fc.integer({ min: 1, max: 4 }), (a, b, max) => {
        expect(slipsBetween(a, b, max)).toBe(Math.min(plainly(a, b), max + 1));
      }),
      { numRuns: 2000 },
    );
  });
});

describe('a near miss', () => {
  it.each([
    ['greting.write', ['greeting.write', 'other.job'], 'greeting.write'],
    ['greeting.wirte', ['greeting.write'], 'greeting.write'],
    ['Greeting.Write', ['greeting.write'], 'greeting.write'],
    ['emial.send', ['email.*'], 'email.send'],
    ['emial.send', ['email.*', 'emial.sent'], 'email.send'],
    ['image.resise', ['image.*', 'image.resize'], undefined],
    ['image.resise', ['image.resize'], 'image.resize'],
    ['a.b', ['x.y'], undefined],
    ['report.build', ['email.*', '*', 'email.send'], undefined],
  ])('of %s among %j is %s', (written, known, meant) => {
    expect(nearMiss(written, known)).toBe(meant);
  });

  it('is found after any slips that are allowed, and is never further away', () => {
    const type = fc.stringMatching(/^[a-z]{4,10}\.[a-z]{4,10}$/);
    fc.assert(
      fc.property(type, fc.nat(), fc.constantFrom('drop', 'double', 'swap', 'replace'), (meant, place, slip) => {
        const at = place % (meant.length - 1);
        const [head, tail] = [meant.slice(0, at), meant.slice(at)];
        const written = {
          drop: head + tail.slice(1),
          double: head + tail[0] + tail,
          swap: head + tail[1] + tail[0] + tail.slice(2),
          replace: `${head}0${tail.slice(1)}`,
        }[slip] as string;
        expect(nearMiss(written, ['0123456789', meant])).toBe(written === meant ? undefined : meant);
      }),
    );
    fc.assert(
      fc.property(name, fc.array(name), (written, known) => {
        const meant = nearMiss(written, known);
        if (meant === undefined) return;
        expect(plainly(written, meant)).toBeLessThanOrEqual(slipsAllowed(Math.max(written.length, meant.length)));
      }),
    );
  });

  it('is put as a question, and nothing is asked without one', () => {
    expect(didYouMean('greting.write', ['greeting.write'])).toBe(' Did you mean "greeting.write"?');
    expect(didYouMean('greting.write', [])).toBe('');
  });
});
