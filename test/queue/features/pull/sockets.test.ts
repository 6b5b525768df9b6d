/** Workers that hold a socket to their queue. */
import { afterEach, describe, expect, it } from 'vitest';
import { clock, SECOND, until } from '../../../support/clock';
import { failOnce } from '../../../support/faults';
import { TestQueue } from '../../../support/queue';
import { type Json, server, TestServer, UNKNOWN_ID, V1 } from '../../../support/server';
import { SUBPROTOCOL, WorkerSocket } from '../../../support/worker-socket';

server.emptyBeforeEach();
clock.restoreAfterEach();

const open: WorkerSocket[] = [];
afterEach(() => {
  for (const worker of open.splice(0)) if (!worker.closed) worker.close();
});
const connect = async (query: Record<string, string> = {}, queue = 'q'): Promise<WorkerSocket> => {
  const worker = await WorkerSocket.open(queue, query);
  open.push(worker);
  return worker;
};
const ack = ({ id, attempt, delivery_id }: Json, change: Json = {}): Json => ({
  ...{ action: 'ack', job_id: id, attempt, delivery_id },
  ...change,
});
const states = (ids: unknown[]) => Promise.all(ids.map((id) => server.state(id as string)));

describe('the socket of a worker', () => {
  it('speaks its subprotocol, and is refused to what does not', async () => {
    const worker = await connect();
    const { response } = worker;
    worker.say('ping');
    await worker.get('pong');
    expect(response.headers.get('Sec-WebSocket-Protocol')).toBe(SUBPROTOCOL);
    const path = `${V1}/workers/socket?queue=q&worker_id=w1`;
    expect(await server.refusal('GET', path)).toEqual({ status: 426, code: 'invalid_request', field: 'Upgrade' });
    const upgrade = async (query: string, protocol = SUBPROTOCOL) => {
      const headers = { Upgrade: 'websocket', 'Sec-WebSocket-Protocol': protocol };
      const { status, body } = await server.call('GET', `${V1}/workers/socket?${query}`, undefined, headers);
      return [status, body.error?.details?.field];
    };
    expect(await upgrade('queue=q&worker_id=w1', 'ojs.v1')).toEqual([400, 'Sec-WebSocket-Protocol']);
    expect(await upgrade('worker_id=w1')).toEqual([400, 'queue']);
    expect(await upgrade('queue=Q!&worker_id=w1')).toEqual([400, 'queue']);
    expect(await upgrade('queue=q')).toEqual([400, 'worker_id']);
    expect(await upgrade('queue=q&worker_id=w1&types=A')).toEqual([400, 'types[0]']);
    expect(await upgrade('queue=q&worker_id=w1&visibility_timeout_ms=x')).toEqual([400, 'visibility_timeout_ms']);
    const many = Array.from({ length: 200 }, (_, n) => `type.number-${n}`).join(',');
    expect(await upgrade(`queue=q&worker_id=w1&types=${many}`)).toEqual([413, 'types']);
  });

  it('needs the scope of a fetch', async () => {
    const keyed = TestServer.with({
      API_KEYS: JSON.stringify([
        { key: 'reader', scopes: ['data:read'] },
        { key: 'worker', scopes: ['data:write'] },
      ]),
    });
    const headers = (key: string) => ({
      ...{ Upgrade: 'websocket', 'Sec-WebSocket-Protocol': SUBPROTOCOL, Authorization: `Bearer ${key}` },
    });
    const ask = async (key: string) => {
      const url = `http://localhost${V1}/workers/socket?queue=q&worker_id=w1`;
      const response = await keyed.send(new Request(url, { headers: headers(key) }));
      response.webSocket?.accept();
      response.webSocket?.close();
      return response.status;
    };
    expect([await ask('reader'), await ask('worker'), await ask('nobody')]).toEqual([403, 101, 401]);
  });

  it('brings as many jobs as its worker is ready for, leased to it', async () => {
    const ids = await server.addAll(
      Array.from({ length: 3 }, (_, n) => ({ type: 'a.b', args: [n], options: { queue: 'q' } })),
    );
    const worker = await connect({ visibility_timeout_ms: '5000' });
    worker.ready(2);
    const jobs = await worker.given(2);
    expect(jobs).toMatchObject(
      ids.slice(0, 2).map((id, n) => ({ id, args: [n], attempt: 1, worker_id: 'w1', state: 'active' })),
    );
    expect(jobs[0]?.delivery_id).toEqual(expect.any(String));
    expect(worker.of('jobs')[0]).toMatchObject({ seq: 1 });
    await worker.settled();
    expect(worker.jobs).toHaveLength(2);
    expect(await states(ids)).toEqual(['active', 'active', 'available']);
    worker.ready(1);
    await worker.given(3);
  });

  it('brings jobs as they become available, of the types that it names', async () => {
    const worker = await connect({ types: 'a.b,c.d' });
    worker.ready(10);
    await worker.settled();
    await server.enqueue('q', { type: 'x.y' });
    const first = await server.enqueue('q', { type: 'a.b' });
    await worker.given(1);
    const second = await server.enqueue('q', { type: 'c.d' });
    expect((await worker.given(2)).map(({ id }) => id)).toEqual([first, second]);
  });

  it('brings the first job of a queue that did not exist', async () => {
    const worker = await connect({}, 'unborn');
    worker.ready(1);
    await worker.settled();
    const id = await server.enqueue('unborn');
    expect(await worker.given(1)).toMatchObject([{ id }]);
  });

  it('outlives a first job that is refused', async () => {
    const worker = await connect({}, 'unborn');
    worker.ready(1);
    await worker.settled();
    const refused = {
      type: 'a.b',
      args: [],
      options: { queue: 'unborn', retry: { backoff_strategy: 'table' } },
    };
    expect((await server.call('POST', `${V1}/jobs`, refused)).status).toBe(422);
    const id = await server.enqueue('unborn');
    expect(await worker.given(1)).toMatchObject([{ id }]);
    expect(worker.of('error')).toEqual([]);
  });

  it('brings a delayed job when it is due, and keeps no timer until then', async () => {
    const q = new TestQueue('q');
    const worker = await connect();
    worker.ready(1);
    const id = await server.enqueue('q', { options: { delay_until: '+PT1H' } });
    await worker.settled();
    const stopTimer = await q.inside(({ engine }) => (engine.pull as unknown as { stopTimer?: unknown }).stopTimer);
    expect(stopTimer).toBeUndefined();
    await q.passTo(Date.now() + 3_600_001);
    expect(await worker.given(1)).toMatchObject([{ id }]);
  });

  it('brings the jobs that waited for the end of a maintenance', async () => {
    const worker = await connect();
    const id = await server.enqueue('q');
    await server.ok(200, 'POST', `${V1}/admin/system/maintenance`, { enabled: true, duration: '1h' });
    worker.ready(1);
    await worker.settled();
    expect(worker.jobs).toEqual([]);
    await new TestQueue('q').passTo(Date.now() + 3_600_001);
    expect(await worker.given(1)).toMatchObject([{ id }]);
  });

  it('brings the next job when the limit of its queue opens', async () => {
    await server.configure('q', { rate_limit: { limit: 1, period: 'hour' } });
    const ids = await server.addAll([1, 2].map((n) => ({ type: 'a.b', args: [n], options: { queue: 'q' } })));
    const worker = await connect();
    worker.ready(2);
    await worker.given(1);
    await worker.settled();
    expect(worker.jobs).toHaveLength(1);
    await new TestQueue('q').passTo(Date.now() + 3_600_001);
    expect((await worker.given(2)).map(({ id }) => id)).toEqual(ids);
  });

  it.each([
    ['its limit opens', () => server.configure('q', { rate_limit: { limit: 1, period: 'minute' } })],
    [
      'a maintenance ends',
      () => server.ok(200, 'POST', `${V1}/admin/system/maintenance`, { enabled: true, duration: '1m' }),
    ],
  ])('brings the next job when %s, though a fetch stood in front that did not wait that long', async (_, close) => {
    const q = new TestQueue('q');
    await q.add();
    await q.add();
    await close();
    await server.takeIds('q');
    const fetch = server.takeIds('q', { wait_ms: 500 });
    await q.waiting('work', 1);
    const worker = await connect();
    worker.ready(1);
    await q.waiting('work', 2);
    expect(await fetch).toEqual([]);
    await q.passTo(Date.now() + 60_001);
    await worker.given(1);
  });

  it('stands in one line with the fetches that wait', async () => {
    const q = new TestQueue('q');
    await q.add();
    await q.claim();
    const worker = await connect();
    worker.ready(1);
    await q.waiting('work', 1);
    const fetch = server.takeIds('q', { wait_ms: 20_000 });
    await q.waiting('work', 2);
    const first = await server.enqueue('q');
    const second = await server.enqueue('q');
    expect(await worker.given(1)).toMatchObject([{ id: first }]);
    expect(await fetch).toEqual([second]);
  });

  it('costs no row while its worker waits, and lets the object sleep', async () => {
    const q = new TestQueue('q');
    const [done] = [await server.enqueue('q')];
    const worker = await connect();
    worker.ready(5);
    await worker.report([ack((await worker.given(1))[0] as Json)]);
    expect(await server.state(done)).toBe('completed');
    expect(await q.rowsWritten(() => worker.settled())).toBe(0);
    await q.evict();
    const id = await server.enqueue('q');
    expect((await worker.given(2))[1]).toMatchObject({ id });
    await q.evict();
    expect(await worker.report([ack(worker.jobs[1] as Json)])).toMatchObject({ succeeded: 1 });
    await server.addAll(Array.from({ length: 9 }, () => ({ type: 'a.b', args: [], options: { queue: 'q' } })));
    await worker.given(5);
    await worker.settled();
    expect(worker.jobs).toHaveLength(5);
  });
});

describe('what a worker says over its socket', () => {
  it('reports are answered by their id, each with an outcome of its own', async () => {
    await server.addAll([1, 2, 3].map((n) => ({ type: 'a.b', args: [n], options: { queue: 'q' } })));
    const worker = await connect();
    worker.ready(2);
    const [first, second] = (await worker.given(2)) as [Json, Json];
    const told = await worker.report(
      [
        ack(first, { result: 1 }),
        ack(second, { action: 'nack', error: 'no' }),
        ack(second, { attempt: 9 }),
        { action: '?' },
      ],
      { ready: 1 },
    );
    expect(told).toMatchObject({
      ...{ type: 'reported', total: 4, succeeded: 2, failed: 2 },
      items: [
        { index: 0, job_id: first.id, status: 'done', state: 'completed' },
        { index: 1, job_id: second.id, state: 'retryable', next_attempt_at: expect.any(String) },
        { index: 2, status: 'failed', error: { status: 409 } },
        { index: 3, status: 'failed', error: { status: 400, details: { field: 'action' } } },
      ],
    });
    expect(await worker.given(3)).toMatchObject([{}, {}, { args: [3] }]);
  });

  it('reports that were not answered are sent again over the next one', async () => {
    const id = await server.enqueue('q');
    const before = await connect();
    before.ready(1);
    const [job] = (await before.given(1)) as [Json];
    before.say({ type: 'report', id: 1, reports: [ack(job, { result: 7 })] });
    before.close();
    const after = await connect();
    const told = await after.report([ack(job, { result: 7 })]);
    expect(told).toMatchObject({ items: [{ job_id: id, status: 'done', state: 'completed' }] });
    expect(await server.job(id)).toMatchObject({ result: 7, attempt: 1 });
  });

  it('reports about jobs of other workers change nothing, whichever worker they name', async () => {
    const id = await server.enqueue('q');
    await server.takeOne('q', { worker_id: 'other' });
    const worker = await connect();
    const told = await worker.report([{ action: 'ack', job_id: id, worker_id: 'other' }]);
    expect(told).toMatchObject({ items: [{ status: 'failed', error: { code: 'conflict' } }] });
    expect(await server.state(id)).toBe('active');
  });

  it('heartbeats keep its leases, and make it known', async () => {
    const id = await server.enqueue('q');
    const worker = await connect({ visibility_timeout_ms: '60000' });
    worker.ready(1);
    await worker.given(1);
    clock.advance(50_000);
    const told = await worker.heartbeat({ active_jobs: [id], visibility_timeout_ms: 60_000, hostname: 'box' });
    expect(told).toMatchObject({ state: 'running', jobs_extended: [id], jobs_lost: [] });
    clock.advance(50_000);
    expect(await server.state(id)).toBe('active');
    expect(await server.ok(200, 'GET', `${V1}/admin/workers/w1`)).toMatchObject({ hostname: 'box', jobs: [{ id }] });
  });

  it('a heartbeat is answered by its id, also when it is refused', async () => {
    const worker = await connect();
    worker.say({ type: 'heartbeat', id: 71, active_jobs: [] });
    expect(await worker.answerTo(71)).toMatchObject({ type: 'heartbeat', state: 'running' });
    worker.say({ type: 'heartbeat', id: 72, state: 'asleep' });
    expect(await worker.answerTo(72)).toMatchObject({ type: 'error', error: { details: { field: 'state' } } });
  });

  it('a pause is answered when no more jobs come', async () => {
    const worker = await connect();
    worker.ready(5);
    worker.say({ type: 'pause' });
    await worker.get('paused');
    const id = await server.enqueue('q');
    await worker.settled();
    expect([worker.jobs, await server.state(id)]).toEqual([[], 'available']);
    worker.ready(1);
    await worker.given(1);
  });
});

describe('a worker on a socket is notified at once', () => {
  it('that its job was cancelled, or is no longer its own', async () => {
    const [first, second] = await server.addAll(
      [1, 2].map((n) => ({
        type: 'a.b',
        args: [n],
        options: { queue: 'q', retry: { max_attempts: 1 }, timeout_ms: 5000 },
      })),
    );
    const worker = await connect();
    worker.ready(2);
    const [held] = (await worker.given(2)) as [Json];
    await new TestQueue('q').evict();
    const told = await worker.report([ack(held, { action: 'progress', progress: 0.5 })]);
    expect(told).toMatchObject({ items: [{ state: 'active', progress: 0.5 }] });
    await server.ok(200, 'DELETE', `${V1}/jobs/${first}`);
    expect(await worker.get('taken')).toEqual({ type: 'taken', jobs: [{ job_id: first, why: 'cancelled' }] });
    await new TestQueue('q').passTo(Date.now() + 6_000);
    expect(await worker.get('taken', 2)).toEqual({ type: 'taken', jobs: [{ job_id: second, why: 'lost' }] });
  });

  it('of jobs that it fetched otherwise, on each connection that it has, and no one else is', async () => {
    const id = await server.enqueue('q');
    const [one, two, stranger] = [await connect(), await connect(), await connect({ worker_id: 'w2' })];
    await server.takeOne('q', { worker_id: 'w1' });
    await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
    for (const worker of [one, two]) {
      expect(await worker.get('taken')).toEqual({ type: 'taken', jobs: [{ job_id: id, why: 'cancelled' }] });
    }
    await stranger.settled();
    expect(stranger.of('taken')).toEqual([]);
  });

  it('but not of what it reports itself', async () => {
    await server.enqueue('q', { options: { retry: { max_attempts: 1 } } });
    const worker = await connect();
    worker.ready(1);
    const [job] = (await worker.given(1)) as [Json];
    await worker.report([ack(job, { action: 'nack', error: 'no' })]);
    await worker.settled();
    expect(worker.of('taken')).toEqual([]);
  });

  it('of the directive of an operator, and gets no jobs until it may again', async () => {
    await new TestQueue('q').add();
    await server.takeOne('q');
    const worker = await connect();
    await worker.heartbeat({ queues: ['q'] });
    worker.ready(2);
    const direct = (directive: string) => server.ok(200, 'POST', `${V1}/admin/workers/directive`, { directive });
    await direct('quiet');
    expect(await worker.get('directive')).toEqual({ type: 'directive', state: 'quiet' });
    const id = await server.enqueue('q');
    await worker.settled();
    expect([worker.jobs, await server.state(id)]).toEqual([[], 'available']);
    await direct('running');
    expect(await worker.get('directive', 2)).toEqual({ type: 'directive', state: 'running' });
    expect(await worker.given(1)).toMatchObject([{ id }]);
  });

  it('and of nothing else by an object that has lost its memory', async () => {
    const q = new TestQueue('q');
    await q.add();
    await server.takeOne('q');
    const worker = await connect();
    await worker.heartbeat({ queues: ['q'] });
    worker.ready(2);
    await server.ok(200, 'POST', `${V1}/admin/workers/w1/quiet`);
    await worker.get('directive');
    await q.evict();
    const id = await server.enqueue('q');
    await worker.settled();
    expect([worker.jobs, await server.state(id)]).toEqual([[], 'available']);
    expect(await server.takeIds('q', { worker_id: 'w2' })).toEqual([id]);
  });

  it('that its queue was deleted', async () => {
    const worker = await connect();
    await server.enqueue('q');
    await server.reset();
    expect(await worker.isClosed()).toMatchObject({ code: 4004 });
  });
});

it('a worker whose claim failed is ready for nothing, also after its queue has slept', async () => {
  const q = new TestQueue('q');
  await q.add();
  const worker = await connect();
  await q.inside(({ sql }) => failOnce(sql, /INTO leases/));
  worker.ready(3);
  expect(await worker.get('error')).toMatchObject({ error: { status: 503 } });
  expect(worker.of('error')[0]).not.toHaveProperty('id');
  await q.evict();
  await q.enqueue({}, {}, {});
  worker.ready(2);
  await worker.given(2);
  await worker.settled();
  expect(worker.jobs).toHaveLength(2);
});

describe('a socket that breaks off', () => {
  it('takes no job along that was not sent', async () => {
    const q = new TestQueue('q');
    await q.add();
    await q.claim();
    const worker = await connect();
    worker.ready(1);
    await q.waiting('work', 1);
    worker.close();
    await q.waiting('work', 0);
    const id = await server.enqueue('q');
    expect(await server.takeIds('q')).toEqual([id]);
  });

  it('leaves its jobs to their leases: another worker gets them then', async () => {
    const id = await server.enqueue('q');
    const worker = await connect({ visibility_timeout_ms: '5000' });
    worker.ready(1);
    await worker.given(1);
    worker.close();
    await new TestQueue('q').passTo(Date.now() + 5_001);
    expect(await server.take('q', { worker_id: 'w2' })).toMatchObject([{ id, attempt: 2 }]);
  });
});

describe('a socket that does not keep to the protocol', () => {
  const errors = (worker: WorkerSocket) => worker.of('error').map(({ error, id }) => [(error as Json).code, id]);

  it('gets an error that says what is wrong, and disturbs nothing', async () => {
    const [bad, good] = [await connect(), await connect({ worker_id: 'w2' })];
    const said = ['{', '[]', '7', '{}', '{"type":"dance"}', '{"type":"ready"}', '{"type":"ready","count":-1}'];
    for (const text of said) bad.say(text);
    bad.socket.send(new Uint8Array([1, 2]));
    bad.say({ type: 'report', reports: [] });
    bad.say({ type: 'report', id: 9, reports: 7 });
    bad.say({ type: 'heartbeat', state: 'asleep' });
    bad.ready(1000);
    bad.ready(1);
    await bad.get('error', 12);
    expect(errors(bad).at(9)).toEqual(['invalid_request', 9]);
    expect(bad.of('error').at(-1)?.error).toMatchObject({ details: { field: 'ready', max_ready: 1000 } });
    good.ready(1);
    await server.addAll([1, 2].map((n) => ({ type: 'a.b', args: [n], options: { queue: 'q' } })));
    await good.settled();
    expect(bad.closed).toBeUndefined();
  });

  it('changes nothing by a message that is refused', async () => {
    const ids = await server.addAll([1, 2].map((n) => ({ type: 'a.b', args: [n], options: { queue: 'q' } })));
    const worker = await connect();
    worker.ready(1);
    const [job] = (await worker.given(1)) as [Json];
    await server.take('q', { worker_id: 'w2' });
    worker.ready(900);
    worker.say({ type: 'report', id: 50, reports: [ack(job)], ready: 101 });
    expect(await worker.answerTo(50)).toMatchObject({ error: { details: { field: 'ready', ready: 900 } } });
    await worker.settled();
    expect(await states(ids)).toEqual(['active', 'active']);
    expect(await worker.report([ack(job)], { ready: 100 })).toMatchObject({ succeeded: 1 });
  });

  it('is refused what nests too deep, is too many, or looks like something else', async () => {
    const id = await server.enqueue('q');
    const [bad, good] = [await connect(), await connect({ worker_id: 'w2' })];
    good.ready(1);
    const [held] = (await good.given(1)) as [Json];
    const report = (n: number, reports: unknown) => bad.say({ type: 'report', id: n, reports });
    bad.say(`{"type":"report","id":40,"reports":${'['.repeat(5000)}${']'.repeat(5000)}}`);
    report(2, Array(1001).fill({ action: 'ack', job_id: id }));
    bad.say('{"type":"pong","__proto__":{"n":1},"constructor":7,"n":"9"}');
    bad.say({ type: ['ready'], count: 1 });
    bad.say({ type: 'ready', count: '1' });
    bad.say({ type: 'ready', count: 1.5 });
    bad.say({ type: 'ready', count: 1001 });
    bad.say({ type: 'report', id: -1, reports: [] });
    bad.say({ type: 'report', id: 'x', reports: [] });
    bad.say({ type: 'report', id: 3, reports: [], ready: {} });
    await bad.get('error', 9);
    expect(await bad.get('reported')).toMatchObject({ id: 40, failed: 1 });
    expect(errors(bad).map(([code]) => code)).toEqual(['payload_too_large', ...Array(8).fill('invalid_request')]);
    // Whatever it says of the job of another worker, and however often.
    const said = ['ack', 'nack', 'progress'].map((action) => ({ action, job_id: held.id, progress: 1, error: 'no' }));
    expect(await bad.report([...said, ...said, { ...said[0], worker_id: 'w2' }])).toMatchObject({ failed: 7 });
    expect(await good.report([ack(held)])).toMatchObject({ succeeded: 1 });
    expect([bad.closed, await server.state(id)]).toEqual([undefined, 'completed']);
  });

  it('is cut off after a message that is too large, and affects no other', async () => {
    const [bad, good] = [await connect(), await connect({ worker_id: 'w2' })];
    good.ready(1);
    bad.say(`{"type":"read","more":"${'x'.repeat(8 * 1024 * 1024)}"}`);
    expect(await bad.isClosed()).toMatchObject({ code: 1009, reason: 'the message is too large' });
    const id = await server.enqueue('q');
    expect(await good.given(1)).toMatchObject([{ id }]);
  });

  it('is cut off when it continues, with the reason', async () => {
    const worker = await connect();
    for (let n = 0; n < 25; n++) worker.say('{');
    expect(await worker.isClosed()).toMatchObject({ code: 1008, reason: expect.stringContaining('cannot be read') });
  });

  it('is cut off when it says too much at once', async () => {
    const worker = await connect();
    for (let n = 0; n < 300; n++) worker.say({ type: 'heartbeat' });
    expect(await worker.isClosed()).toMatchObject({ code: 1008, reason: 'too many messages at once' });
  });

  it('is given no more when it does not say that it reads', async () => {
    const args = ['x'.repeat(500_000)];
    for (let n = 0; n < 14; n++) await server.add('a.b', args, { queue: 'q' });
    const worker = await connect();
    worker.ready(1);
    await worker.given(1);
    for (let n = 0; n < 11; n++) worker.ready(1);
    await worker.settled();
    const before = worker.jobs.length;
    expect(before).toBeLessThan(12);
    expect(before).toBeGreaterThan(6);
    // Nothing but the number of a ping says that it has read.
    worker.say({ type: 'read', got: worker.last('jobs', 1)?.seq });
    for (const n of [0, 1, worker.count('ping')]) worker.say({ type: 'pong', n });
    await worker.settled();
    expect(worker.jobs).toHaveLength(before);
    worker.say({ type: 'pong', n: worker.last('ping', 1)?.n });
    await worker.given(12);
  });

  it('is cut off when it is given no more and answers no ping, and not when it is slow', async () => {
    const args = ['x'.repeat(500_000)];
    for (let n = 0; n < 24; n++) await server.add('a.b', args, { queue: 'q' });
    const [silent, slow] = [await connect(), await connect({ worker_id: 'w2' })];
    for (const worker of [silent, slow]) {
      for (let n = 0; n < 12; n++) worker.ready(1);
      await worker.settled();
    }
    for (let i = 0; i < 5; i++) {
      clock.advance(20 * SECOND);
      slow.say({ type: 'pong', n: slow.of('ping')[i]?.n });
      await slow.settled();
    }
    silent.say({ type: 'heartbeat' });
    expect(await silent.isClosed()).toEqual({ code: 1013, reason: 'the worker does not confirm that it reads' });
    await slow.settled();
    expect(slow.closed).toBeUndefined();
  });

  it('is cut off when it does not read what it is answered', async () => {
    const worker = await connect();
    const reports = Array.from({ length: 1_000 }, () => ({ action: 'ack', job_id: UNKNOWN_ID }));
    await until(async () => {
      if (!worker.closed) for (let id = 0; id < 5; id++) worker.say({ type: 'report', id, reports });
      await scheduler.wait(1);
      return worker.closed;
    }, 'the worker to be cut off');
    expect(worker.closed?.code).toBe(1013);
  });
});

it('a claim of many large jobs is sent in several messages', async () => {
  for (let n = 0; n < 6; n++) await server.add('a.b', ['x'.repeat(300_000)], { queue: 'q' });
  const worker = await connect();
  worker.ready(6);
  await worker.given(6);
  expect(worker.of('jobs').map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6]);
});
