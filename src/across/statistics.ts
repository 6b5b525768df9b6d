/** What queues say of themselves, gathered over many of them: counts, and what happened lately. */
import type { Env } from '../config';
import type { QueueEvent } from '../durable/event-log';
import { inParallel } from '../durable/parallel';
import { unwrap } from '../job/errors';
import type { QueueActivity } from '../rpc/operations';
import type { EventsRequest, QueueStats } from '../rpc/queue';
import { directoryObject, queueObject } from '../rpc/stubs';
import { knownQueues } from './queues';

/** Queues looked at for the number of paused ones, and for how long the number is reused (ms). */
const PROBED_QUEUES = 100;
const PROBE_AGE_MS = 30_000;

/** The counts of a queue, also of one that does not exist. */
export async function statsOf(env: Env, name: string): Promise<QueueStats> {
  return unwrap(await queueObject(env, name).stats());
}

/** The counts of each queue. */
export function statsOfEach(env: Env, queues: readonly { name: string }[]): Promise<QueueStats[]> {
  return inParallel(queues, ({ name }) => statsOf(env, name));
}

/** The counts of each queue, and how it gets on. */
export function activityOfEach(env: Env, queues: readonly { name: string }[]): Promise<(QueueStats & QueueActivity)[]> {
  return inParallel(queues, async ({ name }) => {
    return { ...(await statsOf(env, name)), ...(await queueObject(env, name).activity()) };
  });
}

let paused: { count: number; at: number } | undefined;

/** How many queues there are, and how many of them were paused when last looked at: a probe must not keep them awake. */
export async function countQueues(env: Env, now: number): Promise<{ total: number; paused: number }> {
  const known = await directoryObject(env).list();
  if (paused === undefined || now - paused.at > PROBE_AGE_MS) {
    const stats = await inParallel(known.slice(0, PROBED_QUEUES), ({ name }) => queueObject(env, name).stats());
    paused = { count: stats.filter((outcome) => outcome.ok && outcome.value.paused).length, at: now };
  }
  return { total: known.length, paused: Math.min(paused.count, known.length) };
}

/** Queues asked for their events at a time: each answers with up to 2 MiB. */
const EVENTS_WIDTH = 8;

/**
 * Events of these queues in the order of their ids, at most `limit`; absent: of all queues, and of the workers, which belong to
 * none. Never more than `limit` are held, however many queues there are.
 * @param newest the last ones that match, instead of the first
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
    queues ?? (await knownQueues(env)),
    async (queue) => gather(await queueObject(env, queue).events(request)),
    EVENTS_WIDTH,
  );
  if (queues === undefined) gather(await directoryObject(env).workerEvents(request));
  return events;
}
