/** Limited jobs through the public surface, with a clock in the hands of the test. */
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { afterEach, beforeEach, vi } from 'vitest';
import { api, type Json, okApi } from '../../../support/http';
import { countRows, type RowCount, startCounting } from '../../../support/rows';

/** Where the clock stands: so far in the future that no real alarm fires. An alarm then runs only when the test runs it. */
export const T0 = Date.UTC(2040, 8, 1, 12);

let made = 0;

/** Stops the clock before each test of the file, and lets it go after. */
export function virtualClock(): void {
  beforeEach(() => {
    vi.setSystemTime(T0);
  });
  afterEach(() => {
    vi.useRealTimers();
  });
}

/** Sets the clock to so many ms after the beginning. */
export function at(ms: number): void {
  vi.setSystemTime(T0 + ms);
}

/** One queue, used over HTTP as producers, workers and operators use it. */
export class LimitedQueue {
  constructor(readonly name: string = `limited-${++made}-${crypto.randomUUID().slice(0, 8)}`) {}

  get stub() {
    return env.QUEUES.getByName(this.name);
  }

  /** Enqueues a job; its id. */
  async add(rate_limit?: Json, options: Json = {}): Promise<string> {
    const body = { type: 'test.limited', args: [], options: { queue: this.name, rate_limit, ...options } };
    return (await okApi('POST', '/ojs/v1/jobs', body)).id as string;
  }

  /** Enqueues the same job many times; the ids. */
  async addMany(count: number, rate_limit?: Json, options: Json = {}): Promise<string[]> {
    const job = { type: 'test.limited', args: [], options: { queue: this.name, rate_limit, ...options } };
    const ids: string[] = [];
    while (ids.length < count) {
      const jobs = Array(Math.min(1000, count - ids.length)).fill(job);
      const body = await okApi('POST', '/ojs/v1/jobs/batch', { jobs });
      ids.push(...(body.jobs as Json[]).map(({ id }) => id as string));
    }
    return ids;
  }

  /** Fetches up to `count` jobs; their ids. */
  async fetch(count = 100, rest: Json = {}): Promise<string[]> {
    const body = await okApi('POST', '/ojs/v1/workers/fetch', { queues: [this.name], count, ...rest });
    return (body.jobs as Json[]).map(({ id }) => id as string);
  }

  async ack(...ids: string[]): Promise<void> {
    for (const job_id of ids) await okApi('POST', '/ojs/v1/workers/ack', { job_id });
  }

  async nack(job_id: string, rest: Json = {}): Promise<Json> {
    return okApi('POST', '/ojs/v1/workers/nack', { job_id, error: { code: 'failed', message: 'failed' }, ...rest });
  }

  async job(id: string): Promise<Json> {
    return (await okApi('GET', `/ojs/v1/jobs/${id}`)).job as Json;
  }

  async state(id: string): Promise<unknown> {
    return (await this.job(id)).state;
  }

  async counts(): Promise<Json> {
    const { stats } = await okApi('GET', `/ojs/v1/queues/${this.name}/stats`);
    return Object.fromEntries(
      Object.entries(stats as Json).filter(([, count]) => typeof count === 'number' && count > 0),
    );
  }

  configure(config: Json): Promise<Json> {
    return okApi('PUT', `/ojs/v1/queues/${this.name}/config`, config);
  }

  /** The object loses its memory. One that has none may be asked to, too. */
  async evict(): Promise<void> {
    await this.armedAt();
    await evictDurableObject(this.stub);
  }

  /** When the alarm is set for, ms after the beginning; null when none is. */
  async armedAt(): Promise<number | null> {
    const time = await runInDurableObject(this.stub, (_, state) => state.storage.getAlarm());
    return time === null ? null : time - T0;
  }

  /** Runs the alarm if one is set, whatever its time. */
  async alarm(): Promise<void> {
    await runDurableObjectAlarm(this.stub);
  }

  /** Counts rows from now on. */
  async startCounting(): Promise<void> {
    await runInDurableObject(this.stub, (_, state) => startCounting(state.storage));
  }

  /** What was read and written since the last look. */
  rows(): Promise<RowCount> {
    return runInDurableObject(this.stub, (_, state) => countRows(state.storage));
  }

  /** Rows of a query inside the object. */
  query<T extends Record<string, SqlStorageValue>>(sql: string): Promise<T[]> {
    return runInDurableObject(this.stub, (_, state) => state.storage.sql.exec<T>(sql).toArray());
  }
}

/** What a request is refused with. */
export async function refusal(method: string, path: string, body?: unknown): Promise<Json & { status: number }> {
  const answer = await api(method, path, body);
  return { status: answer.status, ...((answer.body.error ?? {}) as Json) };
}
