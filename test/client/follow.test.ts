import { describe, expect, it } from 'vitest';
import { AbortedError, NotFoundError, type QueueEvent, TocsinClient, type TocsinError } from '../../src/client';
import { until } from '../support/clock';
import { freshName, TestQueue } from '../support/queue';
import { server, UNKNOWN_ID } from '../support/server';
import { liveClient } from './live-client';

server.emptyBeforeEach();

const text = new TextEncoder();

/** A server of event streams: each connection gets the next of these answers. */
function scripted(...answers: (() => Response | Promise<Response>)[]) {
  const asked: { url: string; lastEventId: string | undefined }[] = [];
  const slept: number[] = [];
  const client = new TocsinClient({
    url: 'https://queue.test',
    key: 'secret',
    random: () => 1,
    sleep: async (ms) => void slept.push(ms),
    fetch: async (url, init) => {
      expect(init?.headers).toMatchObject({ Accept: 'text/event-stream', Authorization: 'Bearer secret' });
      asked.push({ url, lastEventId: init?.headers['Last-Event-ID'] });
      const answer = answers.shift();
      if (!answer) throw new Error('asked once too often');
      return await answer();
    },
  });
  return { client, asked, slept };
}

const event = (id: string, type = 'job.enqueued', data = {}) =>
  `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify({ id, type, data })}\n\n`;

/** A stream of these pieces, which the server ends. */
const stream = (...pieces: string[]) => {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(text.encode(piece));
      controller.close();
    },
  });
  return () => new Response(body, { headers: { 'Content-Type': 'text/event-stream' } });
};

const refused = (status: number, code: string) => () =>
  Response.json({ error: { code, message: code, retryable: status === 503 } }, { status });

async function take(events: AsyncIterable<QueueEvent>, count: number): Promise<QueueEvent[]> {
  const taken: QueueEvent[] = [];
  for await (const each of events) if (taken.push(each) === count) break;
  return taken;
}

const ids = (events: readonly QueueEvent[]) => events.map(({ id }) => id);

describe('following the live feed', () => {
  it('gives the events of a job as lists have them, and ends with it', async () => {
    const queue = freshName();
    const client = liveClient();
    const { id } = await client.enqueue('test.step', [], { queue });
    const seen: QueueEvent[] = [];
    const followed = (async () => {
      for await (const each of client.events.follow({ job: id, history: false })) seen.push(each);
    })();
    const object = new TestQueue(queue);
    await until(async () => (await object.inside(({ instance }) => sizeOf(instance))) === 1, 'the follower');
    const worker = client.worker('w', { queues: [queue] });
    const [job] = await worker.fetch();
    await worker.ack(job as never);
    await followed;
    const listed: QueueEvent[] = [];
    for await (const each of client.events.list({ queue, types: ['job.started', 'job.completed'] })) listed.push(each);
    expect(seen).toEqual(listed);
    expect(seen.map(({ type }) => type)).toEqual(['job.started', 'job.completed']);
  });

  it('gives those of a queue until the loop is left, which lets go of the object', async () => {
    const object = new TestQueue();
    await server.enqueue(object.name);
    const followed = take(liveClient().events.follow({ queue: object.name, types: ['job.enqueued'] }), 2);
    await until(async () => (await object.inside(({ instance }) => sizeOf(instance))) === 1, 'the follower');
    const added = [await server.enqueue(object.name), await server.enqueue(object.name)];
    expect((await followed).map(({ subject }) => subject)).toEqual(added);
    await until(async () => (await object.inside(({ instance }) => sizeOf(instance))) === 0, 'the follower to leave');
  });

  it('continues from the last event when the stream ends or breaks off, and repeats none', async () => {
    const broken = () => {
      let pulls = 0;
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          if (pulls++ === 0) controller.enqueue(text.encode(event('evt_3')));
          else controller.error(new Error('reset by peer'));
        },
      });
      return new Response(body);
    };
    const { client, asked, slept } = scripted(
      stream('retry: 500\n\nid: evt_0\n\n', event('evt_1').slice(0, 20), event('evt_1').slice(20), ':heartbeat\n\n'),
      stream(event('evt_1'), event('evt_2').replaceAll('\n', '\r\n')),
      broken,
      refused(503, 'unavailable'),
      stream(event('evt_4')),
    );
    const told: (TocsinError | undefined)[] = [];
    const events = await take(
      client.events.follow({ types: ['job.*'] }, { onConnection: (error) => told.push(error) }),
      4,
    );
    expect(ids(events)).toEqual(['evt_1', 'evt_2', 'evt_3', 'evt_4']);
    expect(asked.map(({ lastEventId }) => lastEventId)).toEqual([undefined, 'evt_1', 'evt_2', 'evt_3', 'evt_3']);
    expect(asked[0]?.url).toBe('https://queue.test/ojs/v1/events/stream?types=job.*&format=cloudevents');
    expect(slept).toEqual([500, 500, 500, 1000]);
    expect(told.map((error) => error?.code)).toEqual(['network_error', undefined]);
  });

  it('continues from the place where it began, though no event came', async () => {
    const { client, asked } = scripted(stream('id: evt_0\n\n'), stream(event('evt_1')));
    await take(client.events.follow({ queue: ['a', 'b'] }), 1);
    expect(asked.map(({ lastEventId }) => lastEventId)).toEqual([undefined, 'evt_0']);
    expect(asked[0]?.url).toContain('/events/stream?format=cloudevents&queue=a%2Cb');
  });

  it('tells what the server says of the stream, each time', async () => {
    const gap = event('evt_1', 'system.gap');
    const { client } = scripted(stream(event('evt_1'), gap, gap));
    expect((await take(client.events.follow(), 3)).map(({ type }) => type)).toEqual([
      'job.enqueued',
      'system.gap',
      'system.gap',
    ]);
  });

  it('of a job ends when the server has nothing more: at once, later, or because it is not kept', async () => {
    const last = event('evt_2', 'job.state_changed', { to: 'cancelled' });
    for (const answers of [
      [() => new Response(null, { status: 204 })],
      [stream(event('evt_1')), () => new Response(null, { status: 204 })],
      [stream(event('evt_1')), refused(404, 'not_found')],
      [stream(event('evt_1'), last, event('evt_3'))],
    ]) {
      const { client } = scripted(...answers);
      const seen = await take(client.events.follow({ job: 'j' }), 9);
      expect(ids(seen)).not.toContain('evt_3');
    }
  });

  it('is refused where there is nothing to follow', async () => {
    const client = liveClient();
    await expect(take(client.events.follow({ queue: 'nowhere' }), 1)).rejects.toThrow(NotFoundError);
    await expect(take(client.events.follow({ job: UNKNOWN_ID }), 1)).rejects.toThrow(NotFoundError);
    await expect(take(client.events.follow({ types: ['job.unheard'] }), 1)).rejects.toMatchObject({ status: 400 });
    await expect(take(client.events.follow({ queue: 'a', job: 'b' }), 1)).rejects.toThrow(TypeError);
  });

  it('ends when the signal fires', async () => {
    const object = new TestQueue();
    await server.enqueue(object.name);
    const stop = new AbortController();
    const followed = take(liveClient().with({ signal: stop.signal }).events.follow({ queue: object.name }), 1);
    await until(async () => (await object.inside(({ instance }) => sizeOf(instance))) === 1, 'the follower');
    stop.abort();
    await expect(followed).rejects.toThrow(AbortedError);
  });
});

const sizeOf = (instance: { life: { followers: unknown } }) =>
  (instance.life.followers as { followers: Map<unknown, unknown> }).followers.size;
