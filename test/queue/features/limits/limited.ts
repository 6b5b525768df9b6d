/** Limited jobs, used over HTTP as producers, workers and operators use them. Tests that use this start at T0. */
import { clock, T0 } from '../../../support/clock';
import type { TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';

/** Enqueues a job; its id. */
export function addTo(queue: TestQueue, rate_limit?: Json, options: Json = {}): Promise<string> {
  return server.add('test.limited', [], { queue: queue.name, rate_limit, ...options });
}

/** Enqueues the same job many times; the ids. */
export async function addManyTo(
  queue: TestQueue,
  count: number,
  rate_limit?: Json,
  options: Json = {},
): Promise<string[]> {
  const job = { type: 'test.limited', args: [], options: { queue: queue.name, rate_limit, ...options } };
  const ids: string[] = [];
  while (ids.length < count) ids.push(...(await server.addAll(Array(Math.min(1000, count - ids.length)).fill(job))));
  return ids;
}

/** Claims up to `count` jobs; their ids. */
export const fetchFrom = (queue: TestQueue, count = 100, rest: Json = {}) =>
  server.takeIds(queue.name, { count, ...rest });

/** Reports jobs completed, one by one. */
export async function ack(...ids: string[]): Promise<void> {
  for (const id of ids) await server.ack(id);
}

/** The statistics that are above zero. */
export async function countsOf(queue: TestQueue): Promise<Json> {
  const counts = Object.entries(await server.counts(queue.name));
  return Object.fromEntries(counts.filter(([, count]) => typeof count === 'number' && count > 0));
}

/** When the alarm is set for, ms after T0; null when none is. */
export async function armedAt(queue: TestQueue): Promise<number | null> {
  const time = await clock.armedAt(queue.stub);
  return time === null ? null : time - T0;
}
