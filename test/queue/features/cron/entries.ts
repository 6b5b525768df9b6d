/** Cron entries as these tests use them, over HTTP. Tests that use this start at T0. */
import { expect } from 'vitest';
import { type Answer, type Json, server } from '../../../support/server';

export const CRON = '/ojs/v1/cron';

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
  return (await server.ok(201, 'POST', CRON, entry(name, change))).cron as Json;
}

export async function read(name: string): Promise<Json> {
  return (await server.ok(200, 'GET', `${CRON}/${name}`)).cron as Json;
}

/** A change that must be refused. */
export async function refused(body: Json, status = 400): Promise<Answer> {
  const answer = await server.call('POST', CRON, body);
  expect(answer, JSON.stringify(answer.body)).toMatchObject({ status });
  return answer;
}

/** For which times of the schedule a queue has jobs, oldest first. */
export async function ticksOf(queue: string): Promise<number[]> {
  return (await server.jobs(queue)).map((job) => Date.parse((job.meta as Json).cron_scheduled_at as string));
}

/** What events of a type tell, oldest first. */
export async function eventsOf(queue: string, types: string): Promise<Json[]> {
  return (await server.events({ queue, types })).map((event) => event.data as Json);
}
