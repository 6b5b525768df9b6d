/** Durations and moments as the dashboard tells them. */
import { expect, it } from 'vitest';
import { readable, relative, span } from '../../../src/ui/core/format';

it.each([
  ['PT10S', '10 s'],
  ['PT1M', '1 min'],
  ['PT1H30M', '1 h 30 min'],
  ['P1D', '1 d'],
  ['PT0.5S', '500 ms'],
  ['PT0S', '0 s'],
  ['minute', 'minute'],
])('the duration %s is shown as %s', (given, told) => {
  expect(span(given)).toBe(told);
});

it.each([
  [-500, 'now'],
  [-59_000, '59 s ago'],
  [-85_000, '1 min ago'],
  [-90_000_000, '1 d 1 h ago'],
  [169_200_000, 'in 1 d 23 h'],
  [85_000, 'in 1 min 25 s'],
  [700_000, 'in 11 min'],
])('a moment %i ms from now is shown as %s', (from, told) => {
  expect(relative(1e12 + from, 1e12)).toBe(told);
});

it('the moments and durations of a sentence are shown as people write them', () => {
  const now = Date.UTC(2040, 8, 1, 12);
  const text =
    '5 jobs of PAYMENTS began within PT1M, as many as P1D allows. It is called again at 2040-09-03T12:00:00.000Z.';
  const shown = readable(text, now);
  expect(shown).toMatch(
    /^5 jobs of PAYMENTS began within 1 min, as many as 1 d allows\. It is called again at \d Sept?,? \d\d:00\.$/,
  );
});
