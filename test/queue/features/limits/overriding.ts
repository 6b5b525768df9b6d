/** Overrides of limits as operators handle them, and the object that keeps them. */
import { env } from 'cloudflare:workers';
import { api, type Json, okApi } from '../../../support/http';
import { LimitedQueue } from './limited-queue';

/** The key of most of these tests. */
export const KEY = 'stripe';

export const path = (key = KEY) => `/ojs/v1/rate-limits/${key}`;
export const put = (body: Json, key = KEY) => okApi('PUT', path(key), body);
export const remove = async (key = KEY) => (await api('DELETE', `${path(key)}/override`)).status;
export const directory = () => env.DIRECTORY.getByName('directory');

/** A queue that exists and has met no key. */
export async function existing(): Promise<LimitedQueue> {
  const queue = new LimitedQueue();
  await okApi('POST', '/ojs/v1/queues', { name: queue.name });
  return queue;
}
