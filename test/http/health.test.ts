/** A probe needs no key, so it must cost the same whoever asks how often. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { counting } from '../support/calls';
import { clock } from '../support/clock';
import { forgetMany, listMany } from '../support/directory';
import { freshName } from '../support/queue';
import { server, V1 } from '../support/server';

server.emptyBeforeEach();
afterEach(forgetMany);
clock.restoreAfterEach();
beforeEach(() => clock.set(Date.now()));

describe('a probe', () => {
  it('costs one call to the directory in five seconds, however many requests come', async () => {
    await listMany(100_000);
    const calls = counting();
    for (const path of ['/health', '/ready', `${V1}/health`, '/v1/health', '/health']) {
      expect(await calls.server.ok(200, 'GET', path)).toMatchObject({ status: 'ok', queues: { total: 100_000 } });
    }
    expect(calls.take()).toEqual(['directory.health']);
    clock.advance(5_000);
    await calls.server.ok(200, 'GET', '/health');
    expect(calls.take()).toEqual(['directory.health']);
  });

  it('counts queues, those that are paused, and workers', async () => {
    const queue = freshName('held');
    await server.ok(201, 'POST', `${V1}/queues`, { name: queue });
    await server.ok(200, 'POST', `${V1}/queues/${queue}/pause`);
    await server.heartbeat('w1');
    expect(await counting().server.ok(200, 'GET', '/health')).toMatchObject({
      queues: { total: 1, paused: 1 },
      workers: { total: 1, active: 1, stale: 0 },
    });
  });

  it('says that storage does not answer, and a moment later that it does again', async () => {
    let broken = true;
    const calls = counting(() => broken);
    for (let probe = 0; probe < 3; probe++) {
      expect(await calls.server.call('GET', '/health')).toMatchObject({
        status: 503,
        body: { status: 'unhealthy', backend: { status: 'unreachable' } },
      });
    }
    expect(calls.take()).toHaveLength(1);
    broken = false;
    clock.advance(5_000);
    expect((await calls.server.call('GET', '/health')).status).toBe(200);
  });
});
