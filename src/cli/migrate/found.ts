/** What is found in another system, in words that all of them share, and how one is read. */
import type { CronEntry } from '../../client/cron-entry';
import { parseExactly } from '../../job/envelope/exact';
import { isSuspicious } from '../../job/envelope/json-text';
import { MAX_DEPTH, outlineOf } from '../../job/envelope/nesting';
import { FLAWS, unstorableIn } from '../../job/envelope/storable';
import { own } from '../../job/own';
import { cut } from '../../job/text';
import { messageOf } from '../../job/thrown';
import type { RetryPolicy } from '../../producer/envelope';
import type { CronJobOptions } from '../../producer/job';

/** The options that something found may have, as the client takes them. */
export interface WorkOptions
  extends Pick<CronJobOptions, 'priority' | 'timeoutMs' | 'visibilityTimeoutMs' | 'retention' | 'group' | 'tags'>,
    Pick<CronJobOptions, 'rateLimit' | 'unique'> {
  delayUntil?: Date;
  expiresAt?: Date;
  retry?: RetryPolicy;
}

/** Some of them, and what has no equal. */
export interface Mapped<Remark extends string> {
  options: WorkOptions;
  remarks: Remark[];
}

/** How a job is called by its own system: also the part of {@link FoundJob} that its id here is made of. */
interface Origin {
  id: string;
  queue: string;
  name: string;
}

interface Work extends Origin {
  args: readonly unknown[];
  options: WorkOptions;
  /** What has no equal here: names from the {@link ForeignQueues.remarks}. */
  remarks: readonly string[];
}

export interface FoundJob extends Work {
  kind: 'job';
  /** Epoch ms. The same each time it is read: a part of its id here. */
  createdAt: number;
  /** Its id alone tells it from any other: it may change its queue. */
  hasOwnId?: true;
  /** The runs that it has behind it, and the last error. */
  ran?: { attempts: number; error?: string | undefined } | undefined;
}

/** `limit`: fires that are left. */
export interface FoundSchedule extends Work, Pick<CronEntry, 'expression' | 'timezone' | 'limit' | 'enabled'> {
  kind: 'schedule';
  startAt?: Date | undefined;
  endAt?: Date | undefined;
  missedPolicy: 'skip' | 'fire_once' | 'fire_all';
}

/** What stays where it is. */
export interface FoundLeft {
  kind: 'left';
  what: string;
  count: number;
  todo: string;
}

export interface FoundBroken extends Origin {
  kind: 'broken';
  /** What it would have been. */
  of: 'job' | 'schedule';
  message: string;
}

export type Finding = FoundJob | FoundSchedule | FoundLeft | FoundBroken;

/** Another system, opened to be read. Nothing is written there. */
export interface ForeignQueues {
  /** Says what to do about each remark, in a sentence. */
  remarks: Readonly<Record<string, string>>;
  queues(): Promise<string[]>;
  /** Reads what waits, oldest first within a queue. @param queues undefined: all */
  read(queues: readonly string[] | undefined): AsyncGenerator<Finding>;
  close(): Promise<void>;
}

export interface Opening {
  url: string;
  /** The prefix of the keys in Redis, or the schema in PostgreSQL. */
  within: string;
  /** A file that has the schedules, where the system keeps them in one. */
  crontab?: string | undefined;
  /** Epoch ms. */
  now: number;
}

const LET_THEM_END = 'Stop the old workers once these have ended, and migrate again: what failed waits then.';
const RETRY_THERE = 'Retry them there before you migrate, if they are to run.';

/** What to do about what stays. */
const TODO: Readonly<Record<string, string>> = {
  'jobs that run': LET_THEM_END,
  'active jobs': LET_THEM_END,
  'failed jobs': RETRY_THERE,
  'dead jobs': RETRY_THERE,
  'jobs of flows': 'Let the old workers finish them, or enqueue them as a workflow.',
  'flows that wait for children': 'As with the jobs of flows.',
  // Indices have moved, so some were passed over.
  'jobs that were taken': 'Old workers took jobs meanwhile, and others were passed over: stop them, and migrate again.',
  'paused queues':
    'Create and pause them here before you migrate: npx tocsin queues create <queue>, then pause <queue>.',
  'limits of queues': 'Set concurrency or rate_limit of the queue here: PUT /queues/<queue>/config.',
  'crontab entries':
    'Their times are not in the database: name the file with --crontab, or write them with tocsin crons set.',
};

export function* left(what: string, count: number): Generator<FoundLeft> {
  const todo = own(TODO, what) ?? 'They have ended: nothing to do.';
  if (count > 0) yield { kind: 'left', what, count, todo };
}

/** Reads a job or a schedule. Whatever is wrong with it is reported under its id, and concerns it alone. */
export function readOne(of: FoundBroken['of'], { id, queue, name }: Origin, read: () => Finding): Finding {
  try {
    return read();
  } catch (error) {
    return { kind: 'broken', of, id, queue, name, message: messageOf(error) };
  }
}

/** The value of a JSON text, with exact integers. @throws {Error} for bad JSON, or what a job cannot hold */
export function readJson(text: string): unknown {
  const outline = outlineOf(text, MAX_DEPTH);
  if (outline.depth > MAX_DEPTH) throw new Error(`it nests more than ${MAX_DEPTH} levels deep`);
  const value = parseExactly(text, outline);
  const problem = isSuspicious(text, outline) ? unstorableIn(value) : undefined;
  if (problem) throw new Error(`it ${FLAWS[problem.flaw]}`);
  return value;
}

/** The members that are set: programs in some languages write null for those that are not. */
export const withoutNulls = (members: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));

/** The epoch ms of a time of PostgreSQL; `infinity` is infinite. @throws {Error} for one beyond the year 9999 */
export function epochOf(time: string): number {
  if (time === 'infinity') return Number.POSITIVE_INFINITY;
  if (time === '-infinity' || time.endsWith(' BC')) return Number.NEGATIVE_INFINITY;
  const ms = Date.parse(time);
  if (Number.isNaN(ms)) throw new Error(`its time ${time} cannot be represented here`);
  return ms;
}

/** When a job starts, if that is in the future. @throws {Error} for one that never starts */
export function startingAt(ms: number, now: number): Pick<WorkOptions, 'delayUntil'> {
  if (ms === Number.POSITIVE_INFINITY) throw new Error('its start is infinity: it would never run');
  return ms > now ? { delayUntil: new Date(ms) } : {};
}

const MAX_ERROR = 1000;

/** The runs behind a job; undefined where there are none. */
export const ranOf = (attempts: number, error: string | undefined): FoundJob['ran'] =>
  attempts > 0 ? { attempts, error: error && cut(error, MAX_ERROR).toWellFormed() } : undefined;

/** The remark about jobs that are unique for a time. Two that wait may have the same key: neither may be dropped. */
export const FOR_A_TIME = {
  'unique for a time':
    'Its time began there, so it has no unique key here. New jobs say theirs: unique with a `period`.',
} as const;

/** A priority in the range that there is here: −100 … 100, higher first. */
export const inRange = (priority: number): number => Math.max(-100, Math.min(100, Math.round(priority)));
