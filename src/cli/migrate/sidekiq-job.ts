/** What jobs of Sidekiq mean here. Pure: what Redis holds in, what is sent out. */
import { isObject, parseObject } from '../../job/envelope/fields';
import { own } from '../../job/own';
import { quote } from '../../job/text';
import type { RetryPolicy } from '../../producer/envelope';
import {
  type Finding,
  FOR_A_TIME,
  type FoundJob,
  type FoundSchedule,
  type Mapped,
  ranOf,
  readJson,
  readOne,
  withoutNulls,
} from './found';

/** A job as Sidekiq, Active Job and some gems write it. Times are s, from version 8 on ms. */
interface Payload {
  jid?: string;
  class?: string;
  /** The job class of Active Job. */
  wrapped?: string;
  args?: unknown[];
  queue?: string;
  retry?: boolean | number;
  dead?: boolean;
  retry_count?: number;
  error_class?: string;
  error_message?: string;
  created_at?: number;
  enqueued_at?: number;
  expiry?: number;
  tags?: unknown;
  unique_for?: number;
  /** Of the gem sidekiq-unique-jobs. */
  lock?: string;
  lock_ttl?: number | null;
  lock_digest?: string;
  unique_digest?: string;
  bid?: string;
  encrypt?: boolean;
}

export const REMARKS = {
  ...FOR_A_TIME,
  'jobs of batches': 'It is a job of its own here, and no callback runs. Enqueue batches as workflows.',
  'Active Job':
    'Its arguments are as Active Job wrote them: records as {"_aj_globalid": …}, symbols in "_aj_symbol_keys".',
  'encrypted arguments': 'The last argument is still encrypted: your worker has to decrypt it.',
} as const;

type Remark = keyof typeof REMARKS;

const SECOND = 1000;
const RETRIES = 25;

/** Times above this are ms: as seconds it is the year 5138. */
const IN_MS = 1e11;
const msOf = (time: number): number => Math.floor(time > IN_MS ? time : time * SECOND);

/** The runs that are left, and their delays: those of Sidekiq, from there on. @param made runs behind the job */
export function retryOf({ retry = true, dead }: Payload, made: number): RetryPolicy {
  const retries = typeof retry === 'number' ? retry : retry ? RETRIES : 0;
  const maxAttempts = Math.max(1, retries + 1 - made);
  const policy: RetryPolicy = {
    ...{ preset: 'sidekiq', maxAttempts },
    ...((dead === false || retry === false) && { onExhaustion: 'discard' }),
  };
  if (made === 0 || maxAttempts === 1) return policy;
  // A preset begins with the first delay: these begin where the job is. The last one repeats.
  const left = Math.min(maxAttempts - 1, Math.max(1, RETRIES - made));
  const table = Array.from({ length: left }, (_, index) => ((made + index) ** 4 + 15) * SECOND);
  return { ...policy, backoffStrategy: 'table', table, jitter: { kind: 'additive', amount: 10 * SECOND * (made + 1) } };
}

/** The class and the arguments: those inside of Active Job's wrapper. */
function workOf({ class: own = '', wrapped, args = [] }: Payload): { name: string; args: readonly unknown[] } {
  const inner = args[0] as { job_class?: string; arguments?: unknown[] } | null | undefined;
  if (wrapped === undefined || !Array.isArray(inner?.arguments)) return { name: wrapped ?? own, args };
  return { name: wrapped, args: inner.arguments };
}

const UNTIL_RUN = /^until_(?:executing|executed|and_while_executing)$/;

function uniqueOf({ unique_for, lock, lock_ttl, lock_digest, unique_digest }: Payload): Mapped<Remark> {
  const key = lock_digest ?? unique_digest;
  if (key === undefined) return { options: {}, remarks: unique_for ? ['unique for a time'] : [] };
  if (lock === 'while_executing') return { options: { rateLimit: { key, concurrency: 1 } }, remarks: [] };
  const isHeld = UNTIL_RUN.test(lock ?? '') && !lock_ttl;
  return isHeld
    ? { options: { unique: { key, onConflict: 'ignore' } }, remarks: [] }
    : { options: {}, remarks: ['unique for a time'] };
}

/** Maps a job. @param queue where it was found; undefined: it names its queue @param dueAt epoch s, if delayed */
export function jobOf(json: string, queue?: string, dueAt?: number): Finding {
  const origin = originOf(json, queue);
  return readOne('job', origin, () => {
    const found = readJson(json);
    const payload = isObject(found) ? withoutNulls(found) : {};
    if (typeof payload.jid === 'string' && Array.isArray(payload.args)) {
      return readJob(payload, origin.queue, dueAt);
    }
    throw new Error(`it has no jid, class or args: ${quote(json)}`);
  });
}

/** Whose it is, as far as it can be read: an element of a list may be anything. */
function originOf(json: string, queue?: string) {
  const found: Record<string, unknown> = parseObject(json) ?? {};
  const textOf = (name: string) => {
    const value = own(found, name);
    return typeof value === 'string' ? value : undefined;
  };
  return {
    id: textOf('jid') ?? '?',
    queue: queue ?? textOf('queue') ?? 'default',
    name: textOf('wrapped') ?? textOf('class') ?? '?',
  };
}

function readJob(payload: Payload, from: string, dueAt: number | undefined): Finding {
  const { jid = '', tags, expiry, retry_count, error_class, error_message } = payload;
  const { name, args } = workOf(payload);
  if (typeof name !== 'string' || name === '') throw new Error('it has no class');
  const made = retry_count === undefined ? 0 : retry_count + 1;
  const error = [error_class, error_message].filter(Boolean).join(': ');
  const found: [Remark, boolean][] = [
    ['jobs of batches', payload.bid !== undefined],
    ['Active Job', payload.wrapped !== undefined],
    ['encrypted arguments', payload.encrypt === true],
  ];
  const unique = uniqueOf(payload);
  const job: FoundJob = {
    ...{ kind: 'job', id: jid, queue: from, hasOwnId: true, name, args },
    createdAt: msOf(payload.created_at ?? payload.enqueued_at ?? 0),
    options: {
      retry: retryOf(payload, made),
      ...(dueAt !== undefined && { delayUntil: new Date(msOf(dueAt)) }),
      ...(expiry !== undefined && { expiresAt: new Date(msOf(expiry)) }),
      ...(Array.isArray(tags) && tags.length > 0 && { tags: tags.map(String) }),
      ...unique.options,
    },
    ran: ranOf(made, error),
    remarks: [...found.flatMap(([what, isSo]) => (isSo ? [what] : [])), ...unique.remarks],
  };
  return job;
}

/** An entry of the gem sidekiq-cron: its hash. */
export function scheduleOf(key: string, hash: Readonly<Partial<Record<string, string>>>): Finding {
  const id = hash.name ?? key;
  const name = hash.klass ?? hash.class ?? '';
  return readOne('schedule', { id, queue: hash.queue ?? '?', name }, () => {
    const given = readJson(hash.message || '{}');
    if (!isObject(given)) throw new Error('its message is not a JSON object');
    const message: Payload = withoutNulls(given);
    const { args } = workOf(message);
    const { expression, timezone } = cronOf(hash.cron ?? '');
    const schedule: FoundSchedule = {
      ...{ kind: 'schedule', id, queue: message.queue ?? hash.queue ?? 'default', name, expression, timezone },
      args: message.args ? args : (readJson(hash.args || '[]') as unknown[]),
      options: { retry: retryOf(message, 0) },
      missedPolicy: 'skip',
      ...(hash.status === 'disabled' && { enabled: false }),
      remarks: message.wrapped === undefined ? [] : ['Active Job'],
    };
    return schedule;
  });
}

/** An expression may end in a time zone there. */
function cronOf(text: string): { expression: string; timezone?: string } {
  const words = text.trim().split(/\s+/);
  const last = words.at(-1) ?? '';
  const isZone = last === 'UTC' || /^[A-Za-z_]+(?:\/[\w+-]+)+$/.test(last);
  return isZone ? { expression: words.slice(0, -1).join(' '), timezone: last } : { expression: text };
}
