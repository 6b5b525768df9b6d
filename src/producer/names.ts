/**
 * Names on both sides of the wire: snake_case in its JSON, camelCase in TypeScript. What a user put in (arguments, results,
 * `meta` and the like) has names of its own, which stay as they are.
 */

/** Members whose content belongs to the user, or is keyed by names of queues, types and variables. */
const OWN = {
  args: true,
  meta: true,
  result: true,
  parent_results: true,
  parentResults: true,
  data: true,
  progress_data: true,
  progressData: true,
  details: true,
  // Of a checkpoint; elsewhere a word.
  state: true,
  labels: true,
  // Of a signal, and of a line in a log.
  payload: true,
  fields: true,
  by_queue: true,
  by_type: true,
  by_error_type: true,
  variables: true,
  // Written in the wire's names where it is made, since it may hold paths into arguments.
  filter: true,
} as const;

type Own = keyof typeof OWN;

type Camel<Name> = Name extends `${infer First}_${infer Rest}` ? `${First}${Capitalize<Camel<Rest>>}` : Name;

/** A type of the wire with its names in camelCase. */
export type Named<T> = T extends readonly (infer Entry)[]
  ? Named<Entry>[]
  : T extends object
    ? { [Name in keyof T as Camel<Name>]: Name extends Own ? T[Name] : Named<T[Name]> }
    : T;

/** JSON from the wire with its names in camelCase. */
export function named(value: unknown): unknown {
  return renamed(value, (name) => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()));
}

/** A value with the wire's names, which it may have already. */
export function wired(value: unknown): unknown {
  return renamed(value, wireName);
}

/** `maxAttempts` → `max_attempts`. */
export function wireName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function renamed(value: unknown, rename: (name: string) => string, within?: string): unknown {
  if (Array.isArray(value)) return value.map((entry) => renamed(entry, rename));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, content]) => {
      // The steps of a workflow are a list; those of a job are keyed by names that its handler gave them.
      const isKeyed = name === 'steps' && !Array.isArray(content);
      const own = isKeyed || Object.hasOwn(OWN, name) || (within === 'checkpoint' && name === 'metadata');
      return [rename(name), own ? content : renamed(content, rename, name)];
    }),
  );
}

/** Dates and the like are values, not collections of names. */
function isRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}
