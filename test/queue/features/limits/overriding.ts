/** Overrides of limits as operators handle them, and the object that keeps them. */
import { env } from 'cloudflare:workers';
import { TestQueue } from '../../../support/queue';
import { type Json, server, V1 } from '../../../support/server';

/** The key of most of these tests. */
export const KEY = 'stripe';

export const path = (key = KEY) => `${V1}/rate-limits/${key}`;
export const put = (body: Json, key = KEY) => server.ok(200, 'PUT', path(key), body);
export const remove = async (key = KEY) => (await server.call('DELETE', `${path(key)}/override`)).status;
export const directory = () => env.DIRECTORY.getByName('directory');

/** A queue that exists and has met no key. */
export async function existing(): Promise<TestQueue> {
  const queue = new TestQueue();
  await server.ok(201, 'POST', `${V1}/queues`, { name: queue.name });
  return queue;
}
