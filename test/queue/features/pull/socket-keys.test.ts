/** Sockets of workers with a key made at run time: it ends with the key, and its enqueues count for the key's rate. */
import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { KeyStore } from '../../../../src/directory/keys';
import { clock, MINUTE, SECOND, T0, until } from '../../../support/clock';
import { freshName, TestQueue } from '../../../support/queue';
import { rowsWritten } from '../../../support/rows';
import { type Json, server, TestServer, UNKNOWN_ID, V1 } from '../../../support/server';
import { WorkerSocket } from '../../../support/worker-socket';

server.emptyBeforeEach();
clock.startAtT0();

const KEYS = `${V1}/admin/keys`;
const isolate = () => TestServer.with({ API_KEYS: JSON.stringify([{ key: 'root', name: 'Root' }]) });
const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });
const create = async (body: Json = {}) =>
  (await isolate().ok(201, 'POST', KEYS, { name: 'puller', role: 'operator', ...body }, bearer('root'))) as Json & {
    id: string;
    key: string;
  };
const asRoot = (method: string, path: string, body?: Json) =>
  isolate().call(method, `${KEYS}/${path}`, body, bearer('root'));

const open: WorkerSocket[] = [];
afterEach(() => {
  for (const worker of open.splice(0)) if (!worker.closed) worker.close();
});
const connect = async (key: string, queue: string, query: Record<string, string> = {}) => {
  const worker = await WorkerSocket.open(queue, { access_token: key, ...query }, isolate());
  open.push(worker);
  return worker;
};
const ENDED = { code: 1008, reason: 'the key has ended' };

/** The longest that a worker which sends heartbeats outlives its key, ms. */
const LATEST = 90 * SECOND;

/** Sends heartbeats until the socket is closed. @returns after how many ms, by the virtual clock */
async function outlives(worker: WorkerSocket): Promise<number> {
  const from = Date.now();
  while (!worker.closed && Date.now() - from < 2 * LATEST) {
    clock.advance(15 * SECOND);
    const before = worker.of('heartbeat').length;
    worker.say({ type: 'heartbeat' });
    await until(() => worker.closed !== undefined || worker.of('heartbeat').length > before, 'an answer, or the end');
  }
  return Date.now() - from;
}

describe('the socket of a worker with a key made at run time', () => {
  it('brings jobs and takes reports, also after an eviction, and costs no row', async () => {
    const [{ key }, queue] = [await create(), freshName('keyed')];
    const q = new TestQueue(queue);
    await server.enqueue(queue);
    const rows = await rowsWritten(q.stub, async () => {
      const worker = await connect(key, queue);
      await worker.settled();
      worker.close();
    });
    expect(rows).toBe(0);
    const worker = await connect(key, queue);
    worker.ready(2);
    const [first] = await worker.given(1);
    const { id, attempt, delivery_id } = first as Json;
    const told = await worker.report([{ action: 'ack', job_id: id, attempt, delivery_id }]);
    expect(told).toMatchObject({ succeeded: 1 });
    await q.evict();
    clock.advance(MINUTE);
    const second = await server.enqueue(queue);
    expect((await worker.given(2))[1]).toMatchObject({ id: second });
  });

  it.each<[string, (id: string) => Promise<{ status: number }>]>([
    ['revoked', (id) => asRoot('DELETE', id)],
    ['narrowed', (id) => asRoot('PATCH', id, { groups: ['acme'] })],
    ['rotated', (id) => asRoot('POST', `${id}/rotate`, {})],
  ])('is closed within 90 s after its key was %s, also after an eviction', async (_, end) => {
    for (const isEvicted of [false, true]) {
      const [{ id, key }, queue] = [await create(), freshName('keyed')];
      await server.enqueue(queue);
      const worker = await connect(key, queue);
      await worker.heartbeat();
      expect((await end(id)).status).toBeLessThan(300);
      if (isEvicted) await new TestQueue(queue).evict();
      expect(await outlives(worker)).toBeLessThanOrEqual(LATEST);
      expect(await worker.isClosed()).toEqual(ENDED);
    }
  });

  it('stays open after a change that takes nothing from it, and until the end of an overlap', async () => {
    const [{ id, key }, queue] = [await create(), freshName('keyed')];
    const worker = await connect(key, queue);
    await worker.heartbeat();
    await asRoot('PATCH', id, { name: 'renamed', rate: '9/m' });
    await asRoot('POST', `${id}/rotate`, { overlap: '10m' });
    clock.advance(10 * MINUTE - SECOND);
    await worker.heartbeat();
    clock.advance(SECOND);
    worker.say({ type: 'heartbeat' });
    expect(await worker.isClosed()).toEqual(ENDED);
  });

  it('is closed when its key expires', async () => {
    const { key } = await create({ expires_at: '1m' });
    const worker = await connect(key, freshName('keyed'));
    clock.at(MINUTE - 1);
    await worker.heartbeat();
    clock.at(MINUTE);
    worker.say({ type: 'heartbeat' });
    expect(await worker.isClosed()).toEqual(ENDED);
  });

  it.each([false, true])('gets no job after its key was revoked, evicted: %s', async (isEvicted) => {
    const [{ id, key }, queue] = [await create(), freshName('keyed')];
    const done = await server.enqueue(queue);
    const worker = await connect(key, queue);
    worker.ready(5);
    await worker.given(1);
    await asRoot('DELETE', id);
    clock.advance(46 * SECOND);
    if (isEvicted) await new TestQueue(queue).evict();
    const kept = await server.enqueue(queue);
    expect(await worker.isClosed()).toEqual(ENDED);
    expect(worker.jobs.map((job) => job.id)).toEqual([done]);
    expect(await server.state(kept)).toBe('available');
  });

  it('is refused its messages, and stays open, while its key cannot be known', async () => {
    const noted = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const [{ key }, queue] = [await create(), freshName('keyed')];
    const waiting = await server.enqueue(queue);
    const worker = await connect(key, queue);
    await worker.heartbeat();
    let fails = true;
    await runInDurableObject(env.DIRECTORY.getByName('directory') as never, (object) => {
      const { keys } = (object as unknown as { life: { keys: KeyStore } }).life;
      const current = keys.current.bind(keys);
      keys.current = (...asked) => {
        if (fails) throw new Error('unreachable');
        return current(...asked);
      };
    });
    clock.advance(11 * MINUTE);
    worker.ready(1);
    worker.say({ type: 'heartbeat', id: 7 });
    expect(await worker.answerTo(7)).toMatchObject({ type: 'error', error: { status: 503, retry_after_ms: 5_000 } });
    expect([worker.jobs, worker.closed]).toEqual([[], undefined]);
    fails = false;
    clock.advance(5 * SECOND);
    worker.ready(1);
    expect(await worker.given(1)).toMatchObject([{ id: waiting }]);
    noted.mockRestore();
  });

  it('is bound like its key: it gives, takes and tells only what lies inside', async () => {
    const [{ key }, queue] = [await create({ types: ['acme.*'], queues: ['keyed-*'] }), freshName('keyed')];
    const open = (query: Record<string, string>, at = queue) =>
      isolate().call(
        'GET',
        `${V1}/workers/socket?${new URLSearchParams({ queue: at, worker_id: 'w1', ...query })}`,
        undefined,
        {
          ...bearer(key),
          ...{ Upgrade: 'websocket', 'Sec-WebSocket-Protocol': 'tocsin.worker.v1' },
        },
      );
    const fieldOf = async (answer: ReturnType<typeof open>) => {
      const { status, body } = await answer;
      return [status, body.error?.code, body.error?.details?.field];
    };
    expect(await fieldOf(open({}))).toEqual([403, 'outside_key', 'types']);
    expect(await fieldOf(open({ types: 'zeta.a' }))).toEqual([403, 'outside_key', 'types']);
    expect(await fieldOf(open({ types: 'acme.a' }, 'other'))).toEqual([403, 'outside_key', 'queues']);
    const foreign = JSON.stringify([{ type: 'zeta.a', max_attempts: 2 }]);
    expect(await fieldOf(open({ types: 'acme.a', handlers: foreign }))).toEqual([403, 'outside_key', 'handlers']);

    const theirs = await server.enqueue(queue, { type: 'zeta.a' });
    const own = await server.enqueue(queue, { type: 'acme.a' });
    const other = await connect('root', queue, { types: 'zeta.a' });
    other.ready(1);
    await other.given(1);
    const worker = await connect(key, queue, { types: 'acme.a,zeta.a' });
    worker.ready(9);
    expect((await worker.given(1)).map(({ id }) => id)).toEqual([own]);
    await new TestQueue(queue).evict();
    const stranger = await server.enqueue(queue, { type: 'zeta.a' });
    const ack = (job_id: unknown) => ({ action: 'ack', job_id });
    const told = await worker.report([ack(theirs), ack(UNKNOWN_ID), ack(own)]);
    const [first, second] = (told.items as Json[]).map(({ error }) => JSON.stringify(error));
    expect(first?.replaceAll(theirs, '')).toBe(second?.replaceAll(UNKNOWN_ID, ''));
    expect(told).toMatchObject({ succeeded: 1, failed: 2 });
    worker.say({ type: 'stream', id: 70, job_id: theirs, name: 's', first: 0, chunks: [1] });
    expect(await worker.answerTo(70)).toMatchObject({ type: 'error', error: { status: 404, code: 'not_found' } });
    const beat = await worker.heartbeat({ active_jobs: [theirs, UNKNOWN_ID] });
    expect(beat).toMatchObject({ jobs_extended: [], jobs_lost: [theirs, UNKNOWN_ID] });
    worker.say({ type: 'heartbeat', id: 71 });
    expect((await worker.answerTo(71)).error).toMatchObject({ code: 'outside_key' });

    // What ends of a worker of its name is not told to it.
    await isolate().ok(200, 'DELETE', `${V1}/jobs/${theirs}`, undefined, bearer('root'));
    expect(await other.get('taken')).toMatchObject({ jobs: [{ job_id: theirs }] });
    await worker.settled();
    expect([worker.jobs.length, worker.of('taken')]).toEqual([1, []]);
    expect(await server.state(stranger)).toBe('available');

    const job = (type: string, options: Json = {}) => ({ type, args: [], options });
    expect(await worker.enqueue([job('acme.b'), job('zeta.b')])).toMatchObject({
      error: { status: 403, code: 'outside_key', details: { index: 1 } },
    });
    expect(await worker.enqueue([job('acme.b', { queue: 'other' })])).toMatchObject({ error: { code: 'outside_key' } });
    expect(await worker.enqueue([{ ...job('acme.b'), id: theirs }])).toMatchObject({ error: { code: 'outside_key' } });
    const once = { idempotency_key: 'same' };
    expect(await worker.enqueue([job('acme.b')], once)).toMatchObject({ type: 'enqueued' });
    expect(await worker.enqueue([job('acme.b')], once)).toMatchObject({ replayed: true });
    expect((await other.enqueue([job('acme.b')], once)).replayed).toBeUndefined();
  });

  it('is closed when its key gets bounds within which it does not lie, and stays open within others', async () => {
    for (const [change, isClosed] of [
      [{ types: ['acme.a*'] }, false],
      [{ types: ['acme.b'] }, true],
      [{ queues: ['other'] }, true],
      [{ groups: ['acme'] }, true],
    ] as const) {
      const [{ id, key }, queue] = [await create(), freshName('keyed')];
      const worker = await connect(key, queue, { types: 'acme.a' });
      expect((await asRoot('PATCH', id, change)).status).toBe(200);
      clock.advance(46 * SECOND);
      worker.say({ type: 'heartbeat', id: 1, active_jobs: [] });
      if (isClosed) expect(await worker.isClosed()).toEqual(ENDED);
      else expect(await worker.answerTo(1)).toMatchObject({ type: 'heartbeat' });
    }
  });

  it('enqueues within the rate of its key, which counts what comes over HTTP, too', async () => {
    const [{ id, key }, queue, other] = [await create({ rate: '5/m' }), freshName('keyed'), freshName('keyed')];
    const jobs = (count: number, at?: string) =>
      Array.from({ length: count }, () => ({ type: 'a.b', args: [], ...(at && { options: { queue: at } }) }));
    const worker = await connect(key, queue);
    expect(await worker.enqueue(jobs(3))).toMatchObject({ type: 'enqueued', enqueued: 3 });
    await isolate().ok(201, 'POST', `${V1}/jobs/batch`, { jobs: jobs(1, queue) }, bearer(key));
    clock.set(T0 + 10 * SECOND);
    const refused = { type: 'error', error: { status: 429, code: 'rate_limited', retryable: true } };
    expect(await worker.enqueue(jobs(2))).toMatchObject({ ...refused, error: { retry_after_ms: 51_000 } });
    expect(await worker.enqueue([...jobs(1, other), ...jobs(2)])).toMatchObject(refused);
    expect(await worker.enqueue(jobs(4, other))).toMatchObject({ type: 'enqueued' });
    expect(await worker.enqueue(jobs(6))).toMatchObject({ ...refused, error: { retryable: false } });
    expect(await worker.enqueue(jobs(1))).toMatchObject({ type: 'enqueued' });
    clock.set(T0 + 5 * MINUTE);
    expect((await asRoot('PATCH', id, { rate: '2/m' })).status).toBe(200);
    clock.set(T0 + 6 * MINUTE);
    expect(await worker.enqueue(jobs(3))).toMatchObject({ type: 'error', error: { code: 'rate_limited' } });
  });
});
