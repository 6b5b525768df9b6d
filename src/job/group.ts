/** A job's group says whose it is. A queue sets how its groups are served, and how many of each may run. */
import { fitsBytes } from './bytes';
import {
  describe,
  described,
  isObject,
  type Reader,
  readBoolean,
  readInteger,
  readObject,
  readWord,
} from './envelope/fields';
import { notInPolicy, nullable, readMembers } from './envelope/members';
import { conflict, invalidPolicy, invalidRequest } from './errors';
import { MAX_STARTS, type Quota, quotaReader } from './limits/policy';
import type { JobBody } from './record';
import { quote } from './text';

export const MAX_GROUP_LENGTH = 255;

/** The group of a job: the one that it names, else the key of its limits, if it names one. */
export function groupOf({ group, rate_limit }: Pick<JobBody, 'group' | 'rate_limit'>): string | undefined {
  if (group !== undefined) return group;
  return isObject(rate_limit) && typeof rate_limit.key === 'string' ? rate_limit.key : undefined;
}

/** `fair`: groups with few waiting jobs first, others in turns. `strict`: one job of a group at a time, in order. */
export const GROUP_ORDERS = ['fair', 'strict'] as const;
export type GroupOrder = (typeof GROUP_ORDERS)[number];

export const WEIGHTS = { min: 1, max: 100, default: 1 } as const;

export interface GroupLimits {
  /** Attempts of the group that may run at once. */
  concurrency?: number;
  /** Its starts in any period of this length. */
  rate?: Quota;
  max_waiting?: number;
}

export const GROUP_OVERFLOWS = ['reject', 'drop_oldest'] as const;

/** What a queue says of its groups: first what limits each of them. */
export interface GroupSettings extends GroupLimits {
  order: GroupOrder;
  /** What happens to a job that its group has no room for. Default `reject`. */
  overflow?: (typeof GROUP_OVERFLOWS)[number];
  /** What limits some of them, by name, or by the beginning of a name followed by `*`. A name counts first. */
  limits?: Record<string, GroupLimits>;
  /** Shares in the turns of groups with many waiting jobs, by name, or by the beginning of a name followed by `*`. */
  weights?: Record<string, number>;
}

/** What an operator says of one group, in the place of what its queue says. */
export interface GroupOverride extends GroupLimits {
  weight?: number;
  /** It hands out no job. */
  paused?: true;
}

export type GroupOverrides = Readonly<Record<string, GroupOverride>>;

/** A change of what is said of one group: null returns a member to what its queue says. */
export type GroupChange = { [K in keyof Omit<GroupOverride, 'paused'>]?: GroupOverride[K] | null } & {
  paused?: boolean | null;
};

const MAX_CONCURRENCY = 10_000;
const MAX_WAITING = 10_000_000;

/** Names and patterns of one setting at most, and their bytes: each queue stores them in one row. */
const MAX_NAMED = 1_000;
const MAX_NAMED_BYTES = 256 * 1024;

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

/** Values by group name, or by a prefix and `*`. No name may match two patterns: precedence would be unclear. */
const byName = <T>(read: Reader<T>): Reader<Record<string, T>> =>
  described(
    () => ({ type: 'object', additionalProperties: describe(read), maxProperties: MAX_NAMED }),
    (value, field) => {
      const given = Object.entries(readObject(value, field));
      if (given.length > MAX_NAMED) throw invalidPolicy(field, `must have at most ${MAX_NAMED} members.`);
      if (!fitsBytes(JSON.stringify(value), MAX_NAMED_BYTES))
        throw invalidPolicy(field, `must have at most ${MAX_NAMED_BYTES} bytes of JSON.`);
      const entries = given.map(([name, member]): [string, T] => {
        const star = name.indexOf('*');
        if (name === '' || name.length > MAX_GROUP_LENGTH || (star >= 0 && star < name.length - 1)) {
          const rule = `a name of 1 to ${MAX_GROUP_LENGTH} characters; only its last one may be "*"`;
          throw invalidPolicy(field, `${JSON.stringify(quote(name))} must be ${rule}.`);
        }
        return [name, read(member, `${field}.${name}`)];
      });
      refuseOverlap(
        entries.map(([name]) => name),
        field,
      );
      return Object.fromEntries(entries);
    },
  );

function refuseOverlap(names: readonly string[], field: string): void {
  const beginnings = names.flatMap((name) => (name.endsWith('*') ? name.slice(0, -1) : [])).sort();
  // In this order those that begin with another one follow it.
  for (const [index, beginning] of beginnings.entries()) {
    const next = beginnings[index + 1];
    if (!next?.startsWith(beginning)) continue;
    const [wide, narrow] = [beginning, next].map((name) => JSON.stringify(quote(`${name}*`)));
    throw invalidPolicy(
      field,
      `${wide} and ${narrow} fit the same groups, of which ${narrow} would count. Keep one of them.`,
    );
  }
}

const LIMITS = {
  concurrency: within(1, MAX_CONCURRENCY),
  rate: quotaReader(within(1, MAX_STARTS), notInPolicy),
  max_waiting: within(1, MAX_WAITING),
};

const readSettings = readMembers(
  {
    order: readWord(GROUP_ORDERS),
    ...LIMITS,
    overflow_policy: readWord(GROUP_OVERFLOWS),
    limits: byName<GroupLimits>(readMembers(LIMITS, notInPolicy)),
    weights: byName(within(WEIGHTS.min, WEIGHTS.max)),
  },
  notInPolicy,
);

const readOverride = readMembers(
  {
    concurrency: nullable(LIMITS.concurrency),
    rate: nullable(LIMITS.rate),
    max_waiting: nullable(LIMITS.max_waiting),
    weight: nullable(within(WEIGHTS.min, WEIGHTS.max)),
    paused: nullable(readBoolean),
  },
  notInPolicy,
);

/** Reads an override of one group. @throws {ApiError} 400: a wrong type or no member; 422: out of bounds, unknown */
export function readGroupChange(input: unknown): GroupChange {
  const change = readOverride(input, '');
  if (Object.keys(change).length > 0) return change;
  const names = readOverride.names;
  throw invalidRequest(names[0] as string, `At least one of ${names.join(', ')} is required.`);
}

/** Groups with an override at a time, and bytes of all: a queue keeps them in one row. */
const MAX_OVERRIDES = 1_000;

/** The overrides after a change of one group's; null removes it. @throws {ApiError} 409: too many; 422: the order */
export function withGroupOverride(
  overrides: GroupOverrides,
  order: GroupOrder | undefined,
  group: string,
  change: GroupChange | null,
): GroupOverrides {
  const after = new Map(Object.entries(overrides));
  const { paused, ...limits } = { ...after.get(group), ...change };
  const members = Object.entries(limits).filter(([, value]) => value !== null);
  const override: GroupOverride = { ...Object.fromEntries(members), ...(paused === true && { paused }) };
  if (order === 'strict') refuseInStrict(override, '');
  if (change && Object.keys(override).length > 0) after.set(group, override);
  else after.delete(group);
  const result = Object.fromEntries(after);
  const isLess = after.size <= Object.keys(overrides).length;
  if (isLess || (after.size <= MAX_OVERRIDES && fitsBytes(JSON.stringify(result), MAX_NAMED_BYTES))) return result;
  throw conflict(`Too many groups have settings of their own already: remove those of another group.`, {
    group,
    max_overrides: MAX_OVERRIDES,
  });
}

/** In a strict order one job of a group runs at a time, so another number would have no effect. */
function refuseInStrict({ concurrency }: GroupLimits, field: string): void {
  if (concurrency === undefined || concurrency === 1) return;
  throw invalidPolicy(
    `${field}${field === '' ? '' : '.'}concurrency`,
    'is 1 where the order is strict: one job of a group runs at a time.',
  );
}

/** Reads a queue's settings of groups; default order: fair. @throws {ApiError} 400: a wrong type; 422: others */
export const readGroupSettings: Reader<GroupSettings> = described(
  () => describe(readSettings),
  (value, field) => {
    const { order = 'fair', concurrency, overflow_policy: overflow, ...rest } = readSettings(value, field);
    if (order === 'strict') {
      refuseInStrict({ ...(concurrency !== undefined && { concurrency }) }, field);
      for (const [name, limits] of Object.entries(rest.limits ?? {})) refuseInStrict(limits, `${field}.limits.${name}`);
    }
    return {
      order,
      ...(order === 'fair' && concurrency !== undefined && { concurrency }),
      ...(overflow && { overflow }),
      ...rest,
    };
  },
);
