/** Alert rules over HTTP, judged in the queues, told by webhooks and the live feed. */
import { describe, expect, it } from 'vitest';
import { clock, iso, MINUTE, SECOND, T0, until } from '../../../support/clock';
import { freshName, TestQueue } from '../../../support/queue';
import { type Json, server, UNKNOWN_ID, V1 } from '../../../support/server';
import { Receiver, subscribe } from '../../../support/webhooks';

const ALERTS = `${V1}/admin/alerts`;

clock.startAtT0();
server.emptyBeforeEach();

const make = (rule: Json) => server.ok(201, 'POST', ALERTS, { name: 'watch', ...rule });
const show = (id: unknown) => server.ok(200, 'GET', `${ALERTS}/${id}`);

/** What the live feed of a queue tells of alerts, oldest first. */
const told = async (queue: TestQueue) =>
  (await server.events({ queue: queue.name, types: 'alert.*' })).map(({ type, data }) => [type, (data as Json).value]);

/** Waits until the directory has heard. */
const stands = (id: unknown, state: string) =>
  until(async () => (await show(id)).state === state, `the rule to be ${state}`);

describe('a rule', () => {
  it('is made, listed, changed and deleted', async () => {
    const { id: subscription_id } = await subscribe(new Receiver());
    const made = await make({ metric: 'oldest_age', above: 'PT5M', for: '30s', queue: 'mail', subscription_id });
    const { id } = made;
    expect(made).toMatchObject({
      name: 'watch',
      queue: 'mail',
      metric: 'oldest_age',
      above: 300,
      for: 'PT30S',
      subscription_id,
      active: true,
      state: 'ok',
      since: null,
      last_value: null,
      queues: [],
      created_at: iso(T0),
    });
    expect(await server.ok(200, 'GET', ALERTS)).toMatchObject({ total: 1, items: [made], pagination: { total: 1 } });
    // While a rule tells it alone, a subscription stays.
    const path = `${V1}/webhooks/subscriptions/${subscription_id}`;
    expect(await server.refusal('DELETE', path)).toEqual({ status: 409, code: 'conflict' });
    const changed = await server.ok(200, 'PATCH', `${ALERTS}/${id}`, { subscription_id: null, queue: null, above: 60 });
    expect(changed).toMatchObject({
      subscription_id: null,
      queue: null,
      above: 60,
      for: 'PT30S',
      metric: 'oldest_age',
    });
    await server.ok(204, 'DELETE', path);
    await server.ok(204, 'DELETE', `${ALERTS}/${id}`);
    expect(await server.refusal('GET', `${ALERTS}/${id}`)).toEqual({ status: 404, code: 'not_found' });
    expect(await server.refusal('DELETE', `${ALERTS}/${id}`)).toEqual({ status: 404, code: 'not_found' });
  });

  it.each<[string, Json, string]>([
    ['no name', { name: undefined }, 'name'],
    ['no metric', { metric: undefined }, 'metric'],
    ['an unknown metric', { metric: 'mood' }, 'metric'],
    ['no bound', { above: undefined }, 'above'],
    ['a bound below nothing', { above: -1 }, 'above'],
    ['a rate above 1', { metric: 'error_rate', above: 50 }, 'above'],
    ['a duration where none is meant', { above: 'PT5M' }, 'above'],
    ['a time that is none', { for: 'soon' }, 'for'],
    ['a time of days', { for: 'P2D' }, 'for'],
    ['a queue that cannot be', { queue: 'Mail' }, 'queue'],
    ['a subscription that is none', { subscription_id: UNKNOWN_ID }, 'subscription_id'],
    ['a subscription that is not there', { subscription_id: `wh_${UNKNOWN_ID}` }, 'subscription_id'],
    ['an unknown member', { severity: 'high' }, 'severity'],
  ])('is refused with %s', async (_, change, field) => {
    const body = { name: 'watch', metric: 'depth', above: 1, ...change };
    expect(await server.refusal('POST', ALERTS, body)).toEqual({ status: 400, code: 'invalid_request', field });
    expect(await server.ok(200, 'GET', ALERTS)).toMatchObject({ total: 0 });
  });
});

describe('a queue', () => {
  it('fires when it is too deep, tells those who are meant, and resolves when it is not', async () => {
    const [chosen, others] = [new Receiver(), new Receiver()];
    const { id: subscription_id } = await subscribe(chosen, { events: ['job.discarded'] });
    await subscribe(others, { events: ['alert.*'] });
    const queue = new TestQueue(freshName());
    const { id } = await make({ metric: 'depth', above: 2, queue: queue.name, subscription_id, name: 'too deep' });
    const jobs = await queue.enqueue({}, {});
    clock.advance(SECOND);
    expect(await told(queue)).toEqual([]);
    await queue.add();
    await stands(id, 'firing');
    expect(await show(id)).toMatchObject({
      since: iso(T0 + SECOND),
      last_value: 3,
      queues: [{ queue: queue.name, state: 'firing', since: iso(T0 + SECOND), last_value: 3 }],
    });
    const [arrival] = await chosen.received(1);
    expect(arrival?.event).toMatchObject({
      type: 'alert.firing',
      source: `ojs://tocsin/queues/${queue.name}`,
      data: {
        queue: queue.name,
        alert_id: id,
        name: 'too deep',
        metric: 'depth',
        above: 2,
        value: 3,
        for: 'PT0S',
        subscription_id,
      },
    });
    clock.advance(2 * MINUTE);
    for (const { id: job } of jobs) await queue.cancel(job);
    await queue.passTo(Date.now() + 10 * SECOND);
    await stands(id, 'ok');
    expect(await told(queue)).toEqual([
      ['alert.firing', 3],
      ['alert.resolved', 1],
    ]);
    await chosen.received(2);
    expect(await others.arrivals()).toEqual([]);
  });

  it('fires in each queue for itself where no queue is named, also in those that come later', async () => {
    const receiver = new Receiver();
    await subscribe(receiver, { events: ['alert.firing'] });
    const { id } = await make({ metric: 'depth', above: 0 });
    const [first, second] = [new TestQueue(freshName()), new TestQueue(freshName())];
    await first.add();
    await second.add();
    const arrivals = await receiver.received(2);
    expect(arrivals.map(({ event }) => (event.data as Json).queue).sort()).toEqual([first.name, second.name].sort());
    await until(async () => ((await show(id)).queues as Json[]).length === 2, 'both to be known');
  });

  it('wakes at the moment when its oldest job has waited too long, also after an eviction', async () => {
    const queue = new TestQueue(freshName());
    await queue.add();
    const { id } = await make({ metric: 'oldest_age', above: 300, for: 'PT1M', queue: queue.name });
    await queue.evict();
    await queue.passTo(T0 + 5 * MINUTE);
    expect(await told(queue)).toEqual([]);
    await queue.evict();
    await queue.passTo(T0 + 6 * MINUTE + SECOND);
    await stands(id, 'firing');
    expect(await told(queue)).toMatchObject([['alert.firing', expect.closeTo(360, 0)]]);
    // It resolves with the transaction that takes the job.
    clock.advance(2 * MINUTE);
    await queue.claim();
    await queue.passTo(Date.now() + 10 * SECOND);
    await stands(id, 'ok');
  });

  it('wakes for a job that has yet to become available', async () => {
    const queue = new TestQueue(freshName());
    const { id } = await make({ metric: 'oldest_age', above: 60, queue: queue.name });
    await queue.add({ scheduledAt: T0 + 10 * MINUTE });
    await queue.passTo(T0 + 11 * MINUTE);
    expect(await told(queue)).toEqual([]);
    await queue.passTo(T0 + 11 * MINUTE + SECOND);
    await stands(id, 'firing');
  });

  it('fires while too many attempts fail, and resolves by itself when they are past', async () => {
    const queue = new TestQueue(freshName());
    const { id } = await make({ metric: 'error_rate', above: 0.5, queue: queue.name });
    for (let at = 0; at < 6; at++) {
      const job = await queue.add();
      await queue.claim();
      if (at < 2) await queue.ack(job);
      else await queue.nack(job, { message: 'down', retryable: false });
    }
    await queue.passTo(T0 + 6 * SECOND);
    await stands(id, 'firing');
    expect((await show(id)).last_value).toBeCloseTo(4 / 6);
    await queue.passTo(T0 + 6 * MINUTE);
    await stands(id, 'ok');
  });

  it('fires for dead letters', async () => {
    const queue = new TestQueue(freshName());
    const { id } = await make({ metric: 'dead_letters', above: 0, queue: queue.name });
    const job = await queue.add();
    await queue.claim();
    await queue.nack(job, { message: 'poison', code: 'DEAD_LETTER' });
    await queue.passTo(T0 + 6 * SECOND);
    await stands(id, 'firing');
    clock.advance(2 * MINUTE);
    await queue.redrive(job);
    await queue.passTo(Date.now() + 10 * SECOND);
    await stands(id, 'ok');
  });

  it('forgets a rule that is no longer looked at', async () => {
    const queue = new TestQueue(freshName());
    const { id } = await make({ metric: 'depth', above: 0, queue: queue.name });
    await queue.add();
    await stands(id, 'firing');
    await server.ok(200, 'PATCH', `${ALERTS}/${id}`, { active: false });
    expect(await show(id)).toMatchObject({ active: false, state: 'ok', queues: [] });
    expect(await queue.rows("SELECT 1 FROM meta WHERE key = 'alerts'")).toEqual([]);
    await server.ok(200, 'PATCH', `${ALERTS}/${id}`, { active: true });
    await stands(id, 'firing');
  });

  it.each<[string, (id: unknown) => Promise<unknown>]>([
    ['is deleted', (id) => server.ok(204, 'DELETE', `${ALERTS}/${id}`)],
    ['is disabled', (id) => server.ok(200, 'PATCH', `${ALERTS}/${id}`, { active: false })],
    ['is given another queue', (id) => server.ok(200, 'PATCH', `${ALERTS}/${id}`, { queue: 'another' })],
  ])('resolves when its rule %s, also after an eviction', async (_, end) => {
    const queue = new TestQueue(freshName());
    const { id } = await make({ metric: 'depth', above: 0, queue: queue.name });
    await queue.add();
    await stands(id, 'firing');
    // The events of before are gone with the memory.
    await queue.evict();
    await end(id);
    await until(async () => (await told(queue)).length === 1, 'the rule to resolve');
    expect((await server.events({ queue: queue.name, types: 'alert.resolved' })).map(({ data }) => data)).toMatchObject(
      [{ alert_id: id, name: 'watch', metric: 'depth', above: 0, value: 1, reason: 'rule_removed' }],
    );
    await queue.add();
    clock.advance(10 * SECOND);
    await queue.add();
    expect(await told(queue)).toHaveLength(1);
  });

  it('that is deleted resolves what fires, and fires no more', async () => {
    const receiver = new Receiver();
    await subscribe(receiver, { events: ['alert.*'] });
    const queue = new TestQueue(freshName());
    const { id } = await make({ metric: 'dead_letters', above: 0 });
    const job = await queue.add();
    await queue.claim();
    await queue.nack(job, { message: 'poison', code: 'DEAD_LETTER' });
    await queue.passTo(T0 + 6 * SECOND);
    await stands(id, 'firing');
    await server.ok(202, 'DELETE', `${V1}/queues/${queue.name}`, { confirm: true });
    const isForgotten = async () => {
      await queue.alarm();
      return ((await show(id)).queues as Json[]).length === 0;
    };
    await until(isForgotten, 'the queue to be forgotten');
    expect(await show(id)).toMatchObject({ state: 'ok', since: null });
    const arrivals = await receiver.received(2);
    expect(arrivals.map(({ event }) => [event.type, (event.data as Json).reason])).toEqual([
      ['alert.firing', undefined],
      ['alert.resolved', 'queue_deleted'],
    ]);
  });

  it('writes three rows more when it fires', async () => {
    const [plain, watched] = [new TestQueue(freshName()), new TestQueue(freshName())];
    for (const queue of [plain, watched]) await queue.add();
    const { id } = await make({ metric: 'depth', above: 1, queue: watched.name });
    clock.advance(10 * SECOND);
    const rows = await plain.rowsWritten(() => plain.add());
    const fired = await watched.rowsWritten(async () => {
      await watched.add();
      await stands(id, 'firing');
      await until(async () => (await watched.rows('SELECT 1 FROM outbox')).length === 0, 'the letter to be taken');
    });
    expect(fired).toBe(rows + 3);
  });

  it('that is empty and well writes nothing and sets no alarm', async () => {
    const queue = new TestQueue(freshName());
    const job = await queue.add();
    await queue.cancel(job);
    await make({ metric: 'depth', above: 100 });
    await make({ metric: 'oldest_age', above: 60 });
    await make({ metric: 'error_rate', above: 0.1 });
    await make({ metric: 'dead_letters', above: 0 });
    await queue.passTo(T0 + MINUTE);
    await queue.evict();
    await queue.startCounting();
    await queue.stats();
    // The cancelled job is pruned after a week; nothing is set before.
    expect(await queue.armedAt()).toBeGreaterThan(T0 + 6 * 24 * 60 * MINUTE);
    expect((await queue.counted()).written).toBe(0);
  });

  it('with rules writes no more rows than without, while nothing fires', async () => {
    const work = async (queue: TestQueue) => {
      const jobs = await queue.enqueue({}, {}, {});
      await queue.claim({ count: 3 });
      for (const { id } of jobs) await queue.ack(id);
    };
    const [plain, watched] = [new TestQueue(freshName()), new TestQueue(freshName())];
    await work(plain);
    await work(watched);
    await make({ metric: 'depth', above: 100, queue: watched.name });
    await make({ metric: 'oldest_age', above: 600, queue: watched.name });
    clock.advance(10 * SECOND);
    const rows = await plain.rowsWritten(() => work(plain));
    expect(await watched.rowsWritten(() => work(watched))).toBe(rows);
  });
});
