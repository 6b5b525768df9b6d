/**
 * Reads the policy of a unique job (`docs/guides/unique.md`), which defines its fingerprint. Two jobs with the same
 * fingerprint are the same job. Whether the older one conflicts is up to the policy of the newer one (`conflicts.ts`).
 */
import {
  defined,
  isObject,
  type Reader,
  readInteger,
  readList,
  readMeaning,
  readMilliseconds,
  readName,
  readPositive,
  readSome,
  readWord,
} from '../envelope/fields';
import { notMember, readMembers } from '../envelope/members';
import { invalidRequest, unsupported } from '../errors';
import type { JobBody, UniquePolicy } from '../record';
import { JOB_STATES, type JobState, TERMINAL_STATES } from '../states';
import { quote } from '../text';

type Dimension = 'type' | 'queue' | 'args' | 'meta';
const DIMENSIONS: readonly Dimension[] = ['type', 'queue', 'args', 'meta'];

/** What an existing job is tested with: the policy, before its fingerprint is computed. */
export interface UniqueRequest {
  policy: Omit<UniquePolicy, 'fingerprint'>;
  /** What the fingerprint is made of. */
  dimensions: Record<string, unknown>;
}

/** The parts of a job that its policy depends on. */
export type Identity = Pick<JobBody, 'type' | 'args' | 'meta'> & {
  queue: string;
  /** How long after its enqueue it starts, ms; absent: not known, or at once. */
  delay?: number;
};

const OPEN_STATES = JOB_STATES.filter((state) => !TERMINAL_STATES.includes(state));

/** `unique_while`: how long a job keeps others away. */
const WHILE: Readonly<Record<string, readonly JobState[]>> = {
  queued: OPEN_STATES.filter((state) => state !== 'active'),
  active: OPEN_STATES,
  exists: JOB_STATES,
};

const ON_CONFLICT: Readonly<Record<string, UniquePolicy['on_conflict']>> = {
  reject: 'reject',
  ignore: 'ignore',
  ignore_new: 'ignore',
  replace: 'replace',
  cancel_existing: 'replace',
  replace_except_schedule: 'replace_except_schedule',
  accumulate: 'accumulate',
};

export const MAX_ACCUMULATED = 1_000;

/** Not started yet: a job in these states may be changed by newcomers. */
const UNSTARTED: readonly JobState[] = ['scheduled', 'available', 'pending'];

type Terms = Pick<UniquePolicy, 'states' | 'on_conflict' | 'period_ms' | 'window_ms'>;

/** Which enqueue of a window runs: the first, with which it begins, or the last, when it is over. */
const SAMPLES: Readonly<Record<'leading' | 'trailing', (window: number) => Terms>> = {
  leading: (period_ms) => ({ states: [...JOB_STATES], on_conflict: 'ignore', period_ms }),
  // Jobs whose window is over are due: they are in no conflict.
  trailing: (window_ms) => ({
    states: ['scheduled', 'pending'],
    on_conflict: 'replace_except_schedule',
    window_ms,
  }),
};

const readNames = readSome(100, readName(255));
const isDimension = (name: string): name is Dimension => DIMENSIONS.includes(name as Dimension);

const readKey: Reader<string | string[]> = (value, field) =>
  (typeof value === 'string' ? readName(255) : readNames)(value, field);

export const readUniquePolicy = readMembers(
  {
    keys: readSome(100, readWord(DIMENSIONS)),
    key: readKey,
    args_keys: readNames,
    meta_keys: readList(100, readName(255)),
    ...{ period: readPositive, period_ms: readMilliseconds, within: readPositive },
    states: readSome(100, readWord(JOB_STATES)),
    unique_while: readMeaning(WHILE),
    on_conflict: readMeaning(ON_CONFLICT),
    max_wait: readPositive,
    max_count: readInteger(2, MAX_ACCUMULATED),
    sample: readWord(['leading', 'trailing']),
  },
  notMember,
);
type Policy = ReturnType<typeof readUniquePolicy>;
type Member = keyof Policy;

/**
 * Reads a unique policy.
 * @param field the policy's path as the client wrote it
 * @throws {ApiError} 400 naming the member that is malformed, contradicts another one, or selects what is not there
 * @throws {ApiError} 422 for accumulating over several queues
 */
export function readUnique(value: unknown, field: string, job: Identity): UniqueRequest {
  const policy = readUniquePolicy(value, field);
  const { key, args_keys, meta_keys: metaKeys } = policy;
  const given = (name: Member) => policy[name] !== undefined;
  const refuseBoth = (name: Member, other: Member) => {
    if (!given(name) || !given(other)) return;
    throw invalidRequest(`${field}.${name}`, `${field}.${name} cannot be combined with ${field}.${other}.`);
  };
  const [period, other] = PERIODS.filter(given);
  if (period && other) refuseBoth(other, period);
  refuseBoth('unique_while', 'states');

  const listed = typeof key === 'string' ? undefined : key;
  if (listed) refuseBoth('key', 'keys');
  const members = listed?.filter((name) => !isDimension(name)) ?? [];
  if (members.length > 0) refuseBoth('args_keys', 'key');
  const chosen = listed
    ? [...listed.filter(isDimension), ...(members.length > 0 ? (['args'] as const) : [])]
    : policy.keys;
  const argsKeys = members.length > 0 ? members : args_keys;
  const uses = (name: 'args' | 'meta', keys: readonly string[] | undefined): boolean => {
    if (chosen === undefined) return keys !== undefined;
    if (chosen.includes(name)) return true;
    if (keys === undefined) return false;
    const path = `${field}.${name}_keys`;
    throw invalidRequest(path, `${path} has no effect unless ${field}.keys includes "${name}".`);
  };
  const dimensions: Record<string, unknown> = { type: job.type };
  const scope = scopeOf(value);
  if (scope === 'queue') dimensions.queue = job.queue;
  if (typeof key === 'string') dimensions.key = key;
  if (uses('args', argsKeys)) {
    const from = `${field}.${members.length > 0 ? 'key' : 'args_keys'}`;
    dimensions.args = argsKeys ? selectFromArgs(job.args, argsKeys, from, listed ?? argsKeys) : job.args;
  }
  if (uses('meta', metaKeys)) dimensions.meta = selectFromMeta(job.meta, metaKeys, `${field}.meta_keys`);

  return {
    policy: { scope, ...termsOf(policy, field, period && policy[period], chosen, job.delay) },
    dimensions,
  };
}

/**
 * Which existing jobs count, and what becomes of them and of the newcomer.
 * @param period ms
 * @param chosen what makes two jobs the same, where the policy says it
 * @param delay how long after its enqueue the job starts, ms
 */
function termsOf(
  policy: Policy,
  field: string,
  period: number | undefined,
  chosen: readonly string[] | undefined,
  delay = 0,
): Omit<UniquePolicy, 'scope' | 'fingerprint'> {
  const { sample, on_conflict: onConflict = 'reject', max_wait: max_wait_ms, max_count } = policy;
  const path = (name: Member) => `${field}.${name}`;
  const refuse = (name: Member, message: string) => invalidRequest(path(name), `${path(name)} ${message}`);
  const refuseBeside = (why: string, ...names: Member[]) => {
    const other = names.find((name) => policy[name] !== undefined);
    if (other) throw refuse(other, `cannot be combined with ${why}.`);
  };
  if (sample !== undefined) {
    refuseBeside(path('sample'), 'on_conflict', 'states', 'unique_while', 'max_wait', 'max_count');
    if (period === undefined) throw refuse('period', `is required: it is the window of ${path('sample')}.`);
    if (sample === 'trailing' && delay > 0) {
      throw refuse('sample', '"trailing" says when the job starts: leave out its delay.');
    }
    return SAMPLES[sample](period);
  }
  const accumulates = onConflict === 'accumulate';
  if (accumulates) {
    refuseBeside(
      `${path('on_conflict')} "accumulate", which counts jobs that have not started`,
      'states',
      'unique_while',
    );
    if (chosen && !chosen.includes('queue')) {
      const member = path(Array.isArray(policy.key) ? 'key' : 'keys');
      const message = `${member} must include "queue": jobs of several queues cannot accumulate in one.`;
      throw unsupported(message, { field: member });
    }
  }
  if (max_wait_ms !== undefined && !accumulates && onConflict !== 'replace') {
    throw refuse('max_wait', `has no effect unless ${path('on_conflict')} is "replace" or "accumulate".`);
  }
  if (max_wait_ms !== undefined && max_wait_ms < delay) {
    throw refuse('max_wait', `must be at least the delay of the job, which is ${delay} ms.`);
  }
  if (max_count !== undefined && !accumulates) {
    throw refuse('max_count', `has no effect unless ${path('on_conflict')} is "accumulate".`);
  }
  // A job that runs is not cancelled by a stream of newcomers unless they say so.
  const usual = accumulates ? UNSTARTED : max_wait_ms === undefined ? OPEN_STATES : (WHILE.queued as JobState[]);
  return {
    states: policy.states ?? [...(policy.unique_while ?? usual)],
    on_conflict: onConflict,
    ...defined({ period_ms: period, max_wait_ms, max_count }),
  };
}

/** Which jobs a policy looks at: those of its queue, or those of all queues. @param policy as written, and valid */
export function scopeOf(policy: unknown): UniquePolicy['scope'] {
  if (!isObject(policy)) return 'global';
  if (policy.on_conflict === 'accumulate') return 'queue';
  const chosen = Array.isArray(policy.key) ? policy.key : policy.keys;
  return Array.isArray(chosen) && chosen.includes('queue') ? 'queue' : 'global';
}

/** The names of one member; at most one of them may be given. */
const PERIODS = ['period', 'within', 'period_ms'] as const;

const pick = (source: Record<string, unknown>, names: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(names.filter((name) => Object.hasOwn(source, name)).map((name) => [name, source[name]]));

/** Each name must be in one of the objects. @param listed names as written, among others @throws {ApiError} 400 */
function requireMembers(
  names: readonly string[],
  objects: readonly object[],
  field: string,
  message: string,
  listed = names,
): void {
  const missing = names.find((name) => !objects.some((object) => Object.hasOwn(object, name)));
  if (missing === undefined) return;
  const path = `${field}[${listed.indexOf(missing)}]`;
  throw invalidRequest(path, `${path}: ${message} ${quote(JSON.stringify(missing))}.`);
}

function selectFromArgs(
  args: readonly unknown[],
  names: readonly string[],
  field: string,
  listed: readonly string[],
): unknown[] {
  const objects = args.filter(isObject);
  requireMembers(names, objects, field, 'no object in args has a member', listed);
  return objects.map((object) => pick(object, names));
}

function selectFromMeta(meta: Record<string, unknown>, names: readonly string[] | undefined, field: string): unknown {
  if (names === undefined || names.length === 0) {
    throw invalidRequest(field, `${field} must name members of meta.`);
  }
  requireMembers(names, [meta], field, 'meta has no member');
  return pick(meta, names);
}
