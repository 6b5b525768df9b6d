/** Bounds of keys: the queues, types and groups that they may see. */
import { optional, readSome, readText } from './envelope/fields';

/** Patterns: a name, or the beginning of names and `*`. Absent: no bound. */
export interface Bounds {
  queues?: string[];
  types?: string[];
  groups?: string[];
}

export const BOUNDS = ['queues', 'types', 'groups'] as const;
const MAX_PATTERNS = 50;

const readPattern = readText(
  (text) => text !== '' && text.length <= 255 && !/[\0*]/.test(text.slice(0, -1)),
  'must be a name, or the beginning of names with * at its end',
);
const readPatterns = readSome(MAX_PATTERNS, readPattern);

/** @throws {ApiError} 400 */
export function readBounds(given: Record<string, unknown>): Bounds | undefined {
  const bounds: Bounds = {};
  for (const kind of BOUNDS) {
    const patterns = optional(given, kind, readPatterns);
    if (patterns) bounds[kind] = patterns;
  }
  return Object.keys(bounds).length > 0 ? bounds : undefined;
}

/** Does the pattern `of` cover everything that `pattern` does? */
const covers = (of: string, pattern: string) =>
  of.endsWith('*') ? pattern.startsWith(of.slice(0, -1)) : of === pattern;

/** Does everything within `bounds` lie within `of`? */
export function within(bounds: Bounds, of: Bounds): boolean {
  return BOUNDS.every((kind) => {
    const [own, other] = [bounds[kind], of[kind]];
    return !other || own?.every((pattern) => other.some((one) => covers(one, pattern))) === true;
  });
}

const KIND_OF = { queue: 'queues', type: 'types', group: 'groups' } as const;

/** Something as a key sees it. Absent: not asked; null: it has none, which fits no bound. */
export interface Bounded {
  queue?: string | null;
  type?: string | null;
  group?: string | null;
}

/** Does everything that is named lie within the bounds? */
export function fits(bounds: Bounds | undefined, named: Bounded): boolean {
  if (!bounds) return true;
  return Object.entries(KIND_OF).every(([kind, plural]) => {
    const [name, patterns] = [named[kind as keyof Bounded], bounds[plural]];
    if (name === undefined || !patterns) return true;
    return name !== null && patterns.some((one) => covers(one, name));
  });
}

/** The only name within these patterns; undefined: there may be several. */
export function onlyName(patterns: readonly string[] | undefined): string | undefined {
  const [name] = patterns ?? [];
  return patterns?.length === 1 && !name?.endsWith('*') ? name : undefined;
}

/** The patterns that are asked for, as far as they lie within a key's own; undefined: not expressible as patterns. */
export function intersection(asked: readonly string[], own: readonly string[]): string[] | undefined {
  const parts = asked.map((pattern) => {
    const inner = own.filter((one) => covers(pattern, one));
    const nested = own.some((one) => covers(one, pattern)) ? [pattern] : inner;
    // A pattern that is cut in its middle may share names with a beginning, but patterns cannot express them.
    return nested.length === 0 && /\*./.test(pattern) ? undefined : nested;
  });
  return parts.some((part) => part === undefined) ? undefined : [...new Set(parts.flatMap((part) => part ?? []))];
}
