/**
 * The group of a job says whose it is. A queue says how its groups are served, and how many jobs of each may run.
 */
import { describe, described, isObject, type Reader, readInteger, readObject, readWord } from './envelope/fields';
import { readMembers } from './envelope/members';
import { invalidPolicy } from './errors';
import type { JobBody } from './record';
import { quote } from './text';

/** Characters of a group's name at most. */
export const MAX_GROUP_LENGTH = 255;

/** The group of a job: the one that it names, else the key of its limits, if it names one. */
export function groupOf({ group, rate_limit }: Pick<JobBody, 'group' | 'rate_limit'>): string | undefined {
  if (group !== undefined) return group;
  return isObject(rate_limit) && typeof rate_limit.key === 'string' ? rate_limit.key : undefined;
}

/**
 * How the groups of a queue are served. `fair`: groups with few waiting jobs first, the others in turns. `strict`: one
 * job of a group at a time, in the order of enqueue.
 */
export const GROUP_ORDERS = ['fair', 'strict'] as const;
export type GroupOrder = (typeof GROUP_ORDERS)[number];

/** The share of a group in the turns: 1 … 100. */
export const WEIGHTS = { min: 1, max: 100, default: 1 } as const;

/** What a queue says of its groups. */
export interface GroupSettings {
  order: GroupOrder;
  /** Attempts of each group that may run at once. */
  concurrency?: number;
  /** Jobs of each group that may wait: those that have not ended and do not run. */
  max_waiting?: number;
  /** Shares in the turns of groups with many waiting jobs, by name, or by the beginning of a name followed by `*`. */
  weights?: Record<string, number>;
}

/** The share of a group: what is said of its name, else of the longest pattern that fits. */
export function weightOf(group: string, weights: Record<string, number> | undefined): number {
  if (!weights) return WEIGHTS.default;
  if (Object.hasOwn(weights, group)) return weights[group] as number;
  let longest = '';
  for (const pattern of Object.keys(weights)) {
    if (pattern.endsWith('*') && pattern.length > longest.length && group.startsWith(pattern.slice(0, -1)))
      longest = pattern;
  }
  return longest === '' ? WEIGHTS.default : (weights[longest] as number);
}

const MAX_CONCURRENCY = 10_000;
const MAX_WAITING = 10_000_000;
const MAX_WEIGHTS = 1_000;

/** 422 where a number lies outside of its bounds; 400 where it is none. */
const within = (min: number, max: number): Reader<number> =>
  described(
    () => describe(readInteger(min, max)),
    (value, field) => {
      if (!Number.isSafeInteger(value)) return readInteger(min, max)(value, field);
      if ((value as number) >= min && (value as number) <= max) return value as number;
      throw invalidPolicy(field, `must be from ${min} to ${max}.`);
    },
  );

const readWeight = within(WEIGHTS.min, WEIGHTS.max);

/** Shares by name or pattern. Two patterns must not fit the same name: a reader could not see which one counts. */
const readWeights: Reader<Record<string, number>> = described(
  () => ({ type: 'object', additionalProperties: describe(readWeight), maxProperties: MAX_WEIGHTS }),
  (value, field) => {
    const weights: Record<string, number> = {};
    for (const [name, weight] of Object.entries(readObject(value, field))) {
      const star = name.indexOf('*');
      if (name === '' || name.length > MAX_GROUP_LENGTH || (star >= 0 && star < name.length - 1)) {
        const rule = `a name of 1 to ${MAX_GROUP_LENGTH} characters; only its last one may be "*"`;
        throw invalidPolicy(field, `${JSON.stringify(quote(name))} must be ${rule}.`);
      }
      weights[name] = readWeight(weight, `${field}.${name}`);
    }
    const names = Object.keys(weights);
    if (names.length > MAX_WEIGHTS) throw invalidPolicy(field, `must have at most ${MAX_WEIGHTS} members.`);
    const patterns = names.filter((name) => name.endsWith('*')).sort();
    // In this order the patterns that begin with another one follow it.
    for (const [index, pattern] of patterns.entries()) {
      const next = patterns[index + 1];
      if (!next?.startsWith(pattern.slice(0, -1))) continue;
      const [wide, narrow] = [pattern, next].map((name) => JSON.stringify(quote(name)));
      throw invalidPolicy(
        field,
        `${wide} and ${narrow} fit the same groups, of which ${narrow} would count. Keep one of them.`,
      );
    }
    return weights;
  },
);

const readSettings = readMembers(
  {
    order: readWord(GROUP_ORDERS),
    concurrency: within(1, MAX_CONCURRENCY),
    max_waiting: within(1, MAX_WAITING),
    weights: readWeights,
  },
  (path, names) => invalidPolicy(path, `is not known; use one of ${names.join(', ')}.`),
);

/**
 * Reads what a queue says of its groups. Without `order` they are served fairly.
 * @throws {ApiError} 400 for a member of another type; 422 for one out of bounds, unknown, or against another one
 */
export const readGroupSettings: Reader<GroupSettings> = described(
  () => describe(readSettings),
  (value, field) => {
    const { order = 'fair', concurrency, max_waiting, weights } = readSettings(value, field);
    if (order === 'strict' && concurrency !== undefined && concurrency > 1) {
      throw invalidPolicy(`${field}.concurrency`, 'is 1 where the order is strict: one job of a group runs at a time.');
    }
    return {
      order,
      ...(order === 'fair' && concurrency !== undefined && { concurrency }),
      ...(max_waiting !== undefined && { max_waiting }),
      ...(weights && { weights }),
    };
  },
);
