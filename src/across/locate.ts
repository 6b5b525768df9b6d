/**
 * From a job id to its queue. Ids minted here carry the route of their queue, so one lookup (remembered by the isolate,
 * routes never change hands) finds it. An id chosen by a client says nothing: then the known queues are asked.
 */
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { notFound, type Outcome } from '../job/errors';
import { isUuidV7, routeOf } from '../job/ids';
import type { JobView } from '../job/record';
import type { QueueApi } from '../rpc/queue';
import { directoryObject, queueObject } from '../rpc/stubs';
import { knownQueues } from './queues';

const queueByRoute = new Map<number, string>();

/** Forgets every remembered route; needed only after a reset, when routes are given out anew. */
export function forgetRoutes(): void {
  queueByRoute.clear();
}

/** The queue that this id's route belongs to, if there is one. It need not hold the job. */
export async function queueOfRoute(env: Env, id: string): Promise<string | undefined> {
  const route = routeOf(id);
  const remembered = queueByRoute.get(route);
  if (remembered !== undefined) return remembered;
  const known = await directoryObject(env).resolve(route);
  if (known === null) return undefined;
  queueByRoute.set(route, known.name);
  return known.name;
}

/**
 * Runs `call` on the queue that holds the job.
 * @returns what `call` answered; 404 when no queue has the job or `id` is no job id
 */
export async function withJob<T>(
  env: Env,
  id: string,
  call: (queue: QueueApi, name: string) => Promise<Outcome<T>>,
): Promise<Outcome<T>> {
  const missing: Outcome<T> = { ok: false, error: notFound('job', id).data };
  if (!isUuidV7(id)) return missing;
  const home = await queueOfRoute(env, id);
  const outcome = home === undefined ? missing : await call(queueObject(env, home), home);
  if (outcome.ok || outcome.error.code !== 'not_found') return outcome;
  const found = await findElsewhere(env, id, home);
  return found === undefined ? outcome : call(queueObject(env, found.record.queue), found.record.queue);
}

/** Looks for a job in every known queue but `except`. */
export async function findElsewhere(env: Env, id: string, except: string | undefined): Promise<JobView | undefined> {
  const queues = (await knownQueues(env)).filter((name) => name !== except);
  const answers = await inParallel(queues, (name) => queueObject(env, name).get(id));
  return answers.flatMap((answer) => (answer.ok ? [answer.value] : []))[0];
}

/**
 * Which queues to ask for which of these ids. An id that carries a route is asked for in the queue it names; one chosen by
 * a client may be anywhere, so every queue is asked.
 * @param queues where to look for ids without a route; absent: all queues
 */
export async function groupByHome(env: Env, ids: readonly string[], queues?: string[]): Promise<Map<string, string[]>> {
  const valid = [...new Set(ids)].filter(isUuidV7);
  const homes = await inParallel(valid, (id) => queueOfRoute(env, id));
  const everywhere = homes.includes(undefined) ? (queues ?? (await knownQueues(env))) : [];
  const places = valid.flatMap((id, at) =>
    (homes[at] === undefined ? everywhere : [homes[at]]).map((queue) => ({ queue, id })),
  );
  const groups = Map.groupBy(places, ({ queue }) => queue);
  return new Map([...groups].map(([queue, group]) => [queue, group.map(({ id }) => id)]));
}

/** Asks one queue about some ids; `isSearch`: none of them names this queue. */
type AskQueue = (queue: string, ids: string[], isSearch: boolean) => Promise<void>;

/**
 * Asks about each of these ids the queue that it names, then all others about those that were not found there: a job may have
 * moved with its id, and an id chosen by a client may carry a route by accident.
 * @param queues where to look beside; absent: all queues
 * @param width how many queues to search at a time
 */
export async function askByHome(
  env: Env,
  ids: readonly string[],
  queues: string[] | undefined,
  { ask, isFound, width }: { ask: AskQueue; isFound: (id: string) => boolean; width?: number },
): Promise<void> {
  const homes = await groupByHome(env, ids, queues);
  await inParallel([...homes], ([queue, named]) => ask(queue, named, false));
  const lost = [...new Set([...homes.values()].flat())].filter((id) => !isFound(id));
  if (lost.length === 0) return;
  const search = async (queue: string) => {
    const asked = new Set(homes.get(queue));
    const wanted = lost.filter((id) => !isFound(id) && !asked.has(id));
    if (wanted.length > 0) await ask(queue, wanted, true);
  };
  await inParallel(queues ?? (await knownQueues(env)), search, width);
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
