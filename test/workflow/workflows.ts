/** What the tests of workflows share: starting them, and a worker that does what a test says. */

import { expect } from 'vitest';
import { until } from '../support/clock';
import { type Json, server } from '../support/server';

export const WORKFLOWS = '/ojs/v1/workflows';

let made = 0;

/** A queue that no other test of this file uses. */
export const freshQueue = (): string => `wf-${++made}`;

/** A job that goes to `queue`. */
export function step(queue: string, change: Json = {}): Json {
  const { options, ...rest } = change;
  return { type: 'test.step', args: [], ...rest, options: { queue, retry: { max_attempts: 1 }, ...(options as Json) } };
}

/** Starts a workflow that must be accepted; its id. */
export async function begin(definition: Json): Promise<string> {
  const answer = await server.call('POST', WORKFLOWS, definition);
  expect(answer, JSON.stringify(answer.body)).toMatchObject({ status: 201 });
  const id = answer.body.id as string;
  expect(answer.headers.get('Location')).toBe(`${WORKFLOWS}/${id}`);
  return id;
}

export interface Shown extends Json {
  state: string;
  steps: ShownStep[];
  metadata: Json;
  callbacks: Record<string, ShownStep>;
}

export interface ShownStep extends Json {
  id: string;
  state: string;
  job_id: string | null;
  job_ids: string[];
  steps: ShownStep[];
}

export async function workflow(id: string): Promise<Shown> {
  return (await server.ok(200, 'GET', `${WORKFLOWS}/${id}`)).workflow as Shown;
}

/** Waits until the workflow is in this state. */
export async function workflowIn(id: string, state: string): Promise<Shown> {
  let last: Shown | undefined;
  return until(
    async () => {
      last = await workflow(id);
      return last.state === state && last;
    },
    () => `workflow ${id} to be ${state}; it is ${JSON.stringify(last)}`,
  );
}

export const fetchJobs = (queue: string, count = 100) => server.take(queue, { worker_id: 'w', count });

/** Waits until there is a job to fetch. */
export async function fetchOne(queue: string): Promise<Json> {
  return until(async () => (await fetchJobs(queue, 1))[0], `a job in ${queue}`);
}

export const ack = (job: Json, result?: unknown) => server.ack(job.id, result === undefined ? {} : { result });

export const nack = (job: Json, error: Json = { code: 'broken', message: 'as ordered' }) =>
  server.nack(job.id, { error });

/** Fetches the next job and completes it. */
export async function work(queue: string, result?: unknown): Promise<Json> {
  const job = await fetchOne(queue);
  await ack(job, result);
  return job;
}

/** Fetches the next job and fails it for good. */
export async function fail(queue: string): Promise<Json> {
  const job = await fetchOne(queue);
  await nack(job);
  return job;
}
