/**
 * Names: snake_case on the wire, camelCase in TypeScript. Users' own data (arguments, results, `meta`) stays as it is.
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
  // Of an entry in the audit log: the members of a request.
  change: true,
  // By queue, or by group.
  weights: true,
  // A JSON Schema.
  schema: true,
  // Of a webhook: JSON that is filled in and sent.
  template: true,
} as const;

type Own = keyof typeof OWN;

export type Camel<Name> = Name extends `${infer First}_${infer Rest}` ? `${First}${Capitalize<Camel<Rest>>}` : Name;

/** A type of the wire with its names in camelCase. */
export type Named<T> = T extends readonly unknown[]
  ? { [Index in keyof T]: Named<T[Index]> }
  : T extends object
    ? { [Name in keyof T as Camel<Name>]: Name extends Own ? T[Name] : Named<T[Name]> }
    : T;

/** Names whose other form is remembered: each job has the same thirty. Others are made out again each time. */
const MOST_REMEMBERED = 1_000;
const LONGEST_REMEMBERED = 64;

/** As `rename`, once for each name. */
function remembering(rename: (name: string) => string): (name: string) => string {
  const known = new Map<string, string>();
  return (name) => {
    const remembered = known.get(name);
    if (remembered !== undefined) return remembered;
    const other = rename(name);
    if (known.size < MOST_REMEMBERED && name.length <= LONGEST_REMEMBERED) known.set(name, other);
    return other;
  };
}

export const camelName = remembering((name) =>
  name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()),
);

export const wireName = remembering((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));

/** JSON from the wire with its names in camelCase. */
export function named(value: unknown): unknown {
  return renamed(value, camelName);
}

/** A value with the wire's names, which it may have already. */
export function wired(value: unknown): unknown {
  return renamed(value, wireName);
}

function renamed(value: unknown, rename: (name: string) => string, within?: string): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (within === BY_GROUP && isRecord(value))
    return Object.fromEntries(Object.entries(value).map(([group, entry]) => [group, renamed(entry, rename)]));
  if (Array.isArray(value)) return value.map((entry) => renamed(entry, rename, within));
  if (!isRecord(value)) return value;
  const result: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    const content = value[name];
    const kept = memberOf(name, content, rename, within);
    // An assignment would change the prototype.
    if (name === '__proto__')
      Object.defineProperty(result, name, { value: kept, enumerable: true, configurable: true, writable: true });
    else result[rename(name)] = kept;
  }
  return result;
}

/** Stands for a collection that is keyed by names of groups. */
const BY_GROUP = '*';

/** The value of one member, renamed as the whole would be. @param within the name of what holds it */
export function memberOf(name: string, content: unknown, rename: (name: string) => string, within?: string): unknown {
  if (typeof content !== 'object' || isOwn(name, content, within)) return content;
  return renamed(content, rename, name === 'limits' && within === 'groups' ? BY_GROUP : name);
}

function isOwn(name: string, content: unknown, within: string | undefined): boolean {
  // The steps of a workflow are a list; those of a job are keyed by names that its handler gave them.
  const isKeyed = name === 'steps' && !Array.isArray(content);
  return isKeyed || Object.hasOwn(OWN, name) || (name === 'metadata' && OWN_METADATA.has(within));
}

/** Whose `metadata` is the user's: a checkpoint's, and a webhook's, alone or in a list. */
const OWN_METADATA: ReadonlySet<string | undefined> = new Set(['checkpoint', 'subscription', 'subscriptions']);

/** Dates and the like are values, not collections of names. */
function isRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}
