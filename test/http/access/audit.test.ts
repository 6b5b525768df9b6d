/** The log of what operators have changed. */
import { env } from 'cloudflare:workers';
import { describe, expect, it, vi } from 'vitest';
import { readRedactionRules, redactor } from '../../../src/access/redaction';
import type { Env } from '../../../src/config';
import { createApp } from '../../../src/http/app';
import { describeWrite } from '../../../src/http/audit/entry';
import { directory } from '../../support/directory';
import { freshName } from '../../support/queue';
import { rowsWhile } from '../../support/rows';
import { type Json, server, TestServer, UNKNOWN_ID, V1 } from '../../support/server';

server.emptyBeforeEach();

const API_KEYS = JSON.stringify([
  { key: 'op', role: 'operator', name: 'Olga' },
  { key: 'nameless', role: 'admin' },
  { key: 'viewer', role: 'viewer' },
]);
const app = createApp();

const as = (key: string, change: Json = {}) =>
  new TestServer((request) => {
    const sent = new Request(request);
    sent.headers.set('Authorization', `Bearer ${key}`);
    return app.fetch(sent, { ...env, API_KEYS, ...change } as unknown as Env);
  });
const [operator, nameless, viewer] = [as('op'), as('nameless'), as('viewer')];

const log = async (query = '') => await viewer.ok(200, 'GET', `${V1}/admin/audit?${query}`);
const entries = async (query = '') => (await log(query)).items as Json[];
const actions = async (query = '') => (await entries(query)).map(({ action, target }) => [action, target]);

/** A queue that is there. */
async function madeQueue(): Promise<string> {
  const queue = freshName();
  await server.enqueue(queue);
  return queue;
}

/** A dead letter; its id. */
async function deadLetter(queue: string): Promise<string> {
  const id = await server.enqueue(queue, { options: { retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } } });
  await server.nack((await server.takeOne(queue)).id);
  return id;
}

describe('a write by an operator', () => {
  it('is an entry: who, what, to what, and why', async () => {
    const queue = await madeQueue();
    await operator.ok(200, 'POST', `${V1}/queues/${queue}/pause`, undefined, {
      'X-Audit-Reason': 'mails%20doppelt%20%E2%80%93%20bitte%20pr%C3%BCfen',
      'X-Request-ID': 'r-1',
    });
    expect(await log()).toEqual({
      items: [
        {
          id: 'audit-1',
          at: expect.stringMatching(/^20\d\d-.*Z$/),
          actor: { name: 'Olga', role: 'operator', key_hint: expect.stringMatching(/^[0-9a-f]{6}$/), via: 'key' },
          action: 'queue.pause',
          target: queue,
          filter: null,
          change: null,
          count: null,
          operation_id: null,
          status: 200,
          request_id: 'r-1',
          reason: 'mails doppelt – bitte prüfen',
        },
      ],
      total: 1,
      pagination: expect.objectContaining({ total: 1, page: 1, per_page: 20, has_more: false }),
    });
  });

  it('writes exactly one row', async () => {
    const queue = await madeQueue();
    await operator.ok(200, 'POST', `${V1}/admin/queues/${queue}/pause`);
    const rows = await rowsWhile(directory(), async () => {
      await operator.ok(200, 'POST', `${V1}/admin/queues/${queue}/resume`);
    });
    expect(rows).toMatchObject({ written: 1, alarms: 0 });
  });

  it('is recorded on every surface', async () => {
    const queue = freshName();
    const [job, other] = [await server.enqueue(queue), await server.enqueue(queue)];
    const dead = [
      await deadLetter(`${queue}.dead`),
      await deadLetter(`${queue}.dead`),
      await deadLetter(`${queue}.dead`),
    ];
    const cron = { name: 'nightly', cron: '0 3 * * *', job_template: { type: 'a', args: [], options: { queue } } };
    const workflow = await server.ok(201, 'POST', `${V1}/workflows`, {
      type: 'chain',
      steps: [{ type: 'a', args: [], options: { queue: `${queue}.flow` } }],
    });
    await server.heartbeat('w1');
    await server.enqueue(queue, { rate_limit: { key: 'stripe', concurrency: 1 } });
    const sent: [action: string, target: string | null, method: string, path: string, body?: Json][] = [
      ['queue.pause', queue, 'POST', `/queues/${queue}/pause`],
      ['queue.drain', queue, 'POST', `/queues/${queue}/drain`],
      ['queue.resume', queue, 'POST', `/admin/queues/${queue}/resume`],
      ['queue.configure', queue, 'PUT', `/admin/queues/${queue}/config`, { concurrency: 5 }],
      ['queue.configure', queue, 'PUT', `/queues/${queue}/config`, { concurrency: 6 }],
      ['queue.create', `${queue}.new`, 'POST', '/queues', { name: `${queue}.new` }],
      ['queue.purge', queue, 'POST', `/queues/${queue}/purge`, { states: ['completed'] }],
      ['queue.purge', queue, 'DELETE', `/admin/queues/${queue}/jobs`, { states: ['completed'], confirm: true }],
      ['queue.delete', `${queue}.new`, 'DELETE', `/queues/${queue}.new`],
      ['defaults.configure', null, 'PUT', '/queues/_default/config', { concurrency: 7 }],
      ['defaults.configure', null, 'PUT', '/admin/queues/_default/config', { concurrency: null }],
      ['job.change', job, 'PATCH', `/admin/jobs/${job}`, { priority: 5 }],
      ['job.cancel', job, 'POST', `/admin/jobs/${job}/cancel`],
      ['job.step', job, 'PUT', `/admin/jobs/${job}/steps/charge`, { result: { paid: true } }],
      ['job.retry', job, 'POST', `/admin/jobs/${job}/retry`],
      ['jobs.cancel', null, 'POST', '/jobs/bulk/cancel', { job_ids: [other] }],
      ['jobs.retry', null, 'POST', '/jobs/bulk/retry', { filter: { queue, state: 'cancelled' } }],
      ['jobs.cancel', null, 'POST', '/admin/jobs/bulk/cancel', { filter: { queue }, confirm: true }],
      ['jobs.delete', null, 'POST', '/admin/jobs/bulk/delete', { filter: { queue }, confirm: true }],
      ['dead_letter.retry', dead[0] as string, 'POST', `/dead-letter/${dead[0]}/retry`],
      ['dead_letter.delete', dead[1] as string, 'DELETE', `/dead-letter/${dead[1]}`],
      ['dead_letters.retry', null, 'POST', '/admin/dead-letter/retry', { filter: {}, confirm: true }],
      ['dead_letters.delete', null, 'DELETE', '/dead-letter', { filter: {}, confirm: true }],
      ['cron.save', 'nightly', 'POST', '/cron', cron],
      ['cron.change', 'nightly', 'PATCH', '/crons/nightly', { enabled: true }],
      ['cron.pause', 'nightly', 'POST', '/cron/nightly/pause'],
      ['cron.resume', 'nightly', 'POST', '/cron/nightly/resume'],
      ['cron.trigger', 'nightly', 'POST', '/cron/nightly/trigger'],
      ['cron.delete', 'nightly', 'DELETE', '/cron/nightly'],
      ['cron_group.replace', 'app', 'PUT', '/cron-groups/app', { entries: [cron] }],
      ['cron_group.delete', 'app', 'DELETE', '/cron-groups/app'],
      ['workflow.cancel', workflow.id as string, 'POST', `/workflows/${workflow.id}/cancel`],
      ['limit.override', 'stripe', 'PUT', '/rate-limits/stripe', { concurrency: 2 }],
      ['limit.restore', 'stripe', 'DELETE', '/rate-limits/stripe/override'],
      ['worker.direct', 'w1', 'POST', '/admin/workers/directive', { directive: 'quiet', worker_id: 'w1' }],
      ['worker.quiet', 'w1', 'POST', '/admin/workers/w1/quiet'],
      ['target.resume', 'WORK', 'POST', '/targets/WORK/resume'],
      ['deployment.apply', null, 'POST', '/admin/deployment/apply', {}],
    ];
    for (const [action, , method, path, body] of sent) {
      const { status, body: answer } = await nameless.call(method, V1 + path, body);
      expect([action, status < 300, answer.error]).toEqual([action, true, undefined]);
    }
    expect(await actions('per_page=100')).toEqual(sent.map(([action, target]) => [action, target]).reverse());
  });

  it('says which jobs were meant and how many were changed, and what was set', async () => {
    const queue = freshName();
    const ids = await server.addAll(Array.from({ length: 30 }, () => ({ type: 'a', args: [], options: { queue } })));
    const many = `${V1}/admin/jobs/bulk`;
    const filter = { queue, type: 'a', meta: { user: 'u' } };
    await operator.ok(200, 'POST', `${many}/cancel`, { filter, confirm: true });
    await operator.ok(200, 'POST', `${many}/cancel`, { filter: { queue }, confirm: true });
    await operator.ok(200, 'POST', `${V1}/jobs/bulk/retry`, { job_ids: ids });
    await operator.ok(200, 'PUT', `${V1}/queues/${queue}/config`, { concurrency: 3 });
    await operator.ok(200, 'POST', `${V1}/admin/jobs/${ids[0]}/cancel`);
    expect(await entries()).toMatchObject([
      { action: 'job.cancel', target: ids[0], count: 1, filter: null },
      { action: 'queue.configure', change: { concurrency: 3 }, filter: null, count: null },
      { action: 'jobs.retry', filter: { job_ids: ids.slice(0, 20), job_ids_in_all: 30 }, change: null, count: 30 },
      { action: 'jobs.cancel', filter: { queue }, count: 30 },
      { action: 'jobs.cancel', filter, count: 0 },
    ]);
    expect(await actions(`queue=${queue}`)).toHaveLength(4);
    expect(await actions(`job=${ids[0]}`)).toEqual([['job.cancel', ids[0]]]);
  });

  it('that is large is cut short', async () => {
    const filter = { type: Array.from({ length: 20 }, (_, i) => `${'x'.repeat(200)}.t${i}`) };
    await operator.ok(200, 'POST', `${V1}/admin/jobs/bulk/cancel`, { filter, confirm: true });
    const [{ filter: shown } = {}] = await entries();
    expect(shown).toMatchObject({ truncated: true });
    expect((shown as typeof filter).type.slice(0, 5)).toEqual(filter.type.slice(0, 5));
    expect(JSON.stringify(shown).length).toBeLessThanOrEqual(2_200);
  });

  it('that is large hides what redaction rules name, like one that is not', () => {
    const secret = { password: 'secret', text: 'é'.repeat(3_000), card: { number: 'secret' } };
    const sent = { args: [secret, secret], meta: { user: { password: 'secret' }, ...secret } };
    const write = { action: 'job.patch', named: 'j', query: {}, sent, answer: {} };
    const { change } = describeWrite(write);
    expect(change).toMatchObject({ truncated: true, args: [{ password: 'secret' }, {}] });
    const hidden = redactor(readRedactionRules(['password', 'card.*']))({ entries: [{ change }] });
    expect(hidden).toMatchObject({
      entries: [{ change: { truncated: true, args: [{ password: '[redacted]' }, {}] } }],
    });
    expect(JSON.stringify(hidden)).not.toContain('secret');
    const deep = describeWrite({ ...write, sent: { args: ['x'.repeat(3_000), ...Array(5_000).fill([1])] } }).change;
    expect(JSON.stringify(deep).length).toBeLessThanOrEqual(3_000);
  });
});

describe('an entry', () => {
  it('has nothing of a request that has no say', async () => {
    const queue = await madeQueue();
    for (const verb of ['pause', 'resume', 'drain']) {
      await operator.ok(200, 'POST', `${V1}/queues/${queue}/${verb}`, {});
    }
    await operator.ok(200, 'POST', `${V1}/admin/maintenance`, { enabled: true, reason: 'move' });
    const [maintenance, ...modes] = await entries();
    expect(modes.map(({ filter, change }) => [filter, change])).toEqual([...Array(3)].map(() => [null, null]));
    expect(maintenance).toMatchObject({ filter: null, change: { enabled: true, reason: 'move' } });
  });
});

describe('no entry', () => {
  it('is made of what was so already', async () => {
    const queue = await madeQueue();
    for (const verb of ['pause', 'pause', 'resume', 'resume', 'drain', 'drain']) {
      await operator.ok(200, 'POST', `${V1}/queues/${queue}/${verb}`);
    }
    expect((await actions()).map(([action]) => action)).toEqual(['queue.drain', 'queue.resume', 'queue.pause']);
  });

  it('is made of what is refused, of reads, and of what producers and workers do', async () => {
    const queue = freshName();
    const refused = await viewer.call('POST', `${V1}/admin/queues/${queue}/pause`);
    expect(refused.status).toBe(403);
    await operator.call('POST', `${V1}/admin/jobs/${UNKNOWN_ID}/cancel`);
    await operator.call('PUT', `${V1}/queues/${queue}/config`, { concurrency: 'x' });
    await operator.call('POST', `${V1}/admin/jobs/bulk/cancel`, { filter: { queue } });
    const id = await operator.enqueue(queue);
    await operator.enqueue(queue);
    await operator.take(queue);
    await operator.ok(200, 'POST', `${V1}/workers/progress`, { job_id: id, percentage: 1 });
    await operator.ack(id);
    await operator.nack((await operator.takeOne(queue)).id);
    await operator.heartbeat('w');
    await operator.ok(200, 'GET', `${V1}/admin/queues`);
    await operator.ok(200, 'POST', `${V1}/jobs/results`, { ids: [id] });
    expect(await entries()).toEqual([]);
  });

  it('is made twice of one request that is sent twice under its key', async () => {
    const queue = freshName();
    await server.enqueue(queue);
    const body = { filter: { queue }, confirm: true, idempotency_key: freshName() };
    for (let i = 0; i < 2; i++) await operator.ok(200, 'POST', `${V1}/admin/jobs/bulk/cancel`, body);
    expect(await entries()).toMatchObject([{ count: 1 }]);
  });
});

describe('the list', () => {
  it('is filtered, and read page by page, the newest first', async () => {
    const [a, b] = [await madeQueue(), await madeQueue()];
    for (const queue of [a, b]) {
      await operator.ok(200, 'POST', `${V1}/queues/${queue}/pause`);
      await nameless.ok(200, 'POST', `${V1}/queues/${queue}/resume`);
    }
    await nameless.ok(200, 'PUT', `${V1}/queues/_default/config`, { concurrency: 7 });
    const hint = ((await entries())[0] as { actor: Json }).actor.key_hint;
    expect(await actions('actor=Olga')).toEqual([
      ['queue.pause', b],
      ['queue.pause', a],
    ]);
    expect(await actions(`actor=${hint}`)).toHaveLength(3);
    expect(await actions('action=queue.*')).toHaveLength(4);
    expect(await actions('action=queue.resume,defaults.*')).toHaveLength(3);
    expect(await actions(`queue=${a}&action=queue.pause`)).toEqual([['queue.pause', a]]);
    expect(await actions(`action=${'a'.repeat(200)}*,queue.resume`)).toHaveLength(
      (await actions('action=queue.resume')).length,
    );
    expect(await actions('since=1h')).toHaveLength(5);
    expect(await actions('until=1h')).toEqual([]);
    const second = await log('page=2&per_page=2');
    expect(second.items).toMatchObject([{ action: 'queue.pause', target: b }, { target: a }]);
    expect(second.pagination).toMatchObject({ total: 5, page: 2, per_page: 2, has_more: true });
  });

  it.each([
    ['action=queue..x', 'action'],
    ['since=yesterday', 'since'],
    ['queue=No', 'queue'],
    ['cursor=abc', 'cursor'],
  ])('refuses %s', async (query, field) => {
    const refusal = await viewer.refusal('GET', `${V1}/admin/audit?${query}`);
    expect(refusal).toEqual({ status: 400, code: 'invalid_request', field });
  });
});

describe('when the log cannot be written', () => {
  it('the operation stands, the answer says so, and the entry is in the logs of the Worker', async () => {
    const queue = freshName();
    await server.enqueue(queue);
    const failing = {
      getByName: (name: string) => {
        const stub = env.DIRECTORY.getByName(name);
        return new Proxy(stub, {
          get: (target, member) =>
            member === 'recordAudit'
              ? () => Promise.reject(new Error('the directory cannot be reached'))
              : Reflect.get(target, member),
        });
      },
    };
    const logged = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const answer = await as('op', { DIRECTORY: failing }).call('POST', `${V1}/queues/${queue}/pause`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('Warning')).toContain('could not be recorded');
    expect(logged.mock.calls.join()).toContain('"action":"queue.pause"');
    logged.mockRestore();
    expect(await server.ok(200, 'GET', `${V1}/queues/${queue}`)).toMatchObject({ paused: true });
    expect(await entries()).toEqual([]);
  });

  it('once, it is written the second time', async () => {
    const queue = await madeQueue();
    let tries = 0;
    const flaky = {
      getByName: (name: string) => {
        const stub = env.DIRECTORY.getByName(name) as unknown as { recordAudit(entry: unknown): Promise<void> };
        return new Proxy(stub, {
          get: (target, member) =>
            member === 'recordAudit' && ++tries === 1
              ? () => Promise.reject(new Error('lost'))
              : Reflect.get(target, member),
        });
      },
    };
    const answer = await as('op', { DIRECTORY: flaky }).call('POST', `${V1}/queues/${queue}/pause`);
    expect(answer.headers.get('Warning')).toBeNull();
    expect(await actions()).toEqual([['queue.pause', queue]]);
  });
});
