/** A queue that is not there is neither paused nor made: its name is misspelt. */
import { env } from 'cloudflare:workers';
import { beforeEach, expect, it } from 'vitest';
import { applyDeclared } from '../../../src/across/deployment';
import type { Env } from '../../../src/config';
import { freshName } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

beforeEach(() => server.reset());

const names = async () => ((await server.ok(200, 'GET', `${V1}/queues`)).queues as Json[]).map(({ name }) => name);

it('a request that changes a queue is refused where there is none, and makes none', async () => {
  const right = freshName('orders');
  await server.enqueue(right);
  const wrong = `${right}x`;
  const requests: [method: string, path: string, body?: Json][] = [
    ['POST', `/queues/${wrong}/pause`],
    ['POST', `/queues/${wrong}/resume`],
    ['POST', `/queues/${wrong}/drain`],
    ['POST', `/admin/queues/${wrong}/pause`],
    ['POST', `/admin/queues/${wrong}/resume`],
    ['POST', `/queues/${wrong}/purge`, { states: ['completed'], confirm: true }],
    ['DELETE', `/admin/queues/${wrong}/jobs`, { states: ['completed'], confirm: true }],
    ['DELETE', `/queues/${wrong}`],
    ['POST', `/queues/${wrong}/groups/acme/pause`],
    ['POST', `/queues/${wrong}/groups/acme/resume`],
    ['PUT', `/queues/${wrong}/groups/acme`, { weight: 2 }],
  ];
  for (const [method, path, body] of requests) {
    expect(await server.call(method, V1 + path, body), path).toMatchObject({
      status: 404,
      body: { error: { code: 'not_found', details: { resource_type: 'queue', resource_id: wrong } } },
    });
  }
  expect(await names()).toEqual([right]);
  expect(await server.ok(200, 'POST', `${V1}/queues/${right}/pause`)).toMatchObject({ paused: true });
});

it('a queue may be made and paused before its first job', async () => {
  const queue = freshName('early');
  await server.ok(201, 'POST', `${V1}/queues`, { name: queue });
  expect(await server.ok(200, 'POST', `${V1}/queues/${queue}/pause`)).toMatchObject({ paused: true });
});

it('a queue that the code declares is paused before its first job', async () => {
  const queue = freshName('declared');
  const declared = { queues: { [queue]: { concurrency: 3 } }, limits: {}, crons: {} };
  await applyDeclared(env as unknown as Env, declared, Date.now());
  expect(await server.ok(200, 'POST', `${V1}/queues/${queue}/pause`)).toMatchObject({ paused: true });
});
