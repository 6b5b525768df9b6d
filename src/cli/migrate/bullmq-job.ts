/** What jobs and schedulers of BullMQ mean here. Pure: what Redis holds in, what is sent out. */
import { MAX_DURATION_MS } from '../../job/duration';
import type { RetryPolicy } from '../../producer/envelope';
import { type Finding, FOR_A_TIME, type FoundSchedule, inRange, type Mapped, ranOf, readJson, readOne } from './found';

/** The members of a job's hash that are read. Names differ among versions. */
export const JOB_MEMBERS = [
  ...['name', 'data', 'opts', 'timestamp', 'priority', 'atm', 'attemptsMade', 'failedReason'],
  ...['parentKey', 'deid', 'rjk'],
] as const;

export type Hash = Readonly<Partial<Record<string, string>>>;

interface Options {
  attempts?: number;
  backoff?: number | { type?: string; delay?: number; jitter?: number };
  de?: Deduplication;
  deduplication?: Deduplication;
  priority?: number;
  repeat?: { limit?: number; count?: number };
  removeOnComplete?: Removal;
  removeOnFail?: Removal;
}

interface Deduplication {
  id?: string;
  ttl?: number;
}

type Removal = boolean | number | { age?: number; count?: number };

export const REMARKS = {
  ...FOR_A_TIME,
  'custom backoff': 'It got the retry policy of its queue. Say your delays in `default_retry`, or in the handler.',
  'priority above 100': 'It got priority -100, the lowest: jobs from 100 on are served in the order of enqueue.',
  'jobs kept by number': 'Jobs are kept by age here, not by number: set the retention of the queue.',
  'interval below 1 s': 'A schedule fires once a second at most.',
} as const;

type Remark = keyof typeof REMARKS;

/** The policy and its remarks. @param made runs behind the job; its delays continue from there */
export function retryOf({ attempts, backoff }: Options, made: number): Mapped<Remark> {
  const maxAttempts = Math.max(1, (attempts ?? 1) - made);
  if (maxAttempts === 1) return { options: { retry: { maxAttempts } }, remarks: [] };
  const { type = 'fixed', delay = 0, jitter = 0 } = typeof backoff === 'number' ? { delay: backoff } : (backoff ?? {});
  if (type !== 'fixed' && type !== 'exponential')
    return { options: { retry: { maxAttempts } }, remarks: ['custom backoff'] };
  const retry: RetryPolicy = {
    maxAttempts,
    backoffStrategy: delay === 0 ? 'none' : type === 'fixed' ? 'constant' : 'exponential',
    ...(delay > 0 && { initialInterval: type === 'fixed' ? delay : Math.min(delay * 2 ** made, MAX_DURATION_MS) }),
    ...(delay > 0 && type === 'exponential' && { backoffCoefficient: 2, maxInterval: null }),
    jitter: jitter > 0 ? { kind: 'multiply', min: 1 - jitter, max: 1 } : false,
  };
  return { options: { retry }, remarks: [] };
}

/** Lower goes first there, and none before all. */
export function priorityOf(priority: number): Mapped<Remark> {
  if (priority === 0) return { options: {}, remarks: [] };
  return { options: { priority: inRange(-priority) }, remarks: priority > 100 ? ['priority above 100'] : [] };
}

function retentionOf({ removeOnComplete, removeOnFail }: Options): Mapped<Remark> {
  const [completed, discarded] = [ageOf(removeOnComplete), ageOf(removeOnFail)];
  const retention = { ...(completed !== undefined && { completed }), ...(discarded !== undefined && { discarded }) };
  const isByNumber = [removeOnComplete, removeOnFail].some(isNumbered);
  return {
    options: Object.keys(retention).length > 0 ? { retention } : {},
    remarks: isByNumber ? ['jobs kept by number'] : [],
  };
}

const isNumbered = (removal: Removal | undefined): boolean =>
  typeof removal === 'object' ? removal.count !== undefined : typeof removal === 'number' && removal > 0;

/** In ms. Undefined: the retention of its queue. */
function ageOf(removal: Removal | undefined): number | undefined {
  if (removal === true || removal === 0) return 0;
  return typeof removal === 'object' && removal.age !== undefined ? removal.age * 1000 : undefined;
}

/** Its deduplication, or the id that its producer chose. Those that BullMQ gives are numbers. */
function uniqueOf(id: string, given: Deduplication, found: string | undefined): Mapped<Remark> {
  const key = given.id ?? found;
  if (key !== undefined && given.ttl) return { options: {}, remarks: ['unique for a time'] };
  if (key !== undefined) return { options: { unique: { key, onConflict: 'ignore' } }, remarks: [] };
  if (/^\d+$|^repeat:/.test(id)) return { options: {}, remarks: [] };
  return { options: { unique: { key: id, uniqueWhile: 'exists', onConflict: 'ignore' } }, remarks: [] };
}

/** The options that are set: producers in other languages write null for those that are not. */
const optionsIn = (text = '{}'): Options => JSON.parse(text, (_, value) => value ?? undefined);

/** A job. @param dueAt epoch ms, where it is delayed */
export function jobOf(queue: string, id: string, hash: Hash, dueAt?: number): Finding {
  const { name = '' } = hash;
  return readOne('job', { id, queue, name }, () => {
    const opts: Options = optionsIn(hash.opts);
    const attempts = Number(hash.atm ?? hash.attemptsMade ?? 0);
    const retry = retryOf(opts, attempts);
    const priority = priorityOf(Number(hash.priority ?? opts.priority ?? 0));
    const retention = retentionOf(opts);
    const unique = uniqueOf(id, opts.de ?? opts.deduplication ?? {}, hash.deid);
    return {
      ...{ kind: 'job', id, queue, name, createdAt: Number(hash.timestamp ?? 0), args: [readJson(hash.data ?? '{}')] },
      options: {
        ...{ ...retry.options, ...priority.options, ...retention.options, ...unique.options },
        ...(dueAt !== undefined && { delayUntil: new Date(dueAt) }),
      },
      ran: ranOf(attempts, hash.failedReason),
      remarks: [...retry.remarks, ...priority.remarks, ...retention.remarks, ...unique.remarks],
    };
  });
}

export interface Scheduler {
  id: string;
  /** `name`, `pattern` or `every`, `tz`; from 5.16 on also `limit`, `ic`, and the job in `data` and `opts`. */
  hash: Hash;
  /** Epoch ms. */
  next: number;
  /** Its next job, while that is delayed: it does not move. Older versions say there alone what the job is. */
  pending: Hash | undefined;
}

/** A scheduler. @param now epoch ms */
export function scheduleOf(queue: string, scheduler: Scheduler, now: number): Finding {
  const { id, hash, pending } = scheduler;
  const name = hash.name ?? pending?.name ?? id;
  return readOne('schedule', { id, queue, name }, () => readSchedule(queue, name, scheduler, now));
}

function readSchedule(queue: string, name: string, scheduler: Scheduler, now: number): Finding {
  const { id, hash: own, next, pending } = scheduler;
  const hash: Hash = { data: pending?.data, opts: pending?.opts, ...own };
  const every = Number(hash.every ?? 0);
  if (!hash.pattern && !every) throw new Error('it has neither pattern nor interval');
  const job = jobOf(queue, 'repeat:', { name, data: hash.data, opts: hash.opts });
  if (job.kind !== 'job') throw new Error(job.kind === 'broken' ? job.message : 'its job cannot be read');
  const given = hash.startDate === undefined ? undefined : Number(hash.startDate);
  // Intervals count from there: they keep their moments.
  const start = every > 0 ? nextOf(next, every, now) : given !== undefined && given > now ? given : undefined;
  const limit = firesLeft(hash, pending);
  const isTooShort = every > 0 && every < 1000;
  const schedule: FoundSchedule = {
    ...{ kind: 'schedule', id, queue, name, args: job.args, options: job.options, missedPolicy: 'fire_once' },
    expression: hash.pattern ?? `@every PT${Math.max(1000, every) / 1000}S`,
    ...(hash.pattern && hash.tz && { timezone: hash.tz }),
    ...(start !== undefined && { startAt: new Date(start) }),
    ...(hash.endDate && { endAt: new Date(Number(hash.endDate)) }),
    ...(limit !== undefined && { limit }),
    remarks: [...job.remarks, ...(isTooShort ? (['interval below 1 s'] as const) : [])],
  };
  return schedule;
}

/** Fires that are left, the one of the pending job included. */
function firesLeft(hash: Hash, pending: Hash | undefined): number | undefined {
  const { repeat = {} }: Options = optionsIn(pending?.opts);
  const limit = hash.limit ?? repeat.limit;
  if (limit === undefined) return undefined;
  return Number(limit) - Number(hash.ic ?? repeat.count ?? 0) + (pending ? 1 : 0);
}

/** The next of the moments that an interval has. */
const nextOf = (next: number, every: number, now: number): number =>
  next >= now ? next : next + Math.ceil((now - next) / every) * every;

/** Schedulers before 5.16 without a hash: the key is `name:id:endDate:tz:pattern`; only the id may have colons. */
export function legacyHash(key: string): Hash | undefined {
  const parts = key.split(':');
  if (parts.length < 5) return undefined;
  const [pattern = '', tz = '', endDate = ''] = parts.slice(-3).reverse();
  const when = /^\d+$/.test(pattern) ? { every: pattern } : { pattern };
  return { name: parts[0], ...(endDate && { endDate }), ...(tz && { tz }), ...when };
}
