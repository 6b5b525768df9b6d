/** Queues that the run never addresses: whatever is sent, they must stay as they are, and go on working. */
import { expect } from 'vitest';
import { type Json, server, V1 } from '../support/server';

const MAIN = 'canary-main';
const PAUSED = 'canary-paused';
const CRON = 'canary-cron';
const TYPE = 'canary.job';

export class Canary {
  private before: unknown;
  private held: unknown;

  /** Makes jobs in several states, a lease, dead letters, settings and a schedule. */
  async prepare(): Promise<void> {
    await server.configure(MAIN, {
      concurrency: 50,
      retention: { completed: 'P9D' },
      default_retry: { max_attempts: 4 },
    });
    const add = (options: Json = {}) => server.add(TYPE, [{ n: 'é' }], { queue: MAIN, ...options });
    this.held = await add();
    await server.takeOne(MAIN, { worker_id: 'canary-worker', visibility_timeout_ms: 3_600_000 });
    await server.ok(200, 'PUT', `${V1}/jobs/${this.held}/checkpoint`, { state: { at: 1 } });
    for (const how of ['done', 'dead', 'dead', 'retrying'] as const) {
      const id = await add();
      await server.takeOne(MAIN);
      if (how === 'done') await server.ack(id, { result: { sum: 1 } });
      if (how === 'dead') await server.nack(id, { error: { code: 'DEAD_LETTER', type: 'Canary', message: 'kept' } });
      if (how === 'retrying') await server.nack(id, { error: { code: 'E', message: 'later', retry_in: 3_600_000 } });
    }
    await server.ok(200, 'DELETE', `${V1}/jobs/${await add()}`);
    for (const options of [{}, {}, { priority: 7 }, { delay_until: '2099-01-01T00:00:00Z' }, { tags: ['canary'] }])
      await add(options);
    await server.add(TYPE, [], { queue: PAUSED });
    await server.ok(200, 'POST', `${V1}/queues/${PAUSED}/pause`);
    const template = { type: TYPE, args: [], options: { queue: MAIN } };
    await server.ok(201, 'POST', `${V1}/cron`, {
      name: CRON,
      expression: '0 0 29 2 *',
      timezone: 'UTC',
      job_template: template,
    });
    this.before = await this.look();
  }

  private async look(): Promise<unknown> {
    const get = (path: string) => server.ok(200, 'GET', V1 + path);
    const { computed_at: _, ...stats } = await get(`/queues/${MAIN}/stats`);
    return {
      jobs: await server.jobs(MAIN),
      dead: (await get(`/dead-letter?queue=${MAIN}`)).jobs,
      config: await get(`/queues/${MAIN}/config`),
      stats,
      paused: [await server.jobs(PAUSED), (await get(`/queues/${PAUSED}`)).state],
      cron: await get(`/cron/${CRON}`),
      checkpoint: await get(`/jobs/${this.held}/checkpoint`),
    };
  }

  /** Is everything as it was, and does the queue still work? */
  async check(): Promise<void> {
    expect(await this.look()).toEqual(this.before);
    await server.ack(this.held);
    const added = await server.add(TYPE, [], { queue: MAIN, priority: 100 });
    const taken = await server.takeOne(MAIN);
    expect(taken.id).toBe(added);
    await server.nack(added);
    expect(await server.state(added)).toBe('retryable');
    const rest = await server.take(MAIN, { count: 100 });
    expect(rest).toHaveLength(4);
    for (const { id } of rest) await server.ack(id);
    await server.ok(200, 'POST', `${V1}/queues/${PAUSED}/resume`);
    expect(await server.take(PAUSED)).toHaveLength(1);
  }
}
