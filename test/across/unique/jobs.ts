/** Unique jobs as these tests enqueue them, over HTTP. */
import { expect } from 'vitest';
import { type Answer, type Json, server, V1 } from '../../support/server';

export const JOBS = `${V1}/jobs`;

/** Tries to enqueue a unique job. */
export function post(queue: string, unique: Json, change: Json = {}): Promise<Answer> {
  const { options, ...rest } = change;
  const body = { type: 'sync.user', args: [], ...rest, options: { queue, unique, ...(options as Json | undefined) } };
  return server.call('POST', JOBS, body);
}

/** Enqueues a unique job without a conflict, and gives its id. */
export async function enqueued(queue: string, unique: Json, change: Json = {}): Promise<string> {
  const answer = await post(queue, unique, change);
  expect(answer, JSON.stringify(answer.body)).toMatchObject({ status: 201 });
  return answer.body.job?.id as string;
}

export function entry(queue: string, unique: Json | undefined, change: Json = {}): Json {
  return { type: 'sync.user', args: [], queue, ...(unique && { unique }), ...change };
}

export function postBatch(...jobs: Json[]): Promise<Answer> {
  return server.call('POST', `${JOBS}/batch`, { jobs });
}

/** The answer to a refused duplicate. */
export function refusedFor(id: unknown, state = 'available') {
  return {
    status: 409,
    body: { error: { code: 'duplicate', details: { existing_job_id: id, existing_job_state: state } } },
  };
}

/** Two scopes of uniqueness: checked by the queue alone, and across queues. */
export const SCOPES = [
  ['in its queue', ['type', 'queue'], 'a'],
  ['across queues', ['type'], 'b'],
] as const;
