/**
 * From a job id to its queue: by the route in the id, cached by the isolate because routes never change; else
 * (client-chosen, or moved) the queues that a shard of the directory names (`ids.ts`).
 */
import type { Env } from '../config';
import { onEmptied } from '../durable/memory';
import { inParallel } from '../durable/parallel';
import { jobNotFound, type Outcome, unwrap } from '../job/errors';
import { isUuidV7, routeOf } from '../job/ids';
import type { JobView } from '../job/record';
import type { IdPlace } from '../rpc/ids';
import type { QueueApi } from '../rpc/queue';
import { directoryObject, queueObject } from '../rpc/stubs';
import { allPlacesOf, beingListed, certainPlacesOf } from './ids';

const MAX_ROUTES = 20_000;

const queueByRoute = new Map<number, string>();
onEmptied(() => queueByRoute.clear());

/** The queues that the routes of these ids belong to, by id. They need not hold the jobs. One call at most. */
export async function homesOf(env: Env, ids: readonly string[]): Promise<Map<string, string>> {
  const unknown = [...new Set(ids.map(routeOf))].filter((route) => !queueByRoute.has(route));
  if (unknown.length > 0) {
    if (queueByRoute.size > MAX_ROUTES) queueByRoute.clear();
    for (const { route, name } of await directoryObject(env).resolve(unknown)) queueByRoute.set(route, name);
  }
  return new Map(
    ids.flatMap((id) => {
      const queue = queueByRoute.get(routeOf(id));
      return queue === undefined ? [] : [[id, queue] as const];
    }),
  );
}

/** Runs `call` on the queue that holds the job. @returns its result; 404 without a queue, or if `id` is not a job id */
export async function withJob<T>(
  env: Env,
  id: string,
  call: (queue: QueueApi, name: string) => Promise<Outcome<T>>,
): Promise<Outcome<T>> {
  let outcome: Outcome<T> = jobNotFound(id);
  if (!isUuidV7(id)) return outcome;
  const home = (await homesOf(env, [id])).get(id);
  if (home !== undefined) {
    outcome = await call(queueObject(env, home), home);
    if (!isMissing(outcome)) return outcome;
  }
  for (const { queue } of await certainPlacesOf(env, [id])) {
    if (queue === home) continue;
    const other = await call(queueObject(env, queue), queue);
    if (!isMissing(other)) return other;
  }
  return outcome;
}

/** Sends items about jobs to a queue. @returns those whose jobs it does not have; earlier versions do not say */
export type ToJobs<T> = (queue: QueueApi, items: T[]) => Promise<Outcome<T[] | undefined>>;

export interface Queues {
  queue(name: string): QueueApi;
  withJob<T>(id: string, call: (queue: QueueApi, name: string) => Promise<Outcome<T>>): Promise<Outcome<T>>;
}

/** Items to {@link reach} in one go at most: a job that has moved takes some calls to find, and an event has 1,000. */
export const MAX_REACHED = 100;

/** Sends items about jobs to their queue; what it does not have goes wherever the job is now. @throws {ApiError} */
export async function reach<T>(
  queues: Queues,
  queue: string,
  items: readonly T[],
  idOf: (item: T) => string,
  send: ToJobs<T>,
): Promise<void> {
  for (const item of unwrap(await send(queues.queue(queue), [...items])) ?? []) {
    const id = idOf(item);
    const missing = jobNotFound(id);
    const sent = await queues.withJob(id, async (object, name) => {
      if (name === queue) return missing;
      const answer = await send(object, [item]);
      return answer.ok && (answer.value?.length ?? 0) > 0 ? missing : answer;
    });
    if (!isMissing(sent)) unwrap(sent);
  }
}

/** Cancels jobs of a queue that have not ended, wherever they are now. @throws {ApiError} */
export const cancelAt = (queues: Queues, queue: string, ids: readonly string[]): Promise<void> =>
  reach(queues, queue, ids, String, (object, some) => object.cancelSteps(some));

export const isMissing = (outcome: Outcome<unknown> | undefined): boolean =>
  outcome?.ok === false && outcome.error.code === 'not_found';

function byQueue(places: readonly IdPlace[]): Map<string, string[]> {
  const groups = Map.groupBy(places, ({ queue }) => queue);
  return new Map([...groups].map(([queue, group]) => [queue, group.map(({ id }) => id)]));
}

/** Asks one queue about some ids; `isSearch`: none of them names this queue, and the queues they name lack the job. */
type AskQueue = (queue: string, ids: string[], isSearch: boolean) => Promise<void>;

/**
 * Asks each id's queue, then the queues that may have the ids not found (moved, or an accidental route).
 * @param queues where to look for these; absent: anywhere @param width queues searched at a time
 * @throws {ApiError} 503 when an id is not found, and ids of earlier releases are still being noted
 */
export async function askByHome(
  env: Env,
  ids: readonly string[],
  queues: string[] | undefined,
  { ask, isFound, width }: { ask: AskQueue; isFound: (id: string) => boolean; width?: number },
): Promise<void> {
  const valid = [...new Set(ids)].filter(isUuidV7);
  const homes = await homesOf(env, valid);
  const find = async (wanted: string[]) =>
    queues
      ? { places: queues.flatMap((queue) => wanted.map((id) => ({ id, queue }))), left: 0 }
      : await allPlacesOf(env, wanted);
  const { places, left } = await find(valid.filter((id) => !homes.has(id)));
  const first = byQueue([...[...homes].map(([id, queue]) => ({ id, queue })), ...places]);
  await inParallel([...first], ([queue, own]) => ask(queue, own, false));

  const lost = valid.filter((id) => !isFound(id));
  const moved = await find(lost.filter((id) => homes.has(id)));
  const search = async ([queue, wanted]: [string, string[]]) => {
    const open = wanted.filter((id) => homes.get(id) !== queue && !isFound(id));
    if (open.length > 0) await ask(queue, open, true);
  };
  await inParallel([...byQueue(moved.places)], search, width);
  if (left + moved.left > 0 && valid.some((id) => !isFound(id))) throw beingListed(left + moved.left);
}

/** @returns the jobs with these ids, in that order, and the ids of those that did not fit into a queue's answer */
export async function readJobs(env: Env, ids: readonly string[]): Promise<{ jobs: JobView[]; omitted: string[] }> {
  const found = new Map<string, JobView | 'omitted'>();
  const ask = async (queue: string, named: string[]) => {
    const { jobs, omitted } = await queueObject(env, queue).getMany(named);
    for (const view of jobs) found.set(view.record.id, view);
    for (const id of omitted) found.set(id, 'omitted');
  };
  await askByHome(env, ids, undefined, { ask, isFound: (id) => found.has(id) });
  const jobs = ids.flatMap((id) => found.get(id) ?? []).filter((view) => view !== 'omitted');
  return { jobs, omitted: ids.filter((id) => found.get(id) === 'omitted') };
}
