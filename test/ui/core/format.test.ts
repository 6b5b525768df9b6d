/** Durations and moments as the dashboard tells them. */
import { expect, it } from 'vitest';
import { relative, span } from '../../../src/ui/core/format';

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
