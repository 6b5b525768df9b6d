/** Deliveries over time: tried again, given up, repeated, and not lost by anything that dies. */
import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import type { DirectoryApi } from '../../../src/rpc/directory';
import { clock, DAY, HOUR, iso, MINUTE, SECOND, T0, until } from '../../support/clock';
import { Gate } from '../../support/handlers';
import { freshName, TestQueue } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';
import { delivered, deliveriesOf, Receiver, senderObject, subscribe, subscription } from '../../support/webhooks';

const LIST = `${V1}/webhooks/subscriptions`;
const retry = (id: unknown) => server.ok(202, 'POST', `${V1}/webhooks/deliveries/${id}/retry`);

clock.startAtT0();
server.emptyBeforeEach();

const ENQUEUED = { events: ['job.enqueued'] };

/** When the next attempt is made, ms after {@link T0}. */
const nextAt = (delivery: Json) => Date.parse(delivery.next_attempt_at as string) - T0;

describe('a delivery that fails', () => {
  it('is tried again by the schedule, under the same id, until the receiver has it', async () => {
    const receiver = new Receiver({ status: '500', times: '2' });
    const { id, secret } = await subscribe(receiver, ENQUEUED);
    await server.enqueue(freshName());
    const first = await delivered(id, 'pending', 1);
    expect(first).toMatchObject({ attempts: [{ status_code: 500, at: iso(T0) }], response_body: 'thanks' });
    expect(nextAt(first)).toBeGreaterThanOrEqual(30 * SECOND);
    expect(nextAt(first)).toBeLessThanOrEqual(36 * SECOND);
    await clock.passTo(senderObject(id), T0 + nextAt(first) - 1);
    expect(await receiver.arrivals()).toHaveLength(1);

    await clock.passTo(senderObject(id), T0 + nextAt(first));
    const second = await delivered(id, 'pending', 2);
    expect(nextAt(second)).toBeGreaterThanOrEqual(nextAt(first) + 2 * MINUTE);
    await clock.passTo(senderObject(id), T0 + nextAt(second));
    const last = await delivered(id, 'delivered', 3);
    expect(last).toMatchObject({
      id: first.id,
      attempts: [{ status_code: 500 }, { status_code: 500 }, { status_code: 200 }],
      next_attempt_at: null,
    });
    const arrivals = await receiver.received(3);
    expect(new Set(arrivals.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([last.id]));
    expect(new Set(arrivals.map(({ body }) => body)).size).toBe(1);
    const { headers, body } = arrivals[2] as (typeof arrivals)[number];
    expect(headers['webhook-timestamp']).toBe(String(Math.floor((T0 + nextAt(second)) / 1000)));
    new Webhook(secret as string).verify(body, headers);
    // Nothing is left to do.
    await clock.ring(senderObject(id));
    expect(await clock.armedAt(senderObject(id))).toBeNull();
  });

  it('waits as long as the receiver asks', async () => {
    const receiver = new Receiver({ status: '429', times: '1', retry_after: '600' });
    const { id } = await subscribe(receiver, ENQUEUED);
    await server.enqueue(freshName());
    expect(nextAt(await delivered(id, 'pending', 1))).toBe(10 * MINUTE);
    await clock.passTo(senderObject(id), T0 + 10 * MINUTE);
    await delivered(id, 'delivered', 2);
  });

  it('is final when the receiver does not want it', async () => {
    const receiver = new Receiver({ status: '422' });
    const { id } = await subscribe(receiver, ENQUEUED);
    await server.enqueue(freshName());
    expect(await delivered(id, 'failed')).toMatchObject({ attempt: 1, next_attempt_at: null });
    expect(await subscription(id)).toMatchObject({
      failure_count: 1,
      success_count: 0,
      last_delivery_status: 'failed',
    });
    await clock.passTo(senderObject(id), T0 + 2 * DAY);
    expect(await receiver.arrivals()).toHaveLength(1);
  });

  it('is dead after eight attempts, and a subscription that only fails for five days is disabled', async () => {
    const receiver = new Receiver({ status: '0' });
    const { id } = await subscribe(receiver, ENQUEUED);
    const watcher = new Receiver();
    await subscribe(watcher, { events: ['webhook.disabled'] });
    const queue = new TestQueue(freshName());
    await queue.add();
    await delivered(id, 'pending', 1);
    await clock.passTo(senderObject(id), T0 + 50 * HOUR);
    const dead = await delivered(id, 'dead', 8);
    expect(dead.attempts).toHaveLength(8);
    expect((dead.attempts as Json[])[7]).toMatchObject({ error: expect.stringContaining('No answer') });
    expect(await subscription(id)).toMatchObject({ active: true, failure_count: 1, failing_since: iso(T0) });

    clock.at(5 * DAY - 1);
    await queue.add();
    await delivered(id, 'pending', 1);
    expect(await subscription(id)).toMatchObject({ active: true });
    // A moment later it is asked again, with a single delivery.
    const last = T0 + 5 * DAY + 2 * MINUTE;
    clock.set(last);
    await queue.add();
    await until(async () => (await subscription(id)).active === false, 'the subscription to be disabled');
    expect(await subscription(id)).toMatchObject({ disabled_reason: 'failing', disabled_at: iso(last) });
    const [told] = await watcher.received(1);
    expect(told?.event).toMatchObject({
      type: 'webhook.disabled',
      source: `ojs://tocsin/webhooks/${id}`,
      // Whoever follows events may see less than the administrator who made it.
      data: { subscription_id: id, url: `${new URL(receiver.url).origin}/[redacted]`, reason: 'failing' },
    });
    expect(await server.events({ types: 'webhook.disabled' })).toEqual([told?.event]);

    // From now on its events cost the queue nothing, and nothing is sent.
    const letters = 'SELECT 1 FROM outbox';
    const sent = (await receiver.arrivals()).length;
    await queue.add();
    expect(await queue.rows(letters)).toEqual([]);
    await clock.passTo(senderObject(id), T0 + 9 * DAY);
    expect(await receiver.arrivals()).toHaveLength(sent);

    // What waited goes on when somebody has looked after it.
    expect((await deliveriesOf(id)).filter(({ status }) => status === 'pending')).toHaveLength(2);
    const mended = new Receiver();
    const change = { url: mended.url, active: true };
    const changed = await server.ok(200, 'PATCH', `${LIST}/${id}`, change);
    expect(changed).not.toHaveProperty('disabled_reason');
    await mended.received(2);
    await until(async () => (await subscription(id)).success_count === 2, 'both to arrive');
    expect(await subscription(id)).not.toHaveProperty('failing_since');
  });

  it('with 410 disables the subscription at once', async () => {
    const { id } = await subscribe(new Receiver({ status: '410' }), ENQUEUED);
    await server.enqueue(freshName());
    await until(async () => (await subscription(id)).active === false, 'the subscription to be disabled');
    expect(await subscription(id)).toMatchObject({ disabled_reason: 'gone', failure_count: 1 });
  });

  it('stops the next ones for a while: a receiver that does not answer is asked with one at a time', async () => {
    const receiver = new Receiver({ status: '503' });
    const { id } = await subscribe(receiver, ENQUEUED);
    const queue = new TestQueue(freshName());
    await queue.enqueue(...Array.from({ length: 40 }, () => ({})));
    await clock.passTo(senderObject(id), T0 + 20 * SECOND);
    // Five at once, as long as it was not known to be down.
    expect((await receiver.arrivals()).length).toBeLessThanOrEqual(10);
    await clock.passTo(senderObject(id), T0 + 10 * MINUTE);
    expect((await receiver.arrivals()).length).toBeLessThanOrEqual(21);
    expect((await deliveriesOf(id)).every(({ status }) => status === 'pending')).toBe(true);
  });
});

describe('a receiver that is slow', () => {
  it('delays no other one, and is sent five at a time', async () => {
    const gate = new Gate('INTERNET');
    const slow = new Receiver({ gate: gate.name });
    const quick = new Receiver();
    const { id } = await subscribe(slow, ENQUEUED);
    await subscribe(quick, ENQUEUED);
    const queue = new TestQueue(freshName());
    await queue.enqueue(...Array.from({ length: 12 }, () => ({})));
    await quick.received(12);
    await slow.received(5);
    expect(await gate.load()).toEqual({ now: 5, most: 5 });
    await gate.open();
    await slow.received(12);
    await until(async () => (await subscription(id)).success_count === 12, 'all to arrive');
    expect((await gate.load()).most).toBe(5);
  });
});

describe('nothing is lost', () => {
  it('when the queue dies between the commit and the sending', async () => {
    const receiver = new Receiver();
    const { id } = await subscribe(receiver, ENQUEUED);
    const queue = new TestQueue(freshName());
    await queue.add();
    await receiver.received(1);
    await queue.inside(({ engine }) => {
      const { others } = (engine as unknown as { host: { others: { webhook(id: string): unknown } } }).host;
      others.webhook = () => {
        throw new Error('cannot be reached');
      };
    });
    clock.advance(1);
    await queue.add();
    expect(await queue.rows('SELECT kind, address FROM outbox')).toEqual([{ kind: 'notice', address: id }]);
    await queue.evict();
    expect(await receiver.arrivals()).toHaveLength(1);
    await queue.passTo(Date.now() + 2 * SECOND);
    await receiver.received(2);
    await until(async () => (await queue.rows('SELECT 1 FROM outbox')).length === 0, 'the letter to be taken');
  });

  it('when the object that sends dies: during an attempt, and between two', async () => {
    const gate = new Gate('INTERNET');
    const receiver = new Receiver({ gate: gate.name });
    const { id } = await subscribe(receiver, ENQUEUED);
    await server.enqueue(freshName());
    const [first] = await receiver.received(1);
    await runInDurableObject(senderObject(id), (_, state) => state.abort('killed by a test')).catch(() => undefined);
    await gate.open();
    await clock.passTo(senderObject(id), T0 + 2 * SECOND);
    const arrivals = await receiver.received(2);
    expect(arrivals[1]?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    await delivered(id, 'delivered');

    const failing = new Receiver({ status: '500', times: '1' });
    const { id: other } = await subscribe(failing, ENQUEUED);
    clock.advance(1);
    await server.enqueue(freshName());
    await delivered(other, 'pending', 1);
    await evictDurableObject(senderObject(other));
    await clock.passTo(senderObject(other), Date.now() + MINUTE);
    await delivered(other, 'delivered', 2);
  });

  it('or sent twice when an event arrives twice', async () => {
    const receiver = new Receiver();
    const { id } = await subscribe(receiver, ENQUEUED);
    const api = senderObject(id) as unknown as DirectoryApi;
    const notice = { id: `evt_${crypto.randomUUID()}`, type: 'job.enqueued', body: '{"data":{}}' };
    await api.takeNotices(id as string, [notice]);
    await receiver.received(1);
    await delivered(id, 'delivered');
    await api.takeNotices(id as string, [notice]);
    await clock.passTo(senderObject(id), T0 + MINUTE);
    expect(await receiver.arrivals()).toHaveLength(1);
  });
});

describe('the log', () => {
  const notices = (from: number, count: number) =>
    Array.from({ length: count }, (_, index) => ({
      id: `evt_0190a000-0000-7000-8000-${String(from + index).padStart(12, '0')}`,
      type: 'job.enqueued',
      body: '{"data":{}}',
    }));

  it('keeps the last thousand and counts all', async () => {
    const { id } = await subscribe(new Receiver(), ENQUEUED);
    const api = senderObject(id) as unknown as DirectoryApi;
    await api.takeNotices(id as string, notices(0, 1_100));
    await until(async () => {
      await clock.ring(senderObject(id));
      return (await api.webhookStats()).success_count === 1_100;
    }, 'all to arrive');
    const { total, deliveries } = await api.deliveries({ offset: 0, limit: 1 });
    expect(total).toBeGreaterThanOrEqual(1_000);
    expect(total).toBeLessThanOrEqual(1_050);
    expect(deliveries[0]?.event_id).toBe(notices(1_099, 1)[0]?.id);
    // And a week of what it keeps.
    clock.at(8 * DAY);
    await api.takeNotices(id as string, notices(2_000, 1));
    expect((await api.deliveries({ offset: 0, limit: 1 })).total).toBeLessThan(total);
    await until(async () => (await api.webhookStats()).success_count === 1_101, 'the last one to arrive');
  });

  it('gives up the oldest of what waits when there is too much', async () => {
    const { id } = await subscribe(new Receiver(), ENQUEUED);
    await server.ok(200, 'PATCH', `${LIST}/${id}`, { active: false });
    const api = senderObject(id) as unknown as DirectoryApi;
    await api.takeNotices(id as string, notices(0, 10_003));
    expect(await api.webhookStats()).toMatchObject({ pending_count: 10_000, failure_count: 3 });
    const { deliveries } = await api.deliveries({ statuses: ['dead'], offset: 0, limit: 10 });
    expect(deliveries.map(({ event_id }) => event_id)).toEqual(
      notices(0, 3)
        .map((one) => one.id)
        .reverse(),
    );
    expect(deliveries[0]?.attempts).toMatchObject([{ error: expect.stringContaining('too many') }]);
  });

  it('is paged over all subscriptions, and by status', async () => {
    const [good, bad] = [
      await subscribe(new Receiver(), ENQUEUED),
      await subscribe(new Receiver({ status: '400' }), ENQUEUED),
    ];
    const queue = freshName();
    for (let at = 0; at < 3; at++) {
      clock.advance(1);
      await server.enqueue(queue);
    }
    await until(
      async () => (await deliveriesOf(good.id)).length === 3 && (await deliveriesOf(bad.id)).length === 3,
      'all',
    );
    const path = `${V1}/webhooks/deliveries`;
    await until(async () => (await server.ok(200, 'GET', `${path}?status=pending`)).total === 0, 'all to end');
    const all = await server.ok(200, 'GET', path);
    expect(all).toMatchObject({ total: 6 });
    const pages = await Promise.all([1, 2, 3].map((page) => server.ok(200, 'GET', `${path}?page=${page}&per_page=2`)));
    expect(pages.flatMap(({ items }) => items)).toEqual(all.items);
    expect(pages[0]?.pagination).toMatchObject({ total: 6, page: 1, per_page: 2, has_more: true });
    expect(await server.ok(200, 'GET', `${path}?status=failed`)).toMatchObject({ total: 3 });
    expect(await server.refusal('GET', `${path}?status=lost`)).toMatchObject({ status: 400, field: 'status' });
    expect(await server.refusal('GET', `${path}?subscription=wh_1`)).toMatchObject({ status: 404 });
    expect(await server.refusal('GET', `${path}?page=1000&per_page=100`)).toMatchObject({ status: 400, field: 'page' });
  });
});

describe('an operator', () => {
  it('has a delivery repeated, under its id', async () => {
    const receiver = new Receiver({ status: '400', times: '1' });
    const { id } = await subscribe(receiver, ENQUEUED);
    await server.enqueue(freshName());
    const failed = await delivered(id, 'failed', 1);
    expect(await retry(failed.id)).toMatchObject({ id: failed.id, delivery: { id: failed.id } });
    const again = await delivered(id, 'delivered', 1);
    expect(again.attempts).toMatchObject([{ status_code: 400 }, { status_code: 200 }]);
    const arrivals = await receiver.received(2);
    expect(arrivals.map(({ headers }) => headers['webhook-id'])).toEqual([failed.id, failed.id]);
    expect(await subscription(id)).toMatchObject({ success_count: 1, failure_count: 0 });
    for (const unknown of ['whd_1', `${failed.id}`.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))]) {
      const path = `${V1}/webhooks/deliveries/${unknown}`;
      expect(await server.refusal('POST', `${path}/retry`)).toEqual({ status: 404, code: 'not_found' });
      expect(await server.refusal('GET', path)).toEqual({ status: 404, code: 'not_found' });
    }
  });

  it('tests a subscription, and nothing of it is kept', async () => {
    const receiver = new Receiver();
    const { id, secret } = await subscribe(receiver, { active: false });
    expect(await server.ok(200, 'POST', `${LIST}/${id}/test`)).toEqual({
      success: true,
      status_code: 200,
      status: 200,
      response_time_ms: expect.any(Number),
      response_body: 'thanks',
    });
    const [arrival] = await receiver.received(1);
    expect(arrival?.event).toMatchObject({ type: 'webhook.test', data: { subscription_id: id } });
    new Webhook(secret as string).verify(arrival?.body ?? '', arrival?.headers ?? {});
    expect(await deliveriesOf(id)).toEqual([]);

    const { id: down } = await subscribe(new Receiver({ status: '0' }));
    expect(await server.ok(200, 'POST', `${LIST}/${down}/test`)).toMatchObject({
      success: false,
      status_code: null,
      status: 0,
      error: expect.stringContaining('No answer'),
    });
    const unknown = `${LIST}/wh_0190a000-0000-7000-8000-000000000000/test`;
    expect(await server.refusal('POST', unknown)).toEqual({ status: 404, code: 'not_found' });
  });

  it('rotates the secret: both sign for a day, then the new one alone', async () => {
    const receiver = new Receiver();
    const { id } = await subscribe(receiver, { ...ENQUEUED, secret: 'whk_chosen_by_a_client' });
    const { secret, new_secret, subscription: shown } = await server.ok(200, 'POST', `${LIST}/${id}/rotate-secret`);
    expect(new_secret).toBe(secret);
    expect(shown).toMatchObject({ id, former_secret_until: iso(T0 + DAY) });
    expect(shown).not.toHaveProperty('secret');
    const queue = freshName();
    await server.enqueue(queue);
    const [both] = await receiver.received(1);
    const verify = (one: typeof both) => [
      () => new Webhook(secret as string).verify(one?.body ?? '', one?.headers ?? {}),
      () => new Webhook('whk_chosen_by_a_client', { format: 'raw' }).verify(one?.body ?? '', one?.headers ?? {}),
    ];
    for (const check of verify(both)) expect(check).not.toThrow();
    expect(both?.headers['x-ojs-signature']).toMatch(/^sha256=[0-9a-f]{64},sha256=[0-9a-f]{64}$/);

    clock.at(DAY);
    await server.enqueue(queue);
    const [, alone] = await receiver.received(2);
    const [withNew, withOld] = verify(alone);
    expect(withNew).not.toThrow();
    expect(withOld).toThrow();
    expect(alone?.headers['x-ojs-signature']).toMatch(/^sha256=[0-9a-f]{64}$/);
  });

  it('rotates again within the day: each former secret signs until its own day is over', async () => {
    const receiver = new Receiver();
    const { id, secret: first } = await subscribe(receiver, ENQUEUED);
    const rotate = async () => (await server.ok(200, 'POST', `${LIST}/${id}/rotate-secret`)).secret as string;
    const signing = async (secrets: unknown[], count: number) => {
      await server.enqueue(freshName());
      const last = (await receiver.received(count)).at(-1);
      const signs = (secret: unknown) => new Webhook(secret as string).verify(last?.body ?? '', last?.headers ?? {});
      return secrets.map((secret) => {
        try {
          signs(secret);
          return true;
        } catch {
          return false;
        }
      });
    };
    const second = await rotate();
    clock.at(DAY / 2);
    const third = await rotate();
    expect(await signing([first, second, third], 1)).toEqual([true, true, true]);
    expect(await server.ok(200, 'GET', `${LIST}/${id}`)).toMatchObject({ former_secret_until: iso(T0 + 1.5 * DAY) });
    clock.at(DAY);
    expect(await signing([first, second, third], 2)).toEqual([false, true, true]);
    clock.at(1.5 * DAY);
    expect(await signing([first, second, third], 3)).toEqual([false, false, true]);
  });

  it('refuses a rotation while ten former secrets sign, and drops none of them', async () => {
    const { id, secret } = await subscribe(new Receiver(), ENQUEUED);
    const path = `${LIST}/${id}/rotate-secret`;
    const same = await server.ok(200, 'POST', path, { secret });
    expect(same.subscription).not.toHaveProperty('former_secret_until');
    for (let at = 0; at < 10; at++) await server.ok(200, 'POST', path);
    const refused = await server.call('POST', path);
    expect(refused.status).toBe(409);
    expect(refused.body).toMatchObject({
      error: { code: 'conflict', details: { max_former_secrets: 10, retry_at: iso(T0 + DAY) } },
    });
    clock.at(DAY);
    await server.ok(200, 'POST', path);
  });
});
