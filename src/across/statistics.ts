/** Statistics of many queues: counts, and recent events. */
import type { Env } from '../config';
import type { QueueEvent } from '../durable/event-log';
import { onEmptied } from '../durable/memory';
import { inParallel } from '../durable/parallel';
import { errorDataOf } from '../durable/platform-errors';
import { type Outcome, unavailable, unwrap } from '../job/errors';
import type { DirectoryHealth } from '../rpc/directory';
import type { QueueActivity } from '../rpc/metrics';
import type { EventsRequest } from '../rpc/queue';
import type { QueueStats } from '../rpc/stats';
import { directoryObject, queueObject } from '../rpc/stubs';
import { busiestQueues, queuesOf } from './queues';

/** The counts of a queue, also of one that does not exist. */
export const statsOf = async (env: Env, name: string): Promise<QueueStats> =>
  unwrap(await queueObject(env, name).stats());

export const statsOfEach = (env: Env, queues: readonly { name: string }[]): Promise<QueueStats[]> =>
  inParallel(queues, ({ name }) => statsOf(env, name));

export function activityOfEach(env: Env, queues: readonly { name: string }[]): Promise<(QueueStats & QueueActivity)[]> {
  return inParallel(queues, async ({ name }) => {
    return { ...(await statsOf(env, name)), ...(await queueObject(env, name).activity()) };
  });
}

/** Minimum interval between reads of the directory for probes, per isolate, ms. */
const PING_EVERY_MS = 5_000;

/** Where storage could not be written recently. It counts as well once it was written again. */
let doubts = new WeakSet<Env>();
let pings = new WeakMap<Env, { at: number; answer: Outcome<DirectoryHealth> }>();
onEmptied(() => {
  pings = new WeakMap();
  doubts = new WeakSet();
});

/** A request failed because storage could not be used: probes find out whether that is over. */
export function doubtStorage(env: Env): void {
  if (!doubts.has(env)) pings.delete(env);
  doubts.add(env);
}

/**
 * Does storage answer, and how many queues and workers are there? At most one call per {@link PING_EVERY_MS}.
 * @param now epoch ms @param note called with a failure @returns why it did not answer, now or a moment ago
 */
export async function ping(env: Env, now: number, note: (error: unknown) => void): Promise<Outcome<DirectoryHealth>> {
  const last = pings.get(env);
  if (last && now >= last.at && now - last.at < PING_EVERY_MS) return last.answer;
  // Probes meanwhile get the last known answer.
  if (last) pings.set(env, { ...last, at: now });
  let answer: Outcome<DirectoryHealth>;
  try {
    const isDoubted = doubts.has(env);
    answer = { ok: true, value: await directoryObject(env).health(isDoubted) };
    if (isDoubted) doubts.delete(env);
  } catch (error) {
    note(error);
    answer = { ok: false, error: errorDataOf(error, now) ?? unavailable('The objects cannot be reached.', 5).data };
  }
  pings.set(env, { at: now, answer });
  return answer;
}

/** Queues asked for their events at a time: each answers with up to 2 MiB. */
const EVENTS_WIDTH = 8;

/**
 * Events of queues by id, at most `limit` in memory. Absent: all queues (the busiest of many) and the workers.
 * @param newest the last ones that match, instead of the first
 * @throws {ApiError} 422 when more queues are named than may be asked
 */
export async function recentEvents(
  env: Env,
  request: EventsRequest,
  { queues, newest = false }: { queues?: readonly string[] | undefined; newest?: boolean } = {},
): Promise<QueueEvent[]> {
  let events: QueueEvent[] = [];
  const gather = (more: readonly QueueEvent[]) => {
    const all = [...events, ...more].sort((a, b) => (a.id < b.id ? -1 : 1));
    events = newest ? all.slice(-request.limit) : all.slice(0, request.limit);
  };
  await inParallel(
    queues ? await queuesOf(env, { queues }) : (await busiestQueues(env)).names,
    async (queue) => gather(await queueObject(env, queue).events(request)),
    EVENTS_WIDTH,
  );
  if (queues === undefined) gather(await directoryObject(env).workerEvents(request));
  return events;
}
