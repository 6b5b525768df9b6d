/** Comparisons that cost next to nothing while they hold: a history makes some ten thousand of them. */
import { expect } from 'vitest';

/** The product says what the model says. @param what the value is, for the message */
export function same(actual: unknown, expected: unknown, what?: string): void {
  if (actual === expected) return;
  if (isObject(actual) && isObject(expected) && JSON.stringify(actual) === JSON.stringify(expected)) return;
  expect(actual, what).toEqual(expected);
}

/** @param what does not hold, if it does not */
export function holds(condition: boolean, what: () => string): void {
  if (!condition) throw new Error(what());
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
