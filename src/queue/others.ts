/** What a queue calls: the objects of other queues, workflows, subscriptions and keys, and the directory. */
import { v7 as uuidv7 } from 'uuid';
import type { BatchEntry } from '../across/batch';
import { enqueueAll, enqueueOne } from '../across/enqueue';
import { type Enqueued, enqueueEach } from '../across/enqueue-many';
import { noteIds } from '../across/ids';
import { withJob } from '../across/locate';
import { Reservations } from '../across/reservation';
import type { Env } from '../config';
import { eventualOutcomeOf, type Outcome } from '../job/errors';
import type { NewJob } from '../job/record';
import type { AlertState } from '../notifications/alert/rule';
import type { QueueApi } from '../rpc/queue';
import type { EnqueuedJob, IdempotencyKey } from '../rpc/receipts';
import { deskObject, directoryObject, queueObject, webhookObject, workflowObject } from '../rpc/stubs';

export type Others = ReturnType<typeof othersOf>;

/** @param own the queue that talks to them */
export const othersOf = (env: Env, own: { readonly name: string; destroy(at: number): Promise<void> }) => ({
  queue: (name: string) => queueObject(env, name),
  workflow: (id: string) => workflowObject(env, id),
  /** The object of a subscription. */
  webhook: (id: string) => webhookObject(env, id),
  /** The desk of a key that counts in all queues. */
  desk: (key: string) => deskObject(env, key),
  /** Reports the state of an alert rule here to the directory. */
  noteAlert: (rule: string, state: AlertState): Promise<unknown> =>
    directoryObject(env).noteAlert(rule, own.name, state),
  /**
   * Notifies the directory that its numbers of this queue are outdated. @param dueAt when next due, epoch ms
   * @returns when the directory looks after the queue, epoch ms, if it said so
   */
  noteChange: (dueAt: number | undefined): Promise<number | null | undefined> =>
    directoryObject(env).queueChanged(own.name, dueAt),
  /** Notes that a queue is about to take jobs under these ids, which do not name it. */
  noteIds: (queue: string, ids: readonly string[]): Promise<unknown> => {
    const places = ids.map((id) => ({ id, queue }));
    return noteIds(env, places, true);
  },
  /**
   * Enqueues jobs into any queues, all or none. @param idempotency repeated under it: the same jobs
   * @throws {ApiError} with `details.index` of the job that was refused
   */
  enqueue: async (entries: readonly BatchEntry[], idempotency?: IdempotencyKey): Promise<EnqueuedJob[]> =>
    (await enqueueAll(env, entries, { idempotency })).jobs,
  /** Enqueues each part of a message that can be accepted now; none takes the place of another. @throws for all */
  enqueueEach: (entries: readonly Outcome<BatchEntry>[], idempotency: IdempotencyKey): Promise<Enqueued> =>
    enqueueEach(env, entries, idempotency, true),
  /** Runs `call` on the queue that has the job, wherever it is now; 404: none has it. */
  withJob: <T>(id: string, call: (queue: QueueApi, name: string) => Promise<Outcome<T>>): Promise<Outcome<T>> =>
    withJob(env, id, call),
  /** Enqueues here a job that is unique across queues: other queues may decide about it. */
  enqueueAcross: (job: NewJob): Promise<Outcome<EnqueuedJob>> =>
    eventualOutcomeOf(async () => (await enqueueOne(env, { queue: own.name, job })).job),
  /** Begins to reserve unique fingerprints under a new ticket. @param coordinator the queue that can give it up */
  reservations: (coordinator: string) => new Reservations(env, uuidv7(), coordinator),
  /** Leaves the directory and empties the object, for good. @param at when the deletion began, epoch ms */
  destroy: (at: number) => own.destroy(at),
});
