/** Workers that pull: what they take, hold and hear, over all the queues they work on. */
import type { Env } from '../config';
import { readConfig } from '../config';
import { inParallel } from '../durable/parallel';
import { defined } from '../job/envelope/fields';
import { conflict, notFound, unwrap } from '../job/errors';
import type { JobView } from '../job/record';
import { formatInstant } from '../job/time';
import type { Directive, WorkerBeat, WorkerView } from '../rpc/directory';
import { directoryObject, queueObject } from '../rpc/stubs';
import type { ClaimRequest, HeartbeatReceipt, LeasedJob } from '../rpc/workers';
import { groupByHome } from './locate';
import { knownQueues, queuesOf } from './queues';

/** A heartbeat: who, what it holds, and which queues it works on. */
export interface Heartbeat {
  worker_id: string;
  /** What the worker says about itself. */
  beat: WorkerBeat;
  /** The jobs to extend; absent: whatever the worker holds. */
  job_ids?: string[];
  visibility_timeout_ms?: number;
  queues?: string[];
}

/**
 * Drains the queues in the order given until `count` jobs are claimed. Waiting is left to a single queue, the last:
 * two that wait at once might both hand out jobs, more than were asked for.
 */
export async function claimInOrder(env: Env, queues: readonly string[], request: ClaimRequest): Promise<JobView[]> {
  const { wait_ms = 0, ...rest } = request;
  const single = queues.length === 1;
  const claim = async (queue: string, count: number, wait: number): Promise<JobView[]> =>
    unwrap(await queueObject(env, queue).claim({ ...rest, count, ...(wait > 0 && { wait_ms: wait }) }));

  const claimed: JobView[] = [];
  for (const queue of queues) {
    if (claimed.length >= request.count) break;
    claimed.push(...(await claim(queue, request.count - claimed.length, single ? wait_ms : 0)));
  }
  const last = queues.at(-1);
  if (claimed.length > 0 || single || wait_ms === 0 || last === undefined) return claimed;
  return claim(last, request.count, wait_ms);
}

/**
 * Extends the worker's leases and registers it. Its jobs come first: when the directory cannot be reached, the worker is
 * told to go on, and its leases are extended all the same.
 * @param requestId names the request in the log
 * @returns what the worker is to do, and the jobs whose leases were extended
 */
export async function takeHeartbeat(
  env: Env,
  heard: Heartbeat,
  requestId: string,
): Promise<{ state: string; extended: string[] }> {
  const [answers, told] = await Promise.all([extendLeases(env, heard), register(env, heard, requestId)]);
  const directives: (string | undefined)[] = [told, ...answers.map(({ directive }) => directive)];
  const state = ['terminate', 'quiet'].find((word) => directives.includes(word)) ?? 'running';
  return { state, extended: [...new Set(answers.flatMap(({ extended }) => extended))] };
}

async function extendLeases(env: Env, heard: Heartbeat): Promise<HeartbeatReceipt[]> {
  const { worker_id, visibility_timeout_ms } = heard;
  const held: Map<string, string[] | undefined> =
    heard.job_ids === undefined
      ? new Map((await queuesOf(env, heard)).map((queue) => [queue, undefined]))
      : await groupByHome(env, heard.job_ids, heard.queues);
  const { testHooks } = readConfig(env);
  return inParallel([...held], async ([queue, job_ids]) => {
    const request = defined({ worker_id, job_ids, visibility_timeout_ms });
    const { extended, directive } = unwrap(await queueObject(env, queue).heartbeat(request));
    return { extended, ...(testHooks && directive !== undefined && { directive }) };
  });
}

async function register(env: Env, heard: Heartbeat, requestId: string): Promise<string> {
  try {
    const { directive, silenced, silencedChanged } = await directoryObject(env).beat(heard.beat);
    if (silencedChanged) await tellQueues(env, [heard.worker_id], silenced, heard.queues);
    return directive;
  } catch (error) {
    console.error(`${requestId} worker ${heard.worker_id} could not be registered:`, error);
    return 'running';
  }
}

/** Lets queues know at once whether these workers may get jobs; what is missed here they find out within a minute. */
async function tellQueues(env: Env, ids: string[], silenced: boolean, queues?: readonly string[]): Promise<void> {
  const names = queues ?? (await knownQueues(env));
  await inParallel(names, (name) => queueObject(env, name).silence(ids, silenced));
}

/** A worker that has sent a heartbeat. @throws {ApiError} 404 */
export async function knownWorker(env: Env, id: string): Promise<WorkerView> {
  const worker = await directoryObject(env).worker(id);
  if (worker === null) throw notFound('worker', id, 'Workers are known from their first heartbeat on.');
  return worker;
}

/**
 * Tells workers what to do. The directory hears it first: a queue that has just woken asks it.
 * @param ids absent: all workers
 * @returns the workers that were told
 */
export async function directWorkers(env: Env, directive: Directive, ids?: string[]): Promise<string[]> {
  const told = await directoryObject(env).direct(directive, ids);
  if (told.length === 0) return told;
  if (directive !== 'running') {
    await tellQueues(env, told, true);
    return told;
  }
  // Some go on being silent: they said themselves that they are leaving.
  const silent = new Set(await directoryObject(env).silencedWorkers());
  const speaking = told.filter((id) => !silent.has(id));
  await tellQueues(env, speaking, false);
  return told;
}

/** The jobs that a worker holds, in all queues. */
export async function jobsLeasedBy(env: Env, id: string): Promise<LeasedJob[]> {
  return (await inParallel(await knownQueues(env), (name) => queueObject(env, name).leasedBy(id))).flat();
}

/**
 * Forgets a worker that is gone, and gives its jobs to others without waiting for their leases to run out.
 * @throws {ApiError} 404; 409 while the worker is alive
 */
export async function removeWorker(env: Env, id: string): Promise<void> {
  const worker = await knownWorker(env, id);
  if (worker.state !== 'stale') throw notStale(worker);
  await inParallel(await knownQueues(env), async (name) => unwrap(await queueObject(env, name).releaseLeased(id)));
  if ((await directoryObject(env).removeWorker(id)) === 'alive') throw notStale(worker);
  if (worker.directive !== 'running') await tellQueues(env, [id], false);
}

function notStale({ id, state, last_heartbeat_at }: WorkerView) {
  return conflict(`Worker ${id} sent a heartbeat at ${formatInstant(last_heartbeat_at)}; it is not stale.`, {
    worker_id: id,
    current_state: state,
    expected_state: 'stale',
  });
}
