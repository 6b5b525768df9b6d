/** A client of the queue itself, and jobs in the states that tests need. */

import { expect } from 'vitest';
import { type ClientOptions, type EnqueueOptions, type Job, TocsinClient } from '../../src/client';
import { server } from '../support/server';

/** A client that talks to the Worker as it is deployed. */
export function liveClient(options: Partial<ClientOptions> = {}): TocsinClient {
  const service = {
    fetch: async (input: string, init?: object) => server.send(new Request(input, init as RequestInit)),
  };
  return new TocsinClient({ ...options, service } as ClientOptions);
}

/** All that a list gives. */
export async function all<T>(list: AsyncIterable<T>): Promise<T[]> {
  const entries: T[] = [];
  for await (const entry of list) entries.push(entry);
  return entries;
}

/** Enqueues a job and has a worker take it. */
export async function running(client: TocsinClient, queue: string, options: EnqueueOptions = {}): Promise<Job> {
  const { id } = await client.enqueue('test.step', [], { ...options, queue });
  const [job] = await client.worker('runner', { queues: [queue] }).fetch();
  expect(job?.id).toBe(id);
  return job as Job;
}

/** A job that has failed for good and waits for a human. */
export async function deadLetter(client: TocsinClient, queue: string, type = 'Boom'): Promise<Job> {
  const job = await running(client, queue, { retry: { maxAttempts: 1, onExhaustion: 'dead_letter' } });
  return await client.worker('runner', { queues: [queue] }).nack(job, { type, message: 'broken' });
}
