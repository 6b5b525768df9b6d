import { Receiver } from '@upstash/qstash';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { clock, until } from '../../../support/clock';
import { Gate, handler } from '../../../support/handlers';
import { TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';
import type { Arrival } from '../../../support/workers/internet';

/** The calls that carried a job, oldest first. */
const arrivals = (id: string) => handler<Arrival[]>('INTERNET', `/arrivals?about=${id}`);

/** Pushes a job to a URL and waits for what its answer led to. */
async function answered(type: string, order: Json = {}, options: Json = {}): Promise<Json> {
  const id = await server.add(type, [order], { queue: 'urls', ...options });
  return server.jobIn(id, ['completed', 'retryable', 'discarded']);
}

clock.restoreAfterEach();

describe('a job whose type is mapped to a URL', () => {
  it('is sent there whole, and completed by the answer', async () => {
    const body = '{"status":"completed","result":{"sent":true}}';
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const done = await answered('web.order', { body }, { meta: { traceparent } });
    expect(done).toMatchObject({ state: 'completed', attempt: 1, result: { sent: true } });
    const [call, ...more] = await arrivals(done.id as string);
    expect(more).toEqual([]);
    expect(call).toMatchObject({
      url: 'https://app.example/hooks/tocsin',
      headers: {
        'content-type': 'application/json',
        'ojs-version': '1.0',
        'user-agent': 'Tocsin/1',
        'x-ojs-job-id': done.id,
        'x-ojs-attempt': '1',
        'x-ojs-idempotency-window': '80',
        traceparent,
      },
    });
    const sent = JSON.parse((call as Arrival).body);
    expect(sent).toMatchObject({
      job: { id: done.id, state: 'active', args: [{ body }] },
      worker_id: 'push_app.example',
    });
    expect((call as Arrival).headers['x-ojs-delivery-id']).toBe(sent.delivery_id);
  });

  it('is signed with both secrets, in both ways, under the id of its delivery', async () => {
    const { id } = await answered('web.order');
    const [{ headers, body }] = (await arrivals(id as string)) as [Arrival];
    expect(headers['webhook-id']).toBe(headers['x-ojs-delivery-id']);
    for (const webhook of [
      new Webhook('whsec_bmV3LXNlY3JldC1vZi10ZXN0cw=='),
      new Webhook('old-secret-of-tests', { format: 'raw' }),
    ]) {
      expect(webhook.verify(body, headers)).toEqual(JSON.parse(body));
    }
    expect(headers['x-ojs-signature']).toMatch(/^sha256=[0-9a-f]{64},sha256=[0-9a-f]{64}$/);
    expect(headers['x-ojs-timestamp']).toBe(headers['webhook-timestamp']);
    expect(headers).not.toHaveProperty('upstash-signature');
  });

  it('is verified by the unchanged receiver of QStash, where that was asked for', async () => {
    const { id } = await answered('web.upstash.order');
    const [{ url, headers, body }] = (await arrivals(id as string)) as [Arrival];
    const keys = { currentSigningKey: 'sig_current_of_tests', nextSigningKey: 'sig_next_of_tests' };
    expect(await new Receiver(keys).verify({ signature: headers['upstash-signature'] ?? '', body, url })).toBe(true);
    expect(headers).toHaveProperty('webhook-signature');
    expect(headers).not.toHaveProperty('x-ojs-signature');
  });

  it('is the whole body where that is mapped so, and has a new delivery for each attempt', async () => {
    const retry = { max_attempts: 2, initial_interval: 1, backoff_strategy: 'constant', jitter: false };
    const id = await server.add('web.bare.order', [{ status: 500 }], { queue: 'urls', retry });
    await server.jobIn(id, 'discarded');
    const calls = await arrivals(id);
    expect(calls.map(({ url, body }) => [url, JSON.parse(body).id])).toEqual([
      ['https://app.example/bare?v=1', id],
      ['https://app.example/bare?v=1', id],
    ]);
    expect(new Set(calls.map(({ headers }) => headers['webhook-id'])).size).toBe(2);
  });

  it.each<[string, Json, Json]>([
    ['204', { status: 204 }, { state: 'completed' }],
    ['text', { body: 'ok' }, { state: 'completed' }],
    [
      'failed',
      { body: '{"status":"failed","error":{"code":"E","message":"m"}}' },
      { state: 'retryable', error: { code: 'E' } },
    ],
    ['DISCARD', { body: '{"status":"failed","error":{"code":"DISCARD"}}' }, { state: 'discarded' }],
    ['a redirect', { status: 302, headers: { Location: 'https://other.example/' } }, { state: 'discarded' }],
    ['404', { status: 404 }, { state: 'discarded', dead_letter: true }],
    ['422', { status: 422 }, { state: 'discarded' }],
    ['503', { status: 503 }, { state: 'retryable', error: { code: 'handler_error' } }],
    ['429', { status: 429, headers: { 'Retry-After': '3600' } }, { state: 'retryable', retry_delay_ms: 3_600_000 }],
  ])('ends as by a bound Worker when the answer is %s', async (_, order, outcome) => {
    const ended = await answered('web.order', order);
    expect(ended).toMatchObject(outcome);
    expect(await arrivals(ended.id as string)).toHaveLength(1);
  });

  it('is timed out when there is no answer', async () => {
    expect(await answered('web.bare.order', { do: 'hang' })).toMatchObject({
      state: 'retryable',
      error: { code: 'timeout', message: 'No answer within 300 ms.' },
    });
  });

  it('is tried again when the connection breaks within the answer', async () => {
    expect(await answered('web.order', { do: 'cut' })).toMatchObject({
      state: 'retryable',
      attempt: 1,
      error: { code: 'delivery_error', type: 'tocsin.unreachable' },
    });
  });
});

describe('a batch for a URL', () => {
  it('carries several jobs under one signature and a name of its own', async () => {
    const queue = 'urls-batch';
    await server.setMode(queue, 'pause');
    const jobs = Array.from({ length: 7 }, () => ({ type: 'web.batch.order', args: [{}], options: { queue } }));
    const ids = await server.addAll(jobs);
    await server.ok(200, 'POST', `/ojs/v1/queues/${queue}/resume`);
    for (const id of ids) await server.jobIn(id, 'completed');
    const results = await Promise.all(ids.map(async (id) => (await server.job(id)).result));
    expect(results.sort()).toEqual([2, 2, 5, 5, 5, 5, 5]);
    const [{ headers, body }] = (await arrivals(ids[0] as string)) as [Arrival];
    expect(headers['webhook-id']).toMatch(/^del_/);
    expect(body).not.toContain(headers['webhook-id']);
    expect(new Webhook('old-secret-of-tests', { format: 'raw' }).verify(body, headers)).toBeTruthy();
  });

  it('is retried for the jobs that its answer leaves out', async () => {
    expect(await answered('web.batch.order', { body: 'missing' })).toMatchObject({
      state: 'retryable',
      error: { code: 'invalid_response' },
    });
  });
});

describe('the answer of a URL', () => {
  const child = (queue: string) => ({ type: 'child.made', args: [], options: { queue } });
  const saying = (...queues: string[]) => ({
    body: JSON.stringify({ status: 'completed', enqueue: queues.map(child) }),
  });

  it('enqueues nothing, and fails its job, where the mapping does not list the queue', async () => {
    for (const [type, order] of [
      ['web.order', saying('urls-children')],
      ['web.trusted.order', saying('urls-children', 'urls-secret')],
    ] as const) {
      const failed = await answered(type, order);
      expect(failed).toMatchObject({ state: 'discarded', error: { code: 'forbidden' } });
      expect((failed.error as Json).message).toContain('may_enqueue');
    }
    const named = await answered('own.order', saying('urls-children'), { target_url: 'https://app.example/x' });
    expect(named).toMatchObject({ state: 'discarded', error: { code: 'forbidden' } });
    expect(await server.queues()).not.toContain('urls-children');
    expect(await server.queues()).not.toContain('urls-secret');
  });

  it('enqueues in the queues that the mapping lists, or in any', async () => {
    for (const [type, queue] of [
      ['web.trusted.order', 'urls-children'],
      ['web.anywhere.order', 'urls-elsewhere'],
    ] as const) {
      const { id, state } = await answered(type, saying(queue));
      expect(state).toBe('completed');
      const [made] = await until(async () => {
        const jobs = await server.jobs(queue);
        return jobs.length > 0 && jobs;
      }, 'the child');
      expect(made).toMatchObject({ type: 'child.made', meta: { parent_id: id } });
    }
  });

  it('enqueues nothing as a call of its own either', async () => {
    const lines = [{ call: 1, enqueue: [child('urls-said')] }, { status: 'completed' }];
    expect(await answered('web.batch.order', { lines })).toMatchObject({ state: 'completed' });
    expect(await server.queues()).not.toContain('urls-said');
  });
});

describe('a URL that cannot be reached', () => {
  it.each([
    ['web.down.order', 'down.example', /connection refused/],
    ['web.unresolved.order', 'unresolved.example', /unresolved\.example could not be reached \(530\)/],
  ])('costs an attempt, and after five in a row its jobs wait: %s', async (type, target, message) => {
    const queue = `urls-${target.split('.')[0]}`;
    const retry = { max_attempts: 10, initial_interval: 1, backoff_strategy: 'constant', jitter: false };
    const id = await server.add(type, [], { queue, retry });
    await until(
      async () => (await server.events({ queue, types: 'queue.push_suspended' })).length > 0,
      'the target to be stopped',
    );
    expect(await server.events({ queue, types: 'queue.push_suspended' })).toMatchObject([{ data: { target } }]);
    const waiting = await server.job(id);
    expect(waiting).toMatchObject({
      attempt: 5,
      error: { code: 'delivery_error', type: 'tocsin.unreachable', message: expect.stringMatching(message) },
    });
    expect(await arrivals(id)).toHaveLength(5);
    const later = await server.add(type, [], { queue, retry });
    // Another URL of the same queue is called, so the queue has been looked at.
    await server.jobIn(await server.add('web.order', [{}], { queue }), 'completed');
    expect(await server.job(later)).toMatchObject({ state: 'available', attempt: 0 });
    clock.advance(61_000);
    await new TestQueue(queue).alarm();
    await until(async () => (await arrivals(id)).length + (await arrivals(later)).length === 6, 'the trial');
  });
});

describe('calls to URLs', () => {
  it('are six at once in a queue; the next job is not even taken before one of them is over', async () => {
    const queue = 'urls-six';
    const gate = new Gate('INTERNET');
    const jobs = Array.from({ length: 15 }, (_, index) => ({
      type: index % 2 ? 'web.order' : 'web.bare.order',
      args: gate.args,
      options: { queue, timeout_ms: 10_000 },
    }));
    const ids = await server.addAll(jobs);
    await gate.waiting(6);
    // Jobs for a bound Worker are not held back by them.
    await server.jobIn(await server.add('plain.order', [{}], { queue }), 'completed');
    expect(await new TestQueue(queue).counts()).toMatchObject({ active: 6, available: 9 });
    await gate.open();
    for (const id of ids) expect(await server.jobIn(id, 'completed')).toMatchObject({ attempt: 1 });
    expect((await gate.load()).most).toBe(6);
  });

  it('ring no alarm while they wait', async () => {
    const queue = 'urls-quiet';
    const gate = new Gate('INTERNET');
    const jobs = Array.from({ length: 8 }, () => ({ type: 'web.order', args: gate.args, options: { queue } }));
    const ids = await server.addAll(jobs);
    await gate.waiting(6);
    const sleeper = new TestQueue(queue);
    await sleeper.alarm();
    expect((await sleeper.armedAt()) ?? Number.POSITIVE_INFINITY).toBeGreaterThan(Date.now() + 10_000);
    await gate.open();
    for (const id of ids) await server.jobIn(id, 'completed');
  });
});
