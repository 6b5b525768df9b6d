/** Free names in paths and as keys: `.` and `..` are refused where they are made, and no name finds what all objects have. */
import { describe, expect, it } from 'vitest';
import { TocsinClient } from '../../src/client';
import { freshName } from '../support/queue';
import { server, V1 } from '../support/server';

const DOTS = ['.', '..', '%2e', '%2E%2e', '.%2e'];

const job = (queue: string, options: Record<string, unknown>) => ({
  type: 'a.b',
  args: [],
  options: { queue, ...options },
});

describe('a name that URL parsers read as a step in the path', () => {
  it.each(DOTS)('%s is refused as a group, however the job is made', async (group) => {
    const queue = freshName('dots');
    const template = job(queue, { group });
    const refused = [
      await server.refusal('POST', `${V1}/jobs`, template),
      await server.refusal('POST', `${V1}/jobs/batch`, { jobs: [template] }),
      await server.refusal('POST', `${V1}/cron`, { name: 'dots', expression: '0 0 * * *', job_template: template }),
      await server.refusal('POST', `${V1}/workflows`, { type: 'chain', steps: [template] }),
    ];
    for (const { status } of refused) expect(status).toBe(400);
    expect(await server.ok(200, 'GET', `${V1}/jobs/count?queue=${queue}`)).toEqual({ count: 0 });
  });

  it.each(DOTS)('%s is refused as a worker', async (worker_id) => {
    expect(await server.refusal('POST', `${V1}/workers/heartbeat`, { worker_id })).toMatchObject({
      status: 400,
      field: 'worker_id',
    });
  });

  it.each(['.', '..'])('%s is refused by the client before anything is sent', async (name) => {
    const service = {
      async fetch(): Promise<Response> {
        throw new Error('nothing may be sent');
      },
    };
    const tocsin = new TocsinClient({ service });
    for (const call of [
      () => tocsin.queues.pauseGroup('mail', name),
      () => tocsin.queues.resumeGroup('mail', name),
      () => tocsin.jobs.signal('x', name),
      () => tocsin.cron.delete(name),
      () => tocsin.rateLimits.get(name),
    ]) {
      await expect(call()).rejects.toMatchObject({ name: 'InvalidJobError', details: { field: 'path' } });
    }
  });
});

describe('a group named like a member of every object', () => {
  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    '%s is shown, changed, paused and returned to its queue',
    async (group) => {
      const queue = freshName('proto');
      await server.ok(200, 'PUT', `${V1}/queues/${queue}/config`, { groups: { order: 'fair' } });
      await server.ok(201, 'POST', `${V1}/jobs`, job(queue, { group }));
      const path = `${V1}/queues/${queue}/groups/${group}`;
      expect(await server.ok(200, 'GET', path)).toMatchObject({ override: null });
      await server.ok(200, 'DELETE', path);
      await server.ok(200, 'POST', `${path}/pause`);
      await server.ok(200, 'POST', `${path}/resume`);
      expect(await server.ok(200, 'PUT', path, { weight: 3 })).toMatchObject({ override: { weight: 3 } });
      await server.ok(200, 'DELETE', path);
      expect(await server.ok(200, 'GET', path)).toMatchObject({ override: null });
    },
  );
});

describe('a queue named like a member of every object', () => {
  it('has its weight in a pool', async () => {
    const path = `${V1}/admin/pools/${freshName('pool')}`;
    await server.ok(201, 'PUT', path, { queues: ['constructor', 'mail'], strategy: 'weighted', weights: { mail: 2 } });
    expect(await server.ok(200, 'GET', path)).toMatchObject({ pool: { weights: { constructor: 1, mail: 2 } } });
  });
});
