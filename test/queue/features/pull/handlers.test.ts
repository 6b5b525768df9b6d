/** What workers that pull say about their handlers: it holds for the jobs of these types, also once the worker is gone. */
import { describe, expect, it } from 'vitest';
import { clock, MINUTE, SECOND } from '../../../support/clock';
import { TestQueue } from '../../../support/queue';
import { server, V1 } from '../../../support/server';
import { WorkerSocket } from '../../../support/worker-socket';

server.emptyBeforeEach();
clock.startAtT0();

const TYPE = 'test.echo';
const once = { handlers: [{ type: TYPE, max_attempts: 1 }], types: [TYPE] };
const error = { type: 'Boom', message: 'no' };

describe('what a fetch says about its handlers', () => {
  it('holds for jobs that bring nothing of their own', async () => {
    await server.enqueue('q');
    await server.enqueue('q', { options: { retry: { max_attempts: 2 } } });
    const [plain, own] = await server.take('q', { ...once, count: 2, worker_id: 'w1' });
    expect(await server.nack(plain?.id as string, { error })).toMatchObject({ state: 'discarded' });
    expect(await server.nack(own?.id as string, { error })).toMatchObject({ state: 'retryable' });
  });

  it('decides about an attempt whose worker is gone, also in a new life of the object', async () => {
    const q = new TestQueue();
    const id = await q.add({ type: TYPE });
    await q.claim({ ...once, worker_id: 'w1', visibility_timeout_ms: 10 * SECOND });
    await q.evict();
    await q.passTo(Date.now() + MINUTE);
    expect(await q.get(id)).toMatchObject({ state: 'discarded', attempt: 1 });
  });

  it('brings a delay, and that of a catch-all where a type has none', async () => {
    const handlers = [
      { type: TYPE, retry: { backoff_strategy: 'constant', initial_interval: 'PT7S', jitter: false } },
      { type: '*', max_attempts: 1 },
    ];
    await server.enqueue('q');
    await server.enqueue('q', { type: 'test.other' });
    const [echo, other] = await server.take('q', { handlers, count: 2 });
    expect(await server.nack(echo?.id as string, { error })).toMatchObject({ retry_delay_ms: 7000 });
    expect(await server.nack(other?.id as string, { error })).toMatchObject({ state: 'discarded' });
  });

  it('is forgotten when a worker takes these types and says nothing of them', async () => {
    const q = new TestQueue();
    await q.add({ type: TYPE });
    await q.claim({ ...once });
    const policyOf = async () => (await q.inside(({ q: state }) => state.config.policyFor(TYPE, {}))).max_attempts;
    expect(await policyOf()).toBe(1);
    clock.advance(MINUTE);
    await q.claim({ types: [TYPE] });
    await q.claim({ types: ['test.other'], handlers: [] });
    expect(await policyOf()).toBe(1);
    await q.claim({ types: [TYPE], handlers: [] });
    expect(await policyOf()).toBe(3);
  });

  it('leaves alone what others have said, where it takes any type and does not name theirs', async () => {
    const q = new TestQueue();
    await q.add({ type: 'test.none' });
    const attempts = async () =>
      await q.inside(({ q: state }) =>
        [TYPE, 'test.other'].map((type) => state.config.policyFor(type, {}).max_attempts),
      );
    await q.claim(once);
    clock.advance(MINUTE);
    await q.claim({ handlers: [{ type: '*', max_attempts: 9 }] });
    expect(await attempts()).toEqual([1, 9]);
    clock.advance(MINUTE);
    await q.claim({ handlers: [{ type: '*', max_attempts: 9 }, { type: TYPE }] });
    expect(await attempts()).toEqual([3, 9]);
    clock.advance(MINUTE);
    await q.claim({ handlers: [{ type: '*' }, { type: TYPE }] });
    expect(await attempts()).toEqual([3, 3]);
  });

  it('is written once, and by workers that say different things every ten seconds at most', async () => {
    const q = new TestQueue();
    await q.add({ type: 'test.none' });
    const write = (change: object) => q.rowsWritten(() => q.claim({ types: [TYPE], ...change }));
    expect(await write(once)).toBeGreaterThan(0);
    expect(await write(once)).toBe(0);
    expect(await write({ handlers: [] })).toBe(0);
    clock.advance(10 * SECOND);
    expect(await write({ handlers: [] })).toBeGreaterThan(0);
  });

  it('is bounded, however many types workers name', async () => {
    const q = new TestQueue();
    await q.add();
    for (let n = 0; n < 3; n++) {
      clock.advance(MINUTE);
      const handlers = Array.from({ length: 500 }, (_, i) => ({ type: `t${n}.x${i}`, max_attempts: 5 }));
      await q.claim({ types: handlers.map(({ type }) => type), handlers });
    }
    const kept = await q.inside(({ q: state }) => [...state.config.announced].map(({ type }) => type));
    expect(kept).toHaveLength(1000);
    expect(kept[0]).toBe('t1.x0');
  });

  it.each<[string, unknown, number, string]>([
    ['no list', {}, 400, 'handlers'],
    ['a type that is none', [{ type: 'A' }], 400, 'handlers[0].type'],
    ['attempts below 0', [{ type: 'a.b', max_attempts: -1 }], 400, 'handlers[0].max_attempts'],
    ['a policy that cannot be', [{ type: 'a.b', retry: { jitter: 7 } }], 422, 'handlers[0].retry.jitter'],
  ])('is refused with %s', async (_, handlers, status, field) => {
    const body = { queues: ['q'], handlers };
    expect(await server.refusal('POST', `${V1}/workers/fetch`, body)).toMatchObject({ status, field });
  });
});

describe('what a worker says about its handlers when it connects', () => {
  it('holds for the jobs that it is sent', async () => {
    const id = await server.enqueue('q');
    const worker = await WorkerSocket.open('q', { types: TYPE, handlers: JSON.stringify(once.handlers) });
    worker.ready(1);
    await worker.given(1);
    await worker.report([{ action: 'nack', job_id: id, attempt: 1, error }]);
    expect(await server.state(id)).toBe('discarded');
    worker.close();
  });

  it('is refused where it is not JSON', async () => {
    const headers = { Upgrade: 'websocket', 'Sec-WebSocket-Protocol': 'tocsin.worker.v1' };
    const path = `${V1}/workers/socket?queue=q&worker_id=w1&handlers=x`;
    const { status, body } = await server.call('GET', path, undefined, headers);
    expect([status, body.error?.details?.field]).toEqual([400, 'handlers']);
  });
});
