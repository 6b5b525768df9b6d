/** Output streams from end to end: handlers that write, and clients that read. */
import { beforeEach, describe, expect, it } from 'vitest';
import { type StreamChunk, TocsinClient } from '../../src/client';
import type { HandlerContext } from '../../src/handler';
import { until } from '../support/clock';
import { freshName, TestQueue } from '../support/queue';
import { server, UNKNOWN_ID, V1 } from '../support/server';
import { StreamReader } from '../support/streams';
import { liveClient } from './live-client';

server.emptyBeforeEach();
let queue: string;
beforeEach(() => {
  queue = freshName('read');
});

const write = (id: unknown, first: number, chunks: unknown[]) =>
  server.ok(200, 'POST', `${V1}/jobs/${id}/streams/tokens`, { first, chunks });

async function taken(): Promise<string> {
  const id = await server.enqueue(queue, { options: { retry: { max_attempts: 3, initial_interval: 1 } } });
  await server.takeOne(queue);
  return id;
}

async function all(stream: AsyncIterable<StreamChunk>): Promise<unknown[]> {
  const chunks: unknown[] = [];
  for await (const { data, isReset } of stream) chunks.push(isReset ? ['reset', data] : data);
  return chunks;
}

describe('a client', () => {
  it('reads a stream while it is written, notices a reset, and ends with the job', async () => {
    const id = await taken();
    const read = all(liveClient().stream(id, 'tokens'));
    await write(id, 0, ['a', { userName: 'Ada' }]);
    await server.nack(id);
    await until(async () => (await server.take(queue)).length === 1, 'the next attempt');
    await write(id, 0, ['A', 'B']);
    await server.ack(id);
    expect(await read).toEqual(['a', { userName: 'Ada' }, ['reset', 'A'], 'B']);
    expect(await all(liveClient().stream(id, 'tokens', { after: '2048.0' }))).toEqual(['B']);
    await expect(all(liveClient().stream(id, 'other'))).rejects.toMatchObject({ status: 404 });
    await expect(all(liveClient().stream(UNKNOWN_ID, 'tokens'))).rejects.toMatchObject({ status: 404 });
  });

  it('comes back where it was', async () => {
    const asked: (string | undefined)[] = [];
    const event = (id: string, name: string, data: object) =>
      `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
    const answers = [
      event('1024.0', 'chunk', { chunk: 'a' }),
      event('1024.1', 'chunk', { chunk: 'b' }) + event('1024.1', 'end', { state: 'completed' }),
    ];
    const client = new TocsinClient({
      url: 'https://queue.test',
      key: 'secret',
      sleep: async () => undefined,
      fetch: async (_, init) => {
        asked.push(init?.headers['Last-Event-ID']);
        return new Response(answers.shift(), { headers: { 'Content-Type': 'text/event-stream' } });
      },
    });
    expect(await all(client.stream('x', 'tokens'))).toEqual(['a', 'b']);
    expect(asked).toEqual([undefined, '1024.0']);
  });

  it('passes a stream on, as a response or in chunks', async () => {
    const id = await taken();
    await write(id, 0, ['a', 'b']);
    const reader = new StreamReader(new Response(liveClient().stream(id, 'tokens').readable({ format: 'sse' })));
    await reader.get('chunk', 2);
    const chunks = liveClient().stream(id, 'tokens').readable().getReader();
    expect((await chunks.read()).value).toEqual({ data: 'a', isReset: false, id: '1024.0' });
    await chunks.cancel();
    await server.ack(id);
    await reader.over();
    expect(reader.messages.map(({ id: place, event, data }) => [place, event, data])).toEqual([
      ['1024.0', 'chunk', { chunk: 'a' }],
      ['1024.1', 'chunk', { chunk: 'b' }],
      ['1024.1', 'end', { state: 'completed' }],
    ]);
  });
});

describe('a worker that pulls', () => {
  it.each([true, false])('writes streams, with a socket: %s', async (socket) => {
    const stop = new AbortController();
    const handlers = {
      'test.write': async (_: unknown, ctx: HandlerContext) => {
        await ctx.step('answer', async () => {
          const out = ctx.stream('tokens');
          for (const text of ['a', 'b', 'c']) await out.write(text);
        });
        await ctx.stream('log').write({ userName: 'Ada' });
        return 'done';
      },
    };
    const worker = liveClient().worker('writer', { queues: [queue] });
    const running = worker.run(handlers, { signal: stop.signal, socket });
    const id = await server.add('test.write', [], { queue });
    const read = all(liveClient().stream(id, 'tokens'));
    expect(await server.jobIn(id, 'completed')).toMatchObject({ result: 'done' });
    expect(await read).toEqual(['a', 'b', 'c']);
    expect(await all(liveClient().stream(id, 'log'))).toEqual([{ userName: 'Ada' }]);
    stop.abort();
    await running;
  });

  it('sends again what an object lost that died', async () => {
    const stop = new AbortController();
    let goOn: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const handlers = {
      'test.write': async (_: unknown, ctx: HandlerContext) => {
        const out = ctx.stream('tokens');
        await out.write('a');
        await held;
        await out.write('b');
      },
    };
    const worker = liveClient().worker('writer', { queues: [queue] });
    const running = worker.run(handlers, { signal: stop.signal });
    const id = await server.add('test.write', [], { queue });
    const reader = await StreamReader.open(`/jobs/${id}/streams/tokens`);
    await reader.get('chunk', 1);
    await new TestQueue(queue).die();
    goOn();
    await server.jobIn(id, 'completed');
    await reader.over();
    expect(reader.of('chunk').map(({ data }) => data.chunk)).toEqual(['a', 'b']);
    stop.abort();
    await running;
  });
});
