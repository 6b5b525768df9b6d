/** What the tests of workers that pull share: fetching, failing, losing an object's memory, counting written rows. */

import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { afterEach, vi } from 'vitest';
import type { QueueEngine } from '../../../../src/queue/engine';
import { until } from '../../../support/http';
import { rowsWhile } from '../../../support/rows';
import { type Answer, call, type Json, ok } from '../../../support/server';

export const V1 = '/ojs/v1';

/** Fetches jobs as a worker. */
export async function take(queue: string | string[], change: Json = {}): Promise<Json[]> {
  const body = await ok(200, 'POST', `${V1}/workers/fetch`, { queues: [queue].flat(), ...change });
  return body.jobs ?? [];
}

/** Fetches the one job that must be there. */
export async function takeOne(queue: string, change: Json = {}): Promise<Json> {
  const [job] = await take(queue, change);
  if (!job) throw new Error(`queue ${queue} gave no job`);
  return job;
}

export const ack = (id: string, change: Json = {}) => ok(200, 'POST', `${V1}/workers/ack`, { job_id: id, ...change });

/** Fails the attempt; the job is due again at once. */
export const failNow = (id: string, change: Json = {}) =>
  ok(200, 'POST', `${V1}/workers/nack`, { job_id: id, error: { code: 'E', message: 'm', retry_in: 0 }, ...change });

export const beat = (worker: string, change: Json = {}) =>
  ok(200, 'POST', `${V1}/workers/heartbeat`, { worker_id: worker, ...change });

export const job = async (id: string): Promise<Json> => (await ok(200, 'GET', `${V1}/jobs/${id}`)).job as Json;

/** Events of these types, oldest first. */
export async function eventsOf(types: string): Promise<Json[]> {
  return (await ok(200, 'GET', `${V1}/events?types=${types}&limit=200`)).events ?? [];
}

/** Status, code and field of a refusal. */
export async function refusal(method: string, path: string, body?: unknown): Promise<Json> {
  const answer: Answer = await call(method, V1 + path, body);
  const { error } = answer.body;
  return {
    status: answer.status,
    code: error?.code,
    ...(error?.details?.field !== undefined && { field: error.details.field }),
  };
}

/** The queue's object loses its memory. */
export async function evictQueue(queue: string): Promise<void> {
  await evictDurableObject(env.QUEUES.getByName(queue));
}

/** The directory loses its memory. */
export async function evictDirectory(): Promise<void> {
  await evictDurableObject(env.DIRECTORY.getByName('directory'));
}

/** Runs inside the object of a queue. */
export function insideQueue<T>(queue: string, look: (sql: SqlStorage) => T): Promise<T> {
  return runInDurableObject(env.QUEUES.getByName(queue), (_, state) => look(state.storage.sql));
}

/** Until so many requests wait in this queue for the end of a job (`ends`) or for work (`work`). */
export async function waitingIn(queue: string, what: 'ends' | 'work', count: number): Promise<void> {
  await until(
    () =>
      runInDurableObject(env.QUEUES.getByName(queue), (object) => {
        const { q, waiters } = (object as unknown as { engine: QueueEngine }).engine as unknown as {
          q: { events: { listeners: Set<unknown> } };
          waiters: { waiting: Set<unknown> };
        };
        return (what === 'ends' ? q.events.listeners : waiters.waiting).size === count;
      }),
    `${count} requests to wait`,
  );
}

/** Lets this much time pass for everything that reads the clock. */
export function pass(ms: number): void {
  vi.setSystemTime(Date.now() + ms);
}

/** Gives the real clock back after each test of the file. */
export function restoreClock(): void {
  afterEach(() => {
    vi.useRealTimers();
  });
}

/** The rows that the object of a queue writes while `act` runs. */
export async function rowsWritten(queue: string, act: () => Promise<unknown>): Promise<number> {
  const { written, alarms } = await rowsWhile(env.QUEUES.getByName(queue), act);
  return written - alarms;
}
