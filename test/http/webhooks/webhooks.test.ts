/** Subscriptions, and what their receivers are sent. */
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { until } from '../../support/clock';
import { freshName, TestQueue } from '../../support/queue';
import { rowsWhile } from '../../support/rows';
import { type Json, server, TestServer, V1 } from '../../support/server';
import { delivered, deliveriesOf, Receiver, senderObject, subscribe, subscription } from '../../support/webhooks';

const LIST = `${V1}/webhooks/subscriptions`;

async function hmacHex(secret: string, text: string): Promise<string> {
  const bytes = new TextEncoder();
  const key = await crypto.subtle.importKey('raw', bytes.encode(secret), { name: 'HMAC', hash: 'SHA-256' }, false, [
    'sign',
  ]);
  const mac = new Uint8Array(await crypto.subtle.sign('HMAC', key, bytes.encode(text)));
  return [...mac].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

describe('a subscription', () => {
  server.emptyBeforeEach();

  it('is made, shown without its secret, changed and deleted', async () => {
    const receiver = new Receiver();
    const members = {
      events: ['job.completed', 'job.retried'],
      filter: { queues: ['mail'], job_types: ['email.*'] },
      metadata: { owner: 'ops' },
    };
    const made = await subscribe(receiver, members);
    const { id, secret } = made;
    expect(id).toMatch(/^wh_[0-9a-f-]{36}$/);
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{32}$/);
    expect(made.subscription).toMatchObject({ id, secret });
    expect(made).toMatchObject({
      url: receiver.url,
      events: ['job.completed', 'job.retried'],
      filter: { queues: ['mail'], types: ['email.*'], job_types: ['email.*'] },
      metadata: { owner: 'ops' },
      active: true,
      created_at: expect.any(String),
      last_delivery_at: null,
      last_delivery_status: null,
      success_count: 0,
      failure_count: 0,
    });
    const shown = await subscription(id);
    expect(shown).not.toHaveProperty('secret');
    expect(shown.subscription).not.toHaveProperty('secret');
    const listed = await server.ok(200, 'GET', LIST);
    expect(listed).toMatchObject({ total: 1, pagination: { total: 1 }, subscriptions: listed.items });
    expect(listed.items).toEqual([shown.subscription]);

    expect(await server.ok(200, 'PUT', `${LIST}/${id}`, { active: false })).toMatchObject({ id, active: false });
    const changed = await server.ok(200, 'PATCH', `${LIST}/${id}`, { active: true, filter: null, events: ['*'] });
    expect(changed).toMatchObject({ active: true, events: ['*'], metadata: { owner: 'ops' } });
    expect(changed).not.toHaveProperty('filter');

    await server.ok(204, 'DELETE', `${LIST}/${id}`);
    expect(await server.refusal('GET', `${LIST}/${id}`)).toEqual({ status: 404, code: 'not_found' });
    expect(await server.refusal('DELETE', `${LIST}/${id}`)).toEqual({ status: 404, code: 'not_found' });
    expect(await server.ok(200, 'GET', LIST)).toMatchObject({ total: 0, items: [] });
  });

  it.each<[string, Json, string]>([
    ['no URL', { url: undefined }, 'url'],
    ['no events', { events: undefined }, 'events'],
    ['an empty list of events', { events: [] }, 'events'],
    ['an unknown event', { events: ['job.completed', 'job.done'] }, 'events[1]'],
    ['what is no event of its own', { events: ['job.state_changed'] }, 'events[0]'],
    ['an unknown filter', { filter: { tags: ['a'] } }, 'filter.tags'],
    ['a filter that matches nothing', { filter: { queues: [] } }, 'filter.queues'],
    ['a queue that cannot be', { filter: { queues: ['Mail'] } }, 'filter.queues[0]'],
    ['a group that cannot be', { filter: { groups: [''] } }, 'filter.groups[0]'],
    ['a type that cannot be', { filter: { types: ['email.*.x'] } }, 'filter.types[0]'],
    ['a short secret', { secret: 'short' }, 'secret'],
    ['two secrets', { secret: 'one-secret-of-tests another-of-tests' }, 'secret'],
    ['a secret that is no base64', { secret: 'whsec_%%%%%%%%%%%%%%%%' }, 'secret'],
    ['another form of active', { active: 'yes' }, 'active'],
    ['this server', { url: 'http://localhost/ojs/v1/jobs' }, 'url'],
  ])('is refused with %s, and nothing is made', async (_, change, field) => {
    const body = { url: 'https://hook.example/', events: ['*'], ...change };
    expect(await server.refusal('POST', LIST, body)).toEqual({ status: 400, code: 'invalid_request', field });
    expect(await server.ok(200, 'GET', LIST)).toMatchObject({ total: 0 });
  });

  it.each([
    'http://hook.example/',
    'https://hook.example:8443/',
    'https://user:pw@hook.example/',
    'https://10.0.0.7/',
    'https://167772167/',
    'https://0x0a.7/',
    'https://[::ffff:10.0.0.1]/',
    'https://[fd00::1]/',
    'https://169.254.169.254/latest/meta-data',
    'https://printer.local/',
    'https://db.internal/',
    'https://intranet/',
    'https://hook.example./',
    'ftp://hook.example/',
    'not a url',
  ])('may not lead to %s', async (url) => {
    const refused = { status: 400, code: 'invalid_request', field: 'url' };
    expect(await server.refusal('POST', LIST, { url, events: ['*'] })).toEqual(refused);
    const { id } = await subscribe(new Receiver());
    expect(await server.refusal('PATCH', `${LIST}/${id}`, { url })).toEqual(refused);
  });

  it('may lead to this machine in development alone', async () => {
    const body = { url: 'http://localhost:9999/hook', events: ['*'] };
    await server.ok(201, 'POST', LIST, body);
    const deployed = TestServer.with({ ALLOW_LOCALHOST: undefined, API_KEYS: 'secret' });
    for (const url of [body.url, 'https://2130706433/', 'https://0x7f.1/', 'https://[::1]/']) {
      const answer = await deployed.call('POST', LIST, { ...body, url }, { Authorization: 'Bearer secret' });
      expect(answer, url).toMatchObject({ status: 400, body: { error: { details: { field: 'url' } } } });
    }
  });

  it('is for operators alone', async () => {
    const keys = JSON.stringify([
      { key: 'data', scopes: ['data:read', 'data:write'] },
      { key: 'view', scopes: ['admin:read'] },
    ]);
    const guarded = TestServer.with({ API_KEYS: keys });
    const as = (key: string) => ({ Authorization: `Bearer ${key}` });
    expect(await guarded.call('GET', LIST, undefined, as('data'))).toMatchObject({ status: 403 });
    expect(await guarded.call('GET', LIST, undefined, as('view'))).toMatchObject({ status: 200 });
    const body = { url: 'https://hook.example/', events: ['*'] };
    expect(await guarded.call('POST', LIST, body, as('view'))).toMatchObject({ status: 403 });

    const { id } = await subscribe(new Receiver(), { events: ['job.completed'] });
    const queue = freshName();
    await server.enqueue(queue);
    await server.complete(queue);
    expect(await delivered(id, 'delivered')).toMatchObject({ response_body: 'thanks' });
    const seen = await guarded.call('GET', `${V1}/webhooks/deliveries`, undefined, as('view'));
    expect(seen.body.items).toHaveLength(1);
    expect(seen.body.items?.[0]).not.toHaveProperty('response_body');
  });
});

describe('a receiver', () => {
  server.emptyBeforeEach();

  it('is sent the event, signed in both ways, and its answer is kept', async () => {
    const receiver = new Receiver();
    const { id, secret } = await subscribe(receiver, { events: ['job.completed'] });
    const queue = freshName();
    const job = await server.enqueue(queue, { type: 'email.send' });
    await server.complete(queue);
    const [arrival] = await receiver.received(1);
    const { event, headers, body } = arrival as NonNullable<typeof arrival>;
    const [told] = await server.events({ queue, types: 'job.completed' });
    expect(event).toEqual(told);
    expect(event).toMatchObject({ type: 'job.completed', data: { job_id: job, job_type: 'email.send', queue } });
    const delivery = await delivered(id, 'delivered');
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': 'Tocsin-Webhook/1',
      'x-ojs-event-type': 'job.completed',
      'x-ojs-delivery-id': delivery.id,
      'x-ojs-subscription-id': id,
      'webhook-id': delivery.id,
    });
    expect(new Webhook(secret as string).verify(body, headers)).toEqual(event);
    const signed = `${headers['x-ojs-timestamp']}.${body}`;
    expect(headers['x-ojs-signature']).toBe(`sha256=${await hmacHex(secret as string, signed)}`);
    expect(delivery).toMatchObject({
      subscription_id: id,
      event_id: event.id,
      event_type: 'job.completed',
      job_id: job,
      attempt: 1,
      attempts: [{ status_code: 200, duration_ms: expect.any(Number), at: expect.any(String) }],
      next_attempt_at: null,
      response_body: 'thanks',
    });
    expect(await subscription(id)).toMatchObject({
      success_count: 1,
      failure_count: 0,
      pending_count: 0,
      last_delivery_status: 'delivered',
      last_delivery_at: (delivery.attempts as Json[])[0]?.at,
    });
    expect(await server.ok(200, 'GET', `${V1}/webhooks/deliveries/${delivery.id}`)).toMatchObject({
      delivery,
      ...delivery,
    });
  });

  it('is sent what its filter lets through, and nothing else', async () => {
    const [byType, byQueue, byKind, stopped] = [new Receiver(), new Receiver(), new Receiver(), new Receiver()];
    const [mail, other] = [freshName('mail'), freshName('other')];
    await subscribe(byType, { events: ['job.completed'], filter: { types: ['email.*'] } });
    await subscribe(byQueue, { events: ['job.*'], filter: { queues: [mail] } });
    await subscribe(byKind, { events: ['queue.*'] });
    const { id } = await subscribe(stopped);
    await server.ok(200, 'PATCH', `${LIST}/${id}`, { active: false });
    for (const [queue, type] of [
      [mail, 'email.send'],
      [mail, 'sms.send'],
      [other, 'email.send'],
      [other, 'sms.send'],
    ] as const) {
      await server.enqueue(queue, { type });
      await server.complete(queue);
    }
    await server.ok(200, 'POST', `${V1}/queues/${other}/pause`);
    const of = async (receiver: Receiver, count: number) =>
      (await receiver.received(count)).map(({ event }) => [event.type, (event.data as Json).queue]).sort();
    expect(await of(byType, 2)).toEqual([
      ['job.completed', mail],
      ['job.completed', other],
    ]);
    expect(await of(byQueue, 6)).toEqual(
      ['completed', 'enqueued', 'started'].flatMap((name) => [
        [`job.${name}`, mail],
        [`job.${name}`, mail],
      ]),
    );
    expect(await of(byKind, 1)).toEqual([['queue.paused', other]]);
    expect(await stopped.arrivals()).toEqual([]);
  });

  it('is sent what happens to jobs of a group, which each event of them names', async () => {
    const [one, some] = [new Receiver(), new Receiver()];
    const queue = freshName('grouped');
    await subscribe(one, { events: ['job.*'], filter: { groups: ['acme'] } });
    const { filter } = await subscribe(some, { events: ['job.completed'], filter: { groups: ['vip-*', 'acme'] } });
    expect(filter).toEqual({ groups: ['vip-*', 'acme'] });
    const keyed = { rate_limit: { key: 'acme', concurrency: 5 } };
    for (const options of [{ group: 'acme' }, { group: 'vip-1' }, { group: 'acme-2' }, {}, keyed]) {
      const id = await server.enqueue(queue, {
        options: { retry: { max_attempts: 3, initial_interval: 1 }, ...options },
      });
      await server.takeOne(queue);
      if (options === keyed) await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
      else await server.ack(id);
    }
    const of = async (receiver: Receiver, count: number) =>
      (await receiver.received(count)).map(({ event }) => [event.type, (event.data as Json).group]).sort();
    expect(await of(one, 6)).toEqual(
      ['job.cancelled', 'job.completed', 'job.enqueued', 'job.enqueued', 'job.started', 'job.started'].map((type) => [
        ...[type, 'acme'],
      ]),
    );
    expect(await of(some, 2)).toEqual([
      ['job.completed', 'acme'],
      ['job.completed', 'vip-1'],
    ]);
  });

  it('is sent what happens to workers too', async () => {
    const receiver = new Receiver();
    await subscribe(receiver, { events: ['worker.registered'] });
    const worker = freshName('worker');
    await server.heartbeat(worker);
    const [arrival] = await receiver.received(1);
    expect(arrival?.event).toMatchObject({ type: 'worker.started', data: { worker_id: worker } });
  });

  it('is sent nothing more once the subscription is deleted, and what waited is dropped', async () => {
    const receiver = new Receiver({ status: '500' });
    const { id } = await subscribe(receiver, { events: ['job.enqueued'] });
    const queue = freshName();
    await server.enqueue(queue);
    await delivered(id, 'pending', 1);
    await server.ok(204, 'DELETE', `${LIST}/${id}`);
    await server.enqueue(queue);
    expect(await server.ok(200, 'GET', `${V1}/webhooks/deliveries`)).toMatchObject({ total: 0 });
    expect(await receiver.arrivals()).toHaveLength(1);
  });
});

describe('what webhooks cost', () => {
  server.emptyBeforeEach();

  it('is nothing where no subscription matches, and a row that comes and goes for each transaction where one does', async () => {
    const queue = new TestQueue(freshName());
    const [a] = await queue.enqueue({}, {});
    const enqueue = () => queue.enqueue({}, {}, {});
    const plain = await queue.rowsWritten(enqueue);
    await subscribe(new Receiver(), { events: ['job.discarded', 'queue.*'] });
    expect(await queue.rowsWritten(enqueue)).toBe(plain);
    const receiver = new Receiver();
    const { id } = await subscribe(receiver, { events: ['job.enqueued'], filter: { queues: [queue.name] } });
    const withOne = await queue.rowsWritten(async () => {
      await enqueue();
      await receiver.received(3);
      await until(async () => (await queue.rows('SELECT 1 FROM outbox')).length === 0, 'the letter to be taken');
    });
    // One letter for the three events, and its removal.
    expect(withOne).toBe(plain + 2);
    expect(a).toBeDefined();
    await until(async () => (await deliveriesOf(id)).every(({ status }) => status === 'delivered'), 'all to arrive');
    // In the object of the subscription: a row when an event comes, and one when it has arrived.
    const sender = await rowsWhile(senderObject(id), async () => {
      await enqueue();
      await receiver.received(6);
      await until(async () => (await deliveriesOf(id)).every(({ status }) => status === 'delivered'), 'all to arrive');
    });
    expect(sender.written - sender.alarms).toBe(6);
    expect(sender.alarms).toBeLessThanOrEqual(1);
  });
});
