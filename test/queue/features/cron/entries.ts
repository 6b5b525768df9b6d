/** Cron entries as these tests use them: over HTTP, with a clock that the test sets, and alarms that run when it says so. */
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { afterEach, beforeEach, expect, vi } from 'vitest';
import type { QueueEngine } from '../../../../src/queue/engine';
import { type Answer, call, type Json, ok } from '../../../support/server';

export const CRON = '/ojs/v1/cron';

/** A Saturday noon, so far ahead that no real alarm fires. */
export const T0 = Date.UTC(2040, 8, 1, 12);
export const SECOND = 1000;
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export const iso = (ms: number) => new Date(ms).toISOString();

/** An empty server at T0 before each test, the real clock after it. */
export function startAtT0(): void {
  beforeEach(async () => {
    await ok(200, 'POST', '/ojs/v1/admin/reset');
    vi.setSystemTime(T0);
  });
  afterEach(() => {
    vi.useRealTimers();
  });
}

/** An entry that fires every minute, into a queue of its own name. */
export function entry(name: string, change: Json = {}): Json {
  const { options, ...rest } = change;
  return {
    name,
    expression: '* * * * *',
    job_template: { type: 'test.cron', args: [], options: { queue: name, ...(options as Json | undefined) } },
    ...rest,
  };
}

/** Creates an entry and gives it as it was answered. */
export async function create(name: string, change: Json = {}): Promise<Json> {
  return (await ok(201, 'POST', CRON, entry(name, change))).cron as Json;
}

export async function read(name: string): Promise<Json> {
  return (await ok(200, 'GET', `${CRON}/${name}`)).cron as Json;
}

/** A change that must be refused. */
export async function refused(body: Json, status = 400): Promise<Answer> {
  const answer = await call('POST', CRON, body);
  expect(answer, JSON.stringify(answer.body)).toMatchObject({ status });
  return answer;
}

export const stub = (queue: string) => env.QUEUES.getByName(queue);

/** The clock moves on, and the alarm rings if it was set for then or before. */
export async function passTo(queue: string, time: number): Promise<void> {
  vi.setSystemTime(time);
  const due = await runInDurableObject(stub(queue), async (_, { storage }) => {
    const at = await storage.getAlarm();
    return at !== null && at <= time;
  });
  if (due) await runDurableObjectAlarm(stub(queue));
}

/** The alarm rings, due or not. */
export const ring = (queue: string) => runDurableObjectAlarm(stub(queue));

export const evict = (queue: string) => evictDurableObject(stub(queue));

/** When the alarm is set for, epoch ms. */
export function armedAt(queue: string): Promise<number | null> {
  return runInDurableObject(stub(queue), (_, { storage }) => storage.getAlarm());
}

/** Looks into the object. */
export function inside<T>(queue: string, look: (engine: QueueEngine, sql: SqlStorage) => T): Promise<T> {
  return runInDurableObject(stub(queue), (object, { storage }) =>
    look((object as unknown as { engine: QueueEngine }).engine, storage.sql),
  );
}

/** The jobs of a queue, oldest first. */
export async function jobsOf(queue: string, state?: string): Promise<Json[]> {
  const filter = state === undefined ? '' : `&state=${state}`;
  const { jobs } = await ok(200, 'GET', `/ojs/v1/jobs?queue=${queue}&limit=200${filter}`);
  return [...(jobs ?? [])].reverse();
}

/** For which times of the schedule a queue has jobs, oldest first. */
export async function ticksOf(queue: string): Promise<number[]> {
  return (await jobsOf(queue)).map((job) => Date.parse((job.meta as Json).cron_scheduled_at as string));
}

/** Claims the next job of a queue. */
export async function take(queue: string): Promise<Json> {
  const { jobs } = await ok(200, 'POST', '/ojs/v1/workers/fetch', { queues: [queue], worker_id: 'w' });
  expect(jobs).toHaveLength(1);
  return jobs?.[0] as Json;
}

export async function ack(id: unknown): Promise<void> {
  await ok(200, 'POST', '/ojs/v1/workers/ack', { job_id: id });
}

/** Runs the next job of a queue to its end. */
export async function complete(queue: string): Promise<void> {
  await ack((await take(queue)).id);
}

/** Events of a type, oldest first. */
export async function eventsOf(queue: string, type: string): Promise<Json[]> {
  const { events } = await ok(200, 'GET', `/ojs/v1/events?queue=${queue}&types=${type}&limit=200`);
  return (events ?? []).map((event) => event.data as Json);
}
