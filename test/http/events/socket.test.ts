import { describe, expect, it } from 'vitest';
import { clock, SECOND, until } from '../../support/clock';
import { isLong } from '../../support/long';
import { freshName, TestQueue } from '../../support/queue';
import { server, UNKNOWN_ID, V1 } from '../../support/server';
import { longEvents, SocketClient } from '../../support/streams';

server.emptyBeforeEach();
clock.restoreAfterEach();

const ack = (job_id: unknown) => server.ok(200, 'POST', `${V1}/workers/ack`, { job_id });

describe('the WebSocket', () => {
  it('speaks ojs.v1 to those who offer it, and nothing to a plain GET', async () => {
    const offered = await SocketClient.open({ 'Sec-WebSocket-Protocol': 'other, ojs.v1' });
    expect(offered.response.headers.get('Sec-WebSocket-Protocol')).toBe('ojs.v1');
    expect(offered.response.headers.get('OJS-Version')).toBe('1.0');
    const plain = await SocketClient.open();
    expect(plain.response.headers.get('Sec-WebSocket-Protocol')).toBeNull();
    expect(await server.refusal('GET', `${V1}/ws`)).toEqual({ status: 426, code: 'invalid_request', field: 'Upgrade' });
    for (const { socket } of [offered, plain]) socket.close();
  });

  it('has the events of jobs, queues and all, each under its channel, until they are given up', async () => {
    const queue = freshName();
    const id = await server.enqueue(queue);
    const client = await SocketClient.open();
    expect(await client.subscribe(`job:${id}`)).toMatchObject({ type: 'subscribed', channel: `job:${id}` });
    await client.subscribe(`queue:${queue}`, { event_types: ['job.completed'] });
    expect(client.last('subscribed', 1)).toMatchObject({ event_types: ['job.completed'] });
    await client.subscribe('all', { event_types: ['queue.paused'] });
    await server.takeOne(queue);
    await ack(id);
    await server.ok(200, 'POST', `${V1}/queues/${queue}/pause`);
    await client.get('event', 6);
    const told = client.events().map(({ channel, event }) => `${channel} ${event}`);
    expect(told.toSorted()).toEqual(
      [
        `job:${id} job.state_changed`,
        `job:${id} job.started`,
        `job:${id} job.state_changed`,
        `job:${id} job.completed`,
        `queue:${queue} job.completed`,
        'all queue.paused',
      ].toSorted(),
    );
    expect(client.events()[0]).toMatchObject({
      type: 'event',
      channel: `job:${id}`,
      event: 'job.state_changed',
      data: { job_id: id, queue, type: 'test.echo', from: 'available', to: 'active' },
      id: expect.stringMatching(/^evt_/),
      timestamp: expect.any(String),
    });
    client.say({ action: 'unsubscribe', channel: `queue:${queue}` });
    await client.get('unsubscribed');
    const next = await server.enqueue(queue);
    await server.ok(200, 'POST', `${V1}/queues/${queue}/resume`);
    await server.takeOne(queue);
    await ack(next);
    await server.ok(200, 'POST', `${V1}/queues/${queue}/pause`);
    await client.get('event', 7);
    expect(client.events()).toHaveLength(7);
    client.socket.close();
  });

  it('continues where a client left off, and says when something may be missing', async () => {
    const queue = new TestQueue();
    await server.enqueue(queue.name);
    const first = await SocketClient.open();
    const { position } = await first.subscribe(`queue:${queue.name}`);
    first.socket.close();
    const id = await server.enqueue(queue.name);
    const client = await SocketClient.open();
    await client.subscribe(`queue:${queue.name}`, { after: position });
    await client.get('event');
    expect(client.events()).toMatchObject([{ event: 'job.enqueued', data: { job_id: id } }]);
    await queue.evict();
    const last = client.events().at(-1)?.id;
    client.say({ action: 'resume', channel: `queue:${queue.name}`, last_event_id: last });
    await client.get('event', 2);
    expect(client.events().at(-1)).toMatchObject({ event: 'system.gap', data: { queues: [queue.name], after: last } });
    client.socket.close();
  });

  it('lets the object sleep', async () => {
    const queue = new TestQueue();
    await server.enqueue(queue.name);
    const client = await SocketClient.open();
    await client.subscribe(`queue:${queue.name}`, { event_types: ['job.enqueued'] });
    await queue.evict();
    const id = await server.enqueue(queue.name);
    await client.get('event');
    expect(client.events()).toMatchObject([{ event: 'job.enqueued', data: { job_id: id } }]);
    client.socket.close();
  });

  it('answers what it does not understand, and continues', async () => {
    const queue = freshName();
    await server.enqueue(queue);
    const client = await SocketClient.open();
    const wrong: [message: unknown, code: string, field?: string][] = [
      ['{', 'invalid_payload'],
      ['[]', 'invalid_payload'],
      [JSON.stringify({ action: 'x'.repeat(9000) }), 'invalid_payload'],
      [{ action: 'shout' }, 'invalid_request', 'action'],
      [{ action: 'subscribe' }, 'invalid_request', 'channel'],
      [{ action: 'subscribe', channel: 'jobs' }, 'invalid_request', 'channel'],
      [{ action: 'subscribe', channel: `queue:${queue}`, event_types: ['x'] }, 'invalid_request', 'event_types'],
      [{ action: 'subscribe', channel: `queue:${queue}`, event_types: 7 }, 'invalid_request', 'event_types'],
      [{ action: 'subscribe', channel: `queue:${queue}`, after: 'x' }, 'invalid_request', 'after'],
      [{ action: 'subscribe', channel: 'queue:nowhere' }, 'not_found'],
      [{ action: 'subscribe', channel: `job:${UNKNOWN_ID}` }, 'not_found'],
      [{ action: 'subscribe', channel: 'job:x' }, 'not_found'],
    ];
    for (const [message] of wrong) client.say(message);
    client.socket.send(new Uint8Array([1, 2, 3]));
    const errors = await client.get('error', wrong.length + 1);
    expect(errors.map(({ code, details }) => [code, (details as { field?: string } | undefined)?.field])).toEqual([
      ...wrong.map(([, code, field]) => [code, field]),
      ['invalid_payload', undefined],
    ]);
    expect(errors[9]).toMatchObject({ type: 'error', channel: 'queue:nowhere', message: expect.any(String) });
    client.say('ping');
    client.say({ action: 'ping' });
    await client.get('pong', 2);
    await client.subscribe(`queue:${queue}`);
    client.socket.close();
  });

  it('has a hundred channels at most', async () => {
    const queue = freshName();
    const jobs = await server.addAll(
      Array.from({ length: 101 }, () => ({ type: 'test.echo', args: [], options: { queue } })),
    );
    const client = await SocketClient.open();
    for (const id of jobs) client.say({ action: 'subscribe', channel: `job:${id}` });
    const [error] = await client.get('error');
    expect(error).toMatchObject({
      code: 'invalid_request',
      channel: `job:${jobs[100]}`,
      details: { max_channels: 100 },
    });
    expect(client.of('subscribed')).toHaveLength(100);
    client.socket.close();
  });

  it('closes when more is asked at once than anybody needs', async () => {
    const client = await SocketClient.open();
    for (let n = 0; n < 300; n++) client.say({ action: 'subscribe', channel: 'queue:nowhere' });
    await until(() => client.closed, 'the socket to be closed');
    expect(client.closed?.code).toBe(1008);
  });

  it.runIf(isLong)(
    'cuts off clients that do not answer its pings, whatever else they send, and none that do, however slowly',
    async () => {
      const queue = new TestQueue();
      await server.enqueue(queue.name);
      const [silent, chatty, slow] = [await SocketClient.open(), await SocketClient.open(), await SocketClient.open()];
      chatty.socket.addEventListener('message', () => {
        chatty.say('ping');
        for (const n of [undefined, 0, 1, chatty.count('ping')]) chatty.say({ action: 'pong', n });
      });
      // It is eight pings behind.
      slow.socket.addEventListener('message', ({ data }) => {
        const late = slow.last('ping', 8);
        if (String(data).startsWith('{"type":"ping"') && late) slow.say({ action: 'pong', n: late.n });
      });
      for (const client of [silent, chatty, slow]) await client.subscribe(`queue:${queue.name}`);
      // As many events as a client is sent in a second.
      const second = async () => {
        clock.advance(SECOND);
        await longEvents(queue, 100);
      };
      clock.set(Date.now());
      await until(async () => {
        await second();
        return silent.closed && chatty.closed;
      }, 'the clients that do not answer to be cut off');
      for (let i = 0; i < 4; i++) await second();
      for (const { closed } of [silent, chatty]) {
        expect(closed).toEqual({ code: 1013, reason: 'the client does not confirm that it reads' });
      }
      expect(slow.closed).toBeUndefined();
      const { n } = slow.last('ping', 1) ?? {};
      expect(n).toBeGreaterThan(slow.messages.length);
      slow.socket.close();
    },
  );

  it('counts what it answers', async () => {
    const client = await SocketClient.open();
    for (let i = 0; i < 40_000 && !client.closed; i++) client.say('ping');
    await until(() => client.closed, 'the client to be cut off');
    expect(client.closed?.code).toBe(1013);
    expect(client.count('pong')).toBeGreaterThan(10_000);
  });
});
