/** Comparisons that cost next to nothing while they hold: a history makes some ten thousand of them. */

/** The product says what the model says. @param what the value is, for the message */
export function same(actual: unknown, expected: unknown, what = 'what is'): void {
  if (actual === expected) return;
  if (isObject(actual) && isObject(expected) && JSON.stringify(actual) === JSON.stringify(expected)) return;
  if (!isEqual(actual, expected)) throw new Error(`${what}: ${shown(actual)}, not ${shown(expected)}`);
}

/** @param what does not hold, if it does not */
export function holds(condition: boolean, what: () => string): void {
  if (!condition) throw new Error(what());
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** The order of members does not matter, and one that is undefined is as if it were not there. */
function isEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (!isObject(a) || !isObject(b) || Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (a instanceof Map || a instanceof Set) return isEqual([...a], [...(b as Iterable<unknown>)]);
  if (Array.isArray(a) && a.length !== (b as unknown[]).length) return false;
  const [of, to] = [a, b] as Record<string, unknown>[];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((name) => isEqual(of?.[name], to?.[name]));
}

const shown = (value: unknown): string => JSON.stringify(value) ?? String(value);
