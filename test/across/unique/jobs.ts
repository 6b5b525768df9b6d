/** What the tests of unique jobs share. */
import { expect } from 'vitest';
import { type Answer, type Body, call, type Json, ok } from '../../support/server';

export const JOBS = '/ojs/v1/jobs';

/** Tries to enqueue a unique job. */
export function post(queue: string, unique: Json, change: Json = {}): Promise<Answer> {
  const { options, ...rest } = change;
  const body = { type: 'sync.user', args: [], ...rest, options: { queue, unique, ...(options as Json | undefined) } };
  return call('POST', JOBS, body);
}

/** Enqueues a unique job that nobody stands in the way of, and gives its id. */
export async function enqueued(queue: string, unique: Json, change: Json = {}): Promise<string> {
  const answer = await post(queue, unique, change);
  expect(answer, JSON.stringify(answer.body)).toMatchObject({ status: 201 });
  return answer.body.job?.id as string;
}

export function entry(queue: string, unique: Json | undefined, change: Json = {}): Json {
  return { type: 'sync.user', args: [], queue, ...(unique && { unique }), ...change };
}

export function postBatch(...jobs: Json[]): Promise<Answer> {
  return call('POST', `${JOBS}/batch`, { jobs });
}

export async function jobOf(id: unknown): Promise<Json> {
  return (await ok(200, 'GET', `${JOBS}/${id}`)).job as Json;
}

/** How many jobs a queue has in each state. */
export async function counts(queue: string): Promise<Body> {
  return ok(200, 'GET', `/ojs/v1/queues/${queue}/stats`);
}

/** Claims the next job of a queue. */
export async function fetchOne(queue: string): Promise<Json> {
  const { jobs } = await ok(200, 'POST', '/ojs/v1/workers/fetch', { queues: [queue], worker_id: 'w' });
  expect(jobs).toHaveLength(1);
  return jobs?.[0] as Json;
}

/** Runs the next job of a queue to its end. */
export async function complete(queue: string): Promise<void> {
  const { id } = await fetchOne(queue);
  await ok(200, 'POST', '/ojs/v1/workers/ack', { job_id: id });
}

/** The answer to a refused duplicate. */
export function refusedFor(id: unknown, state = 'available') {
  return {
    status: 409,
    body: { error: { code: 'duplicate', details: { existing_job_id: id, existing_job_state: state } } },
  };
}

/** Two ways to be unique: judged by the queue alone, and across queues. */
export const SCOPES = [
  ['in its queue', ['type', 'queue'], 'a'],
  ['across queues', ['type'], 'b'],
] as const;
