/** Operations on jobs named by their ids: on each that can be, or on all or none, in however many queues they are. */
import type { Env } from '../config';
import type { KeyedOperation } from '../directory/api';
import { ApiError, unavailable, unwrap } from '../job/errors';
import { LOCKED, lockedError } from '../queue/jobs/lock';
import type { BulkAction, BulkAnswer, BulkItem, IdempotencyKey } from '../queue/operations/api';
import { actAcross, type BulkShare } from '../routing/bulk';
import { directoryObject, inParallel, knownQueues, queueObject } from '../routing/objects';
import { groupByHome } from './job-groups';

/** Ids handled in one transaction, where they need not be all or nothing. */
const STEP = 500;

/** How often an operation is tried again while another one has its jobs, and how long it waits at first, ms. */
const TRIES = 6;
const PAUSE_MS = 20;

/** An operation that was begun under an idempotency key. */
export interface Keyed {
  idempotency: IdempotencyKey;
  operation: KeyedOperation;
}

/**
 * Acts on each job that can be acted on.
 * @returns one item for each id, in order
 */
export async function actOnEach(
  env: Env,
  action: BulkAction,
  ids: readonly string[],
  keyed?: Keyed,
): Promise<BulkAnswer> {
  const operation = keyed?.operation;
  const homes = await groupByHome(env, ids, operation?.queues);
  const items = new Map<string, BulkItem>();
  const ask = async (queue: string, named: readonly string[], turn: string) => {
    for (let at = 0; at < named.length; at += STEP) {
      const request = {
        action,
        ids: named.slice(at, at + STEP),
        atomic: false,
        // Each step is done once, and remembered by the queue in the transaction that does it.
        ...(operation && { once: onceFor(operation, `${turn} ${at}`) }),
        ...(operation?.replayed && { createdUntil: operation.started_at }),
      };
      for (const item of unwrap(await queueObject(env, queue).bulk(queue, request)).items) note(items, item);
    }
  };
  await inParallel([...homes], ([queue, named]) => ask(queue, named, 'home'));
  // A job may have moved to another queue with its id.
  const lost = [...items.values()].filter(({ reason }) => reason === 'not_found').map(({ job_id }) => job_id);
  if (lost.length > 0) {
    for (const queue of operation?.queues ?? (await knownQueues(env))) {
      const wanted = lost.filter((id) => items.get(id)?.reason === 'not_found' && !homes.get(queue)?.includes(id));
      await ask(queue, wanted, 'search');
    }
  }
  return { items: inOrder(ids, items), applied: true };
}

/** Of what several queues say about a job, that of the one that has it counts. */
function note(items: Map<string, BulkItem>, item: BulkItem): void {
  if (!items.has(item.job_id) || item.reason !== 'not_found') items.set(item.job_id, item);
}

/** One item for each id that was named, in order. */
function inOrder(ids: readonly string[], items: ReadonlyMap<string, BulkItem>): BulkItem[] {
  const firsts = new Set<string>();
  return ids.map((job_id): BulkItem => {
    if (firsts.has(job_id)) return { job_id, status: 'skipped', reason: 'repeated' };
    firsts.add(job_id);
    return items.get(job_id) ?? { job_id, status: 'failed', reason: 'not_found' };
  });
}

/** No key of a client has a line break, so it cannot be taken for one of these. */
function onceFor({ id }: KeyedOperation, step: string): IdempotencyKey {
  return { key: `bulk\n${id}\n${step}`, hash: '' };
}

/**
 * Acts on all of these jobs or on none.
 * @returns one item for each id, in order; not applied: nothing was changed
 * @throws {ApiError} 503 when other operations have the jobs, time and again
 */
export async function actOnAll(
  env: Env,
  action: BulkAction,
  ids: readonly string[],
  keyed?: Keyed,
): Promise<BulkAnswer> {
  for (let tries = 1; ; tries++) {
    try {
      const answer = await actOnAllOnce(env, action, ids, keyed);
      return { ...answer, items: inOrder(ids, new Map(answer.items.map((item) => [item.job_id, item]))) };
    } catch (error) {
      const isLocked = error instanceof ApiError && error.data.details?.reason === LOCKED;
      if (!isLocked || tries === TRIES) throw error;
      // At random, so that two operations that met do not meet again.
      await scheduler.wait(PAUSE_MS * 2 ** tries * Math.random());
    }
  }
}

async function actOnAllOnce(
  env: Env,
  action: BulkAction,
  ids: readonly string[],
  keyed: Keyed | undefined,
): Promise<BulkAnswer> {
  const earlier = keyed && (await recall(env, keyed));
  if (earlier) return earlier;
  const found = await judgeAll(env, action, ids, keyed?.operation.queues);
  const items = inOrder(ids, new Map(found.map(({ item }) => [item.job_id, item])));
  const locked = items.find(({ reason }) => reason === LOCKED);
  if (locked) throw lockedError(locked.job_id);
  if (items.some(({ status, reason }) => status !== 'done' && reason !== 'repeated')) {
    return refusedOrEarlier(env, { items, applied: false }, keyed);
  }
  const groups = new Map<string, string[]>();
  for (const { queue, item } of found) groups.set(queue, [...(groups.get(queue) ?? []), item.job_id]);
  const first = [...groups.keys()][0] as string;
  const coordinator = keyed ? await coordinatorOf(env, keyed, first) : first;
  const others = [...groups].filter(([queue]) => queue !== coordinator);
  const shares: [BulkShare, ...BulkShare[]] = [
    { queue: coordinator, ids: groups.get(coordinator) ?? [] },
    ...others.map(([queue, named]) => ({ queue, ids: named })),
  ];
  const once = keyed && onceFor(keyed.operation, 'all');
  const answer =
    others.length > 0
      ? await actAcross(env, action, shares, once)
      : unwrap(
          await queueObject(env, coordinator).bulk(coordinator, {
            action,
            ids: shares[0].ids,
            atomic: true,
            ...(once && { once }),
          }),
        );
  return answer.applied ? answer : refusedOrEarlier(env, answer, keyed);
}

/** Where each job is, and what would become of it. Jobs that no queue has are left out. */
async function judgeAll(
  env: Env,
  action: BulkAction,
  ids: readonly string[],
  queues: string[] | undefined,
): Promise<{ queue: string; item: BulkItem }[]> {
  const homes = await groupByHome(env, ids, queues);
  const found = new Map<string, { queue: string; item: BulkItem }>();
  const ask = async (queue: string, named: string[]) => {
    for (const item of unwrap(await queueObject(env, queue).judge(queue, { action, ids: named }))) {
      if (item.reason !== 'not_found' && !found.has(item.job_id)) found.set(item.job_id, { queue, item });
    }
  };
  await inParallel([...homes], ([queue, named]) => ask(queue, named));
  const lost = [...new Set([...homes.values()].flat())].filter((id) => !found.has(id));
  if (lost.length > 0) {
    // A job may have moved to another queue with its id.
    await inParallel(queues ?? (await knownQueues(env)), async (queue) => {
      const named = lost.filter((id) => !homes.get(queue)?.includes(id));
      if (named.length > 0) await ask(queue, named);
    });
  }
  return [...new Set(ids)].flatMap((id) => found.get(id) ?? []);
}

/** All that send the same request must name the same queue to decide, or two of them could. */
async function coordinatorOf(env: Env, { idempotency, operation }: Keyed, first: string): Promise<string> {
  const queue = await directoryObject(env).coordinateOperation(idempotency.key, operation.id, first);
  if (queue === null) throw unavailable('The same request has just been refused; try again.');
  operation.coordinator = queue;
  return queue;
}

async function recall(env: Env, { operation }: Keyed): Promise<BulkAnswer | null> {
  const { coordinator } = operation;
  if (coordinator === undefined) return null;
  return unwrap(await queueObject(env, coordinator).recallBulk(coordinator, onceFor(operation, 'all')));
}

/** What is in the way may be that the same request, sent a moment before, has done it all. */
async function refusedOrEarlier(env: Env, refused: BulkAnswer, keyed: Keyed | undefined): Promise<BulkAnswer> {
  if (!keyed) return refused;
  const { idempotency, operation } = keyed;
  const current = unwrap(await directoryObject(env).beginOperation(idempotency, operation.id));
  const earlier = await recall(env, { idempotency, operation: current });
  if (earlier) return earlier;
  await directoryObject(env).forgetOperation(idempotency.key, operation.id);
  return refused;
}
