/**
 * Access modes of queue RPC methods: what a verb may do if the queue does not exist, or does not have the job.
 *
 * - `look` and `read` read; `read` may refuse. Without a queue the second argument is the answer.
 * - `readAll` reads the whole queue: it waits a while if too much is overdue for one transaction.
 * - `change` is about a job that must exist here; a locked one is refused.
 * - `write` may create the queue; `writeIfExists` does not.
 * - `consider` returns the result that `write` would have, and leaves nothing behind.
 *
 * Verbs list the jobs that they name (`About`), which are processed first whatever else is overdue.
 */
import { jobNotFound, type Outcome } from '../job/errors';
import { isUuidV7 } from '../job/ids';
import { type SentJobs, uniquesIn } from '../job/message';
import type { BulkItem } from '../rpc/operations';
import type { About } from './feature';
import { refuseLocked } from './jobs/lock';
import type { QueueLife } from './life';
import { ENDED_JOBS_HINT, keyOf } from './read/find';
import type { QueueParts } from './store/parts';
import { rivalKeys } from './store/unique-keys';

export type On<A extends unknown[], T> = (q: QueueParts, now: number, ...args: A) => T;

type Naming<A extends unknown[]> = (...args: A) => About;

export function look<A extends unknown[], T>(
  operation: On<A, T>,
  absent: (...args: NoInfer<A>) => NoInfer<T>,
  about?: NoInfer<Naming<A>>,
) {
  return async (life: QueueLife, ...args: A): Promise<T> => {
    const q = life.present(about?.(...args));
    return q ? operation(q, Date.now(), ...args) : absent(...args);
  };
}

export function read<A extends unknown[], T>(
  operation: On<A, T>,
  absent: (...args: NoInfer<A>) => NoInfer<T>,
  about?: NoInfer<Naming<A>>,
) {
  return async (life: QueueLife, ...args: A): Promise<Outcome<T>> =>
    life.read((q, now) => operation(q, now, ...args), about?.(...args)) ?? { ok: true, value: absent(...args) };
}

export function readAll<A extends unknown[], T>(operation: On<A, T>, absent: (...args: NoInfer<A>) => NoInfer<T>) {
  return async (life: QueueLife, ...args: A): Promise<Outcome<T>> =>
    (await life.readAll((q, now) => operation(q, now, ...args))) ?? { ok: true, value: absent(...args) };
}

export function write<A extends unknown[], T>(
  operation: On<A, T>,
  creates?: (value: T) => boolean,
  about?: NoInfer<Naming<A>>,
) {
  return (life: QueueLife, ...args: A): Promise<Outcome<T>> =>
    life.write((q, now) => operation(q, now, ...args), creates, about?.(...args));
}

export function writeIfExists<A extends unknown[], T>(
  operation: On<A, T>,
  absent: (...args: NoInfer<A>) => NoInfer<T>,
  about?: NoInfer<Naming<A>>,
) {
  return async (life: QueueLife, ...args: A): Promise<Outcome<T>> => {
    await life.created();
    const written = life.writeIfExists((q, now) => operation(q, now, ...args), about?.(...args));
    return written ?? { ok: true, value: absent(...args) };
  };
}

export function consider<A extends unknown[], T>(operation: On<A, T>) {
  return (life: QueueLife, ...args: A): Promise<Outcome<T>> => life.consider((q, now) => operation(q, now, ...args));
}

type Named = string | { job_id: string } | { id: string };

const idOf = (named: Named): string =>
  typeof named === 'string' ? named : 'job_id' in named ? named.job_id : named.id;

export const jobs =
  (ids: readonly string[]): About =>
  (q) =>
    ids.map((id) => (isUuidV7(id) ? keyOf(q, id) : undefined));

/** The jobs that may conflict with these. */
export const rivals =
  (newcomers: SentJobs): About =>
  (q) =>
    uniquesIn(newcomers).flatMap((unique) => (unique ? rivalKeys(q.store.sql, unique.fingerprint) : []));

export const held =
  (workerId: string): About =>
  ({ store: { leases } }) =>
    [...leases.active.values()].flatMap((active) => (active.workerId === workerId ? [active.key] : []));

export const noJob = (id: string): Outcome<never> => jobNotFound(id, ENDED_JOBS_HINT);

export function readJob<A extends [Named, ...unknown[]], T>(operation: On<A, T>) {
  return async (life: QueueLife, ...args: A): Promise<Outcome<T>> =>
    life.read((q, now) => operation(q, now, ...args), jobs([idOf(args[0])])) ?? noJob(idOf(args[0]));
}

export function change<A extends [Named, ...unknown[]], T>(operation: On<A, T>) {
  return async (life: QueueLife, ...args: A): Promise<Outcome<T>> => {
    const id = idOf(args[0]);
    const changed =
      isUuidV7(id) &&
      life.writeIfExists(
        (q, now) => {
          refuseLocked(q, id);
          return operation(q, now, ...args);
        },
        jobs([id]),
      );
    return changed || noJob(id);
  };
}

/** The answers where there is no queue, or it has none of what is asked for. */
export const nothing = () => undefined;
export const none = () => [];
export const noneOf = (ids: readonly string[]): BulkItem[] =>
  ids.map((job_id) => ({ job_id, status: 'failed', reason: 'not_found' }));
