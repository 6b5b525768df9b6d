import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import type { Env } from '../../../src/config';
import type { FollowRequest } from '../../../src/durable/feed-messages';
import { askToFollow } from '../../../src/durable/followed';
import { unwrap } from '../../../src/job/errors';
import { queueStub } from '../../../src/rpc/stubs';
import { until } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { rowsWhile } from '../../support/rows';
import { server, V1 } from '../../support/server';
import { followersOf, longEvents, StreamReader } from '../../support/streams';

server.emptyBeforeEach();

const ack = (job_id: string) => server.ok(200, 'POST', `${V1}/workers/ack`, { job_id });

describe('followers and the object that they follow', () => {
  it('let it sleep: after an eviction they get what happens, and nothing is missing', async () => {
    const queue = new TestQueue();
    const id = await server.enqueue(queue.name);
    const [ofQueue, ofJob] = [
      await StreamReader.open(`/queues/${queue.name}/events?types=job.started`),
      await StreamReader.open(`/jobs/${id}/events`),
    ];
    await queue.evict();
    await server.takeOne(queue.name);
    await queue.evict();
    await ack(id);
    await ofJob.over();
    await ofQueue.get('job.started');
    expect(ofJob.of('job.completed')).toHaveLength(1);
    expect([...ofQueue.names(), ...ofJob.names()]).not.toContain('system.gap');
    await ofQueue.close();
  });

  it('cost no row, and leave no timer behind that would keep it awake', async () => {
    const queue = new TestQueue();
    await server.enqueue(queue.name);
    const streams: StreamReader[] = [];
    const follow = async () => {
      for (let n = 0; n < 5; n++) streams.push(await StreamReader.open(`/queues/${queue.name}/events`));
    };
    expect(await rowsWhile(queue.stub, follow)).toMatchObject({ written: 0, alarms: 0 });
    const followed = await queue.rowsWritten(() => server.enqueue(queue.name));
    await streams[0]?.get('job.enqueued');
    await Promise.all(streams.map((stream) => stream.close()));
    await until(() => queue.inside(({ instance }) => followersOf(instance).followers.size === 0), 'all to be gone');
    const alone = await queue.rowsWritten(() => server.enqueue(queue.name));
    expect(followed).toBe(alone);
    const left = await queue.inside(({ instance, q }) => {
      const { listeners } = q.observed.events as unknown as { listeners: Set<unknown> };
      return [followersOf(instance).timer, listeners.size];
    });
    expect(left).toEqual([undefined, 0]);
  });

  it('reconnect when the object dies, and are notified that something may be missing', async () => {
    const queue = new TestQueue();
    await server.enqueue(queue.name);
    const stream = await StreamReader.open(`/queues/${queue.name}/events`);
    await runInDurableObject(queue.stub, (_, state) => state.abort('dies')).catch(() => undefined);
    const [gap] = await stream.get('system.gap');
    expect(gap?.data).toMatchObject({ queues: [queue.name] });
    await server.enqueue(queue.name);
    await stream.get('job.enqueued');
    await stream.close();
  });

  it('are dropped when they do not read, however they follow', async () => {
    const queue = new TestQueue();
    await server.enqueue(queue.name);
    const request = new Request(`http://localhost${V1}/queues/${queue.name}/events`);
    const response = await server.send(request);
    // One that follows the object itself, and never says that it has read.
    const raw = await Raw.follow(queue.name);
    const size = () => queue.inside(({ instance }) => followersOf(instance).followers.size);
    expect(await size()).toBe(2);
    await until(async () => {
      await longEvents(queue, 100);
      return (await size()) === 0;
    }, 'the followers to be dropped');
    await expect(response.text()).rejects.toThrow('does not read');
    expect(raw.closed).toBe(4008);
    expect(raw.characters).toBeLessThan(1024 * 1024);
  });

  it('are answered by the runtime when they ask whether it is there: it sleeps on', async () => {
    const queue = new TestQueue();
    await server.enqueue(queue.name);
    const raw = await Raw.follow(queue.name);
    await queue.evict();
    raw.socket.send('ping');
    await until(() => raw.texts.includes('pong'), 'an answer');
    const answeredAt = await runInDurableObject(queue.stub, (_, state) =>
      state.getWebSockets().map((socket) => state.getWebSocketAutoResponseTimestamp(socket)?.getTime()),
    );
    expect(answeredAt).toEqual([expect.any(Number)]);
  });

  it('may be five hundred: each gets what happens in a commit as one message, and all of it', async () => {
    const queue = new TestQueue();
    await server.enqueue(queue.name);
    const job = await server.enqueue(queue.name);
    const open = (count: number, wanted: FollowRequest) =>
      Promise.all(Array.from({ length: count }, () => Raw.follow(queue.name, wanted)));
    const all = await open(400, {});
    const some = await open(50, { types: ['job.started'] });
    const ofJob = await open(50, { job });
    const added = await server.addAll(
      Array.from({ length: 90 }, () => ({ type: 'test.echo', args: [], options: { queue: queue.name } })),
    );
    await until(() => all.every(({ messages }) => messages.length === 2), 'a message to each');
    for (const { messages } of all) {
      const [, { events }] = messages as [unknown, { events: { subject: string }[] }];
      expect(events.map(({ subject }) => subject)).toEqual(added);
    }
    expect([...some, ...ofJob].every(({ messages }) => messages.length === 1)).toBe(true);
    await server.takeIds(queue.name, { count: 2 });
    await until(() => [...some, ...ofJob].every(({ messages }) => messages.length === 2), 'a message to each');
    expect(ofJob[0]?.messages[1]).toMatchObject({ events: [{ type: 'job.started', subject: job }] });
    expect(some[0]?.messages[1]).toMatchObject({ events: [{ type: 'job.started' }, { type: 'job.started' }] });
    for (const { socket } of [...all, ...some, ...ofJob]) socket.close();
  });
});

/** Follows an object as the Worker does, without saying that it has read. */
class Raw {
  readonly texts: string[] = [];
  closed: number | undefined;

  private constructor(readonly socket: WebSocket) {
    socket.addEventListener('message', ({ data }) => {
      this.texts.push(String(data));
    });
    socket.addEventListener('close', ({ code }) => {
      this.closed = code;
    });
    socket.accept();
  }

  static async follow(queue: string, wanted: FollowRequest = {}): Promise<Raw> {
    const raw = new Raw(unwrap(await askToFollow(queueStub(env as unknown as Env, queue), wanted)));
    await until(() => raw.texts.length > 0, 'the first message');
    return raw;
  }

  get messages(): unknown[] {
    return this.texts.map((text) => JSON.parse(text));
  }

  get characters(): number {
    return this.texts.slice(1).reduce((sum, text) => sum + text.length, 0);
  }
}
