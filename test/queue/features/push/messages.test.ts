/** What a handler says while it runs, on the live line of its call; and what it says with its outcome. */
import { beforeEach, describe, expect, it } from 'vitest';
import { until } from '../../../support/clock';
import { failAlways } from '../../../support/faults';
import { handler } from '../../../support/handlers';
import { onRecord } from '../../../support/on-record';
import { freshName, TestQueue } from '../../../support/queue';
import { type Json, server, V1 } from '../../../support/server';

let queue: string;
beforeEach(() => {
  queue = freshName('talk');
});

const add = (order: Json, options: Json = {}, type = 'talk.do') =>
  server.add(type, [order], { queue, retry: { max_attempts: 1 }, ...options });
const replies = (id: string) => handler<Json[]>('TALK', `/replies?id=${id}`);
const runs = (id: string) => handler<Json[]>('TALK', `/runs?id=${id}`);
const open = (gate: string) => handler('TALK', `/open?gate=${gate}`);
const steps = async (id: string) => (await server.ok(200, 'GET', `${V1}/jobs/${id}/steps`)).steps;
const log = async (id: string) =>
  ((await server.ok(200, 'GET', `${V1}/jobs/${id}/log`)).lines as Json[]).map(({ message }) => message);
const line = (message: string) => ({ log: [{ at: 1, level: 'info', message }] });
const step = (name: string, result: unknown) => ({ ask: { step: { name, result } } });

describe('a handler that says something while it runs', () => {
  it('is answered when it is durable, and its outcome is settled as it comes', async () => {
    const gate = crypto.randomUUID();
    const id = await add({
      say: [
        line('begun'),
        { ask: { progress: { progress: 0.5, message: 'half', data: { n: 1 } } } },
        { ask: { checkpoint: { page: 2 } } },
        step('charge', { paid: 5 }),
        line('charged'),
      ],
      gate,
      end: { result: 'done' },
    });
    await until(async () => (await replies(id)).length === 3, 'three replies');
    expect(await replies(id)).toEqual([{}, {}, {}]);
    expect(await server.job(id)).toMatchObject({ state: 'active', progress: 0.5, progress_data: { n: 1 } });
    expect(await server.ok(200, 'GET', `${V1}/jobs/${id}/checkpoint`)).toMatchObject({ state: { page: 2 } });
    expect(await steps(id)).toEqual(onRecord({ charge: { result: { paid: 5 } } }));
    await until(async () => (await log(id)).length === 2, 'the log');
    await open(gate);
    expect(await server.jobIn(id, 'completed')).toMatchObject({ attempt: 1, result: 'done' });
    expect(await log(id)).toEqual(['begun', 'charged']);
  });

  it('does not hold up its siblings: each outcome counts when it is said', async () => {
    const gate = crypto.randomUUID();
    await server.setMode(queue, 'pause');
    const orders = [{ say: [line('x')] }, { say: [line('y')], gate }, {}];
    const ids = await server.addAll(orders.map((order) => ({ type: 'talk.do', args: [order], options: { queue } })));
    await server.ok(200, 'POST', `${V1}/queues/${queue}/resume`);
    for (const id of [ids[0], ids[2]]) await server.jobIn(id as string, 'completed');
    expect(await server.state(ids[1] as string)).toBe('active');
    await open(gate);
    await server.jobIn(ids[1] as string, 'completed');
  });

  it('gets the steps of its former runs, and each step is one row', async () => {
    const id = await add(
      { say: [step('a', 1), step('b', 2)], end: { status: 'failed', error: { message: 'no' } }, later: {} },
      { retry: { max_attempts: 2, initial_interval: 1, jitter: false } },
    );
    await server.jobIn(id, 'completed');
    const recorded = { a: { result: 1 }, b: { result: 2 } };
    expect(await runs(id)).toEqual([
      { open: true, attempt: 1, steps: null },
      { open: true, attempt: 2, steps: onRecord(recorded) },
    ]);
    const rows = await new TestQueue(queue).rows('SELECT sequence FROM checkpoints');
    expect(rows).toEqual([{ sequence: 0 }]);
  });

  it('writes one row for each step', async () => {
    const [gate, object] = [crypto.randomUUID(), new TestQueue(queue)];
    const written = async (order: Json) => {
      const id = await add({ gate: `${gate}0` });
      await until(async () => (await runs(id)).length === 1, 'it to run');
      await object.startCounting();
      const other = await add(order);
      await server.jobIn(other, 'completed');
      const { written, alarms } = await object.counted();
      return written - alarms;
    };
    // The first one begins a chunk of the archive, which the others join.
    await written({ say: [line('x')] });
    const without = await written({ say: [line('x')] });
    const three = await written({ say: [step('a', 1), step('b', 2), step('c', 3), step('a', 4)] });
    expect(three).toBe(without + 3);
    const asked = { ask: { signal_url: { signal: 'approved', expires_in: 60_000 } } };
    expect(await written({ say: [asked, step('url:approved', 'https://x.example')] })).toBe(without + 1);
    await open(`${gate}0`);
  });

  it('gets a URL that sends a signal, or a refusal that says what is wrong', async () => {
    const ask = (asked: Json) => ({ ask: { signal_url: { signal: 'approved', expires_in: 60_000, ...asked } } });
    const id = await add({
      say: [ask({}), ask({ expires_in: '91d' }), ask({ signal: '' }), { ask: { signal_url: 'approved' } }],
    });
    await server.jobIn(id, 'completed');
    const [url, ...wrong] = await replies(id);
    expect(url?.value).toMatch(/^https:\/\/jobs\.example\/queue\/ojs\/v1\/signal\/[\w-]+\.[\w-]+\.[\w-]+$/);
    const [, claims = ''] = String(url?.value).split('.').slice(-3);
    expect(JSON.parse(atob(claims))).toMatchObject({ aud: 'tocsin:signal', job: id, signal: 'approved' });
    expect(wrong.map(({ error }) => (error as Json).code)).toEqual(Array(3).fill('invalid_request'));
  });

  it('enqueues jobs into any queue, that carry their parent and its trace', async () => {
    const other = freshName('children');
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const children = [
      { type: 'a.b', args: [1], options: { queue: other, meta: { mine: true, parent_id: 'forged' } } },
      { type: 'a.c', args: [2], meta: { traceparent: 'own' }, options: { queue: other } },
    ];
    const body = { type: 'talk.do', args: [{ say: [{ ask: { enqueue: children } }] }], meta: { traceparent } };
    const id = (await server.ok(201, 'POST', `${V1}/jobs`, { ...body, options: { queue } })).job?.id as string;
    await server.jobIn(id, 'completed');
    const [reply] = (await replies(id)) as { value: Json[] }[];
    expect(reply?.value).toMatchObject([
      { type: 'a.b', queue: other, args: [1], state: 'available', meta: { mine: true, parent_id: id, traceparent } },
      { type: 'a.c', queue: other, meta: { parent_id: id, traceparent: 'own' } },
    ]);
    const listed = await server.ok(200, 'GET', `${V1}/jobs?parent=${id}`);
    expect(listed.jobs?.map((job) => job.id).sort()).toEqual(reply?.value.map((job) => job.id).sort());
    expect(await server.ok(200, 'GET', `${V1}/jobs/count?parent=${id}`)).toEqual({ count: 2 });
  });

  it('gets an error for a bad call, and nothing changes', async () => {
    const id = await add({
      say: [
        { ask: { step: { name: '', result: 1 } } },
        { ask: { progress: { progress: 'half' } } },
        { ask: { dance: true } },
        { ask: { enqueue: [{ type: 'Bad Type', args: [] }] } },
        step('once', 1),
        step('once', 2),
      ],
      fill: 1_048_600,
      deep: 2000,
    });
    await server.jobIn(id, 'completed');
    expect(await replies(id)).toMatchObject([
      { error: { code: 'invalid_request', details: { field: 'step.name' } } },
      { error: { code: 'invalid_request', details: { field: 'progress.progress' } } },
      { error: { code: 'invalid_request' } },
      { error: { code: 'invalid_request', details: { field: 'enqueue[0].type', index: 0 } } },
      {},
      { value: { result: 1 } },
      { error: { code: 'payload_too_large' } },
      { error: { code: 'invalid_request', details: { field: 'step' } } },
    ]);
    expect(await steps(id)).toEqual(onRecord({ once: { result: 1 } }));
  });

  it('whose attempt is over is configured so', async () => {
    const id = await add({
      say: [{ delivery_id: 'del_nobody', ask: { step: { name: 'x', result: 1 } } }],
      raw: ['nonsense', '{"half":', '[]', 'null', '{"delivery_id":5,"call":1}', '', '{"reply":1}'],
    });
    await server.jobIn(id, 'completed');
    expect(await replies(id)).toMatchObject([{ error: { code: 'conflict' } }]);
    expect(await steps(id)).toEqual({});
  });

  it('loses the outcomes that it has not said when its Worker breaks off', async () => {
    await server.setMode(queue, 'pause');
    const orders = [{ say: [line('x')] }, { say: [step('a', 1)], dies: true }];
    const jobs = orders.map((order) => ({
      type: 'talk.do',
      args: [order],
      options: { queue, retry: { max_attempts: 1 } },
    }));
    const [ended, cut] = (await server.addAll(jobs)) as [string, string];
    await server.ok(200, 'POST', `${V1}/queues/${queue}/resume`);
    expect(await server.jobIn(ended, ['completed', 'discarded'])).toMatchObject({ attempt: 1 });
    expect(await server.jobIn(cut, 'discarded')).toMatchObject({ attempt: 1 });
    expect(await steps(cut)).toEqual(onRecord({ a: { result: 1 } }));
  });

  it('may flood its queue with lines: the newest are kept, and nothing else suffers', async () => {
    const id = await add({ flood: 5000 }, { timeout_ms: 20_000 });
    await server.jobIn(id, 'completed', 15_000);
    expect((await log(id)).length).toBeLessThan(40);
    expect(await server.state(await add({}))).toBeDefined();
  });

  it('may ask for very much at once, and is answered for all of it', async () => {
    const id = await add({ burst: 3000 }, { timeout_ms: 20_000 });
    expect(await server.jobIn(id, 'completed', 15_000)).toMatchObject({ attempt: 1 });
    expect(Object.keys((await steps(id)) as Json)).toHaveLength(10);
  });

  it('that does not listen to the replies is not read on beyond a bound', async () => {
    const before = await handler<number>('TALK', '/written');
    const id = await add({ deaf: true, burst: 20_000 }, { timeout_ms: 1500 });
    expect(await server.jobIn(id, 'discarded', 15_000)).toMatchObject({ error: { code: 'timeout' } });
    expect((await handler<number>('TALK', '/written')) - before).toBeLessThan(3_000_000);
  });

  it('hears of a cancellation on the same line as ever, and its later calls are refused', async () => {
    const gate = crypto.randomUUID();
    const id = await add({ say: [step('a', 1)], gate });
    await until(async () => (await replies(id)).length === 1, 'its reply');
    await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
    await open(gate);
    expect(await server.state(id)).toBe('cancelled');
    expect(await steps(id)).toEqual(onRecord({ a: { result: 1 } }));
  });
});

describe('a handler that continues later', () => {
  it('is called again then, as the same attempt, with what it has recorded', async () => {
    const sleep = { nap: { until: 1 }, first: { result: 'x' } };
    const id = await add({ end: { status: 'snoozed', in: 20, steps: sleep, ...line('asleep') }, later: { result: 7 } });
    expect(await server.jobIn(id, 'completed')).toMatchObject({ attempt: 1, result: 7 });
    expect(await runs(id)).toEqual([
      { open: true, attempt: 1, steps: null },
      { open: true, attempt: 1, steps: onRecord(sleep) },
    ]);
    expect(await log(id)).toEqual(['asleep']);
    expect(await server.job(id)).not.toHaveProperty('errors');
  });

  it('gives its slot back, and a signal wakes it', async () => {
    await server.configure(queue, { concurrency: 1 });
    const wait = { status: 'snoozed', in: 600_000, signal: 'go', steps: { go: { until: Date.now() + 600_000 } } };
    const id = await add({ end: wait, later: {} });
    await server.jobIn(id, 'scheduled');
    await server.jobIn(await add({}), 'completed');
    await server.ok(200, 'POST', `${V1}/jobs/${id}/signals/go`, { payload: 5 });
    await server.jobIn(id, 'completed');
    expect((await runs(id)).at(-1)).toMatchObject({ steps: { go: { signal: { payload: 5 } } } });
  });

  it('that says no moment has failed, and so has one whose steps are too many', async () => {
    const many = Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`s${n}`, { result: 1 }]));
    const [vague, large] = [
      await add({ end: { status: 'snoozed' } }),
      await add({ end: { status: 'snoozed', in: 1, steps: many } }),
    ];
    expect(await server.jobIn(vague, 'discarded')).toMatchObject({ error: { code: 'invalid_response' } });
    expect(await server.jobIn(large, 'discarded')).toMatchObject({ error: { code: 'payload_too_large' } });
  });
});

describe('a call without a live line', () => {
  it('is given back unused when its handler needs one, and the next calls with this type have one', async () => {
    const quiet = () => add({}, {}, 'talk.quiet');
    for (let n = 0; n < 9; n++) await server.jobIn(await quiet(), 'completed');
    const closed = await quiet();
    await server.jobIn(closed, 'completed');
    expect(await runs(closed)).toMatchObject([{ open: false }]);
    const id = await add({ needsLine: true }, {}, 'talk.quiet');
    expect(await server.jobIn(id, 'completed')).toMatchObject({ attempt: 1 });
    expect(await runs(id)).toMatchObject([
      { open: false, attempt: 1 },
      { open: true, attempt: 1 },
    ]);
    const next = await quiet();
    await server.jobIn(next, 'completed');
    expect(await runs(next)).toMatchObject([{ open: true }]);
  });

  it('says with its outcome what it had no line for', async () => {
    const other = freshName('children');
    for (let n = 0; n < 10; n++) await server.jobIn(await add({}, {}, 'talk.quiet'), 'completed');
    const id = await add(
      {
        end: {
          ...line('told'),
          progress: { progress: 0.9, message: 'nearly' },
          checkpoint: { at: 3 },
          enqueue: [{ type: 'a.b', args: [], options: { queue: other } }],
        },
      },
      {},
      'talk.quiet',
    );
    await server.jobIn(id, 'completed');
    expect(await runs(id)).toMatchObject([{ open: false }]);
    expect(await log(id)).toEqual(['told']);
    expect(await server.ok(200, 'GET', `${V1}/jobs/${id}/progress`)).toMatchObject({ progress: 1, message: 'nearly' });
    expect(await server.ok(200, 'GET', `${V1}/jobs/${id}/checkpoint`)).toMatchObject({ state: { at: 3 } });
    const [child] = await until(async () => {
      const jobs = await server.jobs(other);
      return jobs.length > 0 && jobs;
    }, 'the child');
    expect(child).toMatchObject({ type: 'a.b', meta: { parent_id: id } });
  });

  it('enqueues what it may although one is refused, and fails when one cannot be read', async () => {
    const other = freshName('children');
    const unique = { keys: ['type'], on_conflict: 'reject' };
    await server.add('a.taken', [], { queue: other, unique });
    const [good, taken] = ['a.good', 'a.taken'].map((type) => ({ type, args: [], options: { queue: other, unique } }));
    const id = await add({ end: { enqueue: [taken, good] } });
    await server.jobIn(id, 'completed');
    await until(async () => (await server.jobs(other)).length === 2, 'the good child');
    const bad = await add({ end: { enqueue: [good, { type: 'a.b' }] } });
    expect(await server.jobIn(bad, 'discarded')).toMatchObject({ error: { code: 'invalid_request' } });
  });

  it.each([
    ['its refusal', 0],
    ['that the others were taken', 1],
  ])('enqueues each once, although one is refused that would be taken later, and %s is lost', async (_, after) => {
    const other = freshName('children');
    const unique = { keys: ['queue', 'type'], on_conflict: 'reject' };
    const child = (type: string, options: Json = {}) => ({ type, args: [], options: { queue: other, ...options } });
    const inTheWay = await server.add('a.taken', [], { queue: other, unique });
    const object = new TestQueue(queue);
    await server.jobIn(await add({}), 'completed');
    let lost = 0;
    await object.inside(({ sql }) => failAlways(sql, /DELETE FROM outbox/, () => lost++ < after));
    const id = await add({ end: { enqueue: [child('a.first'), child('a.taken', { unique }), child('a.last')] } });
    await server.jobIn(id, 'completed');
    await until(async () => lost > after, 'an answer to be lost');
    await server.ok(200, 'DELETE', `${V1}/jobs/${inTheWay}`);
    await object.evict();
    await object.alarm();
    const letters = () => object.rows('SELECT address FROM outbox WHERE kind = ?', 'children');
    await until(async () => (await letters()).length === 0, 'the letters to arrive');
    const types = (await server.jobs(other)).map(({ type }) => type as string).sort();
    const taken = after === 0 ? ['a.taken', 'a.taken'] : ['a.taken'];
    expect(types).toEqual(['a.first', 'a.last', ...taken]);
  });
});
