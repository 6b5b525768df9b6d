import { describe, expect, it, vi } from 'vitest';
import { until } from '../../support/clock';
import { freshName, TestQueue } from '../../support/queue';
import { server, TestServer, UNKNOWN_ID, V1 } from '../../support/server';
import { StreamReader } from '../../support/streams';

server.emptyBeforeEach();

const ack = (job_id: string) => server.ok(200, 'POST', `${V1}/workers/ack`, { job_id });

/** Runs a job to its end. */
async function run(queue: string, id: string): Promise<void> {
  await server.takeIds(queue);
  await ack(id);
}

const many = (queue: string, count: number) =>
  server.addAll(Array.from({ length: count }, () => ({ type: 'test.echo', args: [], options: { queue } })));

const ids = (stream: StreamReader, event: string) => stream.of(event).map(({ data }) => data.job_id);

describe('a stream of one job', () => {
  it('has what happens to it, and ends with it', async () => {
    const queue = freshName();
    const id = await server.enqueue(queue);
    const other = await server.enqueue(queue);
    const stream = await StreamReader.open(`/jobs/${id}/events?live=true`);
    expect(await server.takeIds(queue, { count: 2 })).toEqual([id, other]);
    await ack(other);
    await ack(id);
    await stream.over();
    expect(stream.names()).toEqual(['job.state_changed', 'job.started', 'job.state_changed', 'job.completed']);
    const [started, , ended, completed] = stream.messages.map(({ data }) => data);
    const timestamp = expect.stringMatching(/^20\d\d-.*Z$/);
    const change = { job_id: id, queue, type: 'test.echo', timestamp };
    expect(started).toEqual({ event: 'job.state_changed', ...change, from: 'available', to: 'active' });
    expect(ended).toMatchObject({ ...change, from: 'active', to: 'completed' });
    expect(completed).toMatchObject({ event: 'job.completed', ...change, attempt: 1 });
    const order = stream.messages.map(({ id: place }) => place);
    expect(order).toEqual([...new Set(order)]);
  });

  it('of a job that has ended says so once, and keeps a browser from asking again', async () => {
    const queue = freshName();
    const id = await server.enqueue(queue);
    await run(queue, id);
    const stream = await StreamReader.open(`/jobs/${id}/events?live=true`);
    await stream.over();
    expect(stream.messages).toMatchObject([
      { event: 'job.state_changed', data: { job_id: id, from: 'active', to: 'completed', queue } },
    ]);
    await new TestQueue(queue).evict();
    const again = new Request(`http://localhost${V1}/jobs/${id}/events?live=true`, {
      headers: { 'Last-Event-ID': stream.lastId },
    });
    expect((await server.send(again)).status).toBe(204);
  });

  it('has what a client missed that comes back after the end', async () => {
    const queue = freshName();
    const id = await server.enqueue(queue);
    const stream = await StreamReader.open(`/jobs/${id}/events?live=true`);
    await until(() => stream.lastId !== '', 'the place where the stream begins');
    await stream.close();
    await run(queue, id);
    const again = await StreamReader.open(`/jobs/${id}/events?live=true`, { 'Last-Event-ID': stream.lastId });
    await again.over();
    expect(again.names()).toEqual(['job.state_changed', 'job.started', 'job.state_changed', 'job.completed']);
  });

  it('tells of its end also to those who ask for other types', async () => {
    const queue = freshName();
    const id = await server.enqueue(queue);
    const stream = await StreamReader.open(`/jobs/${id}/events?live=true&types=job.started`);
    await run(queue, id);
    await stream.over();
    expect(stream.names()).toEqual(['job.started']);
  });

  it('has a change of state also where no other event tells of it', async () => {
    const queue = freshName();
    const id = await server.enqueue(queue);
    const stream = await StreamReader.open(`/jobs/${id}/events?live=true`);
    await server.takeIds(queue);
    await server.ok(200, 'POST', `${V1}/workers/nack`, { job_id: id, requeue: true, error: { message: 'later' } });
    await stream.get('job.state_changed', 2);
    expect(stream.messages.at(-1)).toMatchObject({ data: { from: 'active', to: 'available' } });
    await stream.close();
  });
});

describe('a stream of one queue', () => {
  it('has the types that are asked for: by name, by kind, and by the names of other servers', async () => {
    const queue = freshName();
    await server.enqueue(queue);
    const open = (types: string) => StreamReader.open(`/queues/${queue}/events?types=${types}`);
    const streams = await Promise.all(
      ['job.started,queue.paused', 'queue.*', 'job.retried', 'job.state_changed'].map(open),
    );
    await server.takeOne(queue);
    await server.ok(200, 'POST', `${V1}/queues/${queue}/pause`);
    await streams[0]?.get('queue.paused');
    await streams[1]?.get('queue.paused');
    await streams[3]?.get('job.state_changed');
    expect(streams.map((stream) => stream.names())).toEqual([
      ['job.started', 'queue.paused'],
      ['queue.paused'],
      [],
      ['job.state_changed'],
    ]);
    await Promise.all(streams.map((stream) => stream.close()));
  });

  it('continues where a client left off, though it had no event before', async () => {
    const queue = freshName();
    await server.enqueue(queue);
    const first = await StreamReader.open(`/queues/${queue}/events`);
    await until(() => first.lastId !== '', 'the place where the stream begins');
    await first.close();
    const [second] = await many(queue, 1);
    const stream = await StreamReader.open(`/queues/${queue}/events`, { 'Last-Event-ID': first.lastId });
    await stream.get('job.enqueued');
    await stream.close();
    const [third] = await many(queue, 1);
    const next = await StreamReader.open(`/queues/${queue}/events?after=${stream.lastId}`);
    await next.get('job.enqueued');
    expect([ids(stream, 'job.enqueued'), ids(next, 'job.enqueued')]).toEqual([[second], [third]]);
    expect([...stream.names(), ...next.names()]).not.toContain('system.gap');
    await next.close();
  });

  it('continues between the two messages of one event', async () => {
    const queue = freshName();
    await server.enqueue(queue);
    const stream = await StreamReader.open(`/queues/${queue}/events`);
    await server.takeOne(queue);
    const [change] = await stream.get('job.state_changed');
    await stream.get('job.started');
    await stream.close();
    const after = { 'Last-Event-ID': change?.id ?? '' };
    const again = await StreamReader.open(`/queues/${queue}/events`, after);
    await again.get('job.started');
    expect(again.names()).toEqual(['job.state_changed', 'job.started']);
    await again.close();
  });

  it('says when events may be missing: after an eviction, beyond what is kept, and for an id that is none', async () => {
    const queue = new TestQueue();
    await server.enqueue(queue.name);
    const path = `/queues/${queue.name}/events`;
    const first = await StreamReader.open(path);
    await until(() => first.lastId !== '', 'the place where the stream begins');
    await first.close();
    await many(queue.name, 600);
    await many(queue.name, 500);
    const beyond = await StreamReader.open(path, { 'Last-Event-ID': first.lastId });
    await beyond.get('job.enqueued', 1000);
    expect(beyond.messages[0]).toMatchObject({
      event: 'system.gap',
      data: { event: 'system.gap', queues: [queue.name], after: first.lastId },
    });
    expect(beyond.of('job.enqueued')).toHaveLength(1000);
    await beyond.close();
    await queue.evict();
    const evicted = await StreamReader.open(path, { 'Last-Event-ID': beyond.lastId });
    await evicted.get('system.gap');
    const wrong = await StreamReader.open(path, { 'Last-Event-ID': 'whatever' });
    await wrong.get('system.gap');
    await Promise.all([evicted.close(), wrong.close()]);
  });

  it('has a hundred events a second, and tells how many it left out and where they begin', async () => {
    const queue = freshName();
    await server.enqueue(queue);
    const stream = await StreamReader.open(`/queues/${queue}/events`);
    await many(queue, 250);
    const [dropped] = await stream.get('system.events_dropped');
    expect(stream.of('job.enqueued')).toHaveLength(100);
    const after = stream.of('job.enqueued').at(-1)?.id;
    expect(dropped?.data).toMatchObject({ dropped: 150, after, queue });
    const left = await server.ok(200, 'GET', `${V1}/events?queue=${queue}&after=${after}&limit=200`);
    expect(left.events).toHaveLength(150);
    await many(queue, 1);
    await stream.get('job.enqueued', 101);
    await stream.close();
  });

  it('ends when the queue is deleted', async () => {
    const queue = freshName();
    await server.enqueue(queue);
    const stream = await StreamReader.open(`/queues/${queue}/events`);
    await server.ok(202, 'DELETE', `${V1}/queues/${queue}?strategy=discard`);
    await stream.over();
    expect(await server.refusal('GET', `${V1}/queues/${queue}/events`)).toEqual({ status: 404, code: 'not_found' });
  });
});

describe('a stream', () => {
  it('has every event as lists have it, once, when it is asked to', async () => {
    const queue = freshName();
    const id = await server.enqueue(queue);
    const stream = await StreamReader.open(`/jobs/${id}/events?format=cloudevents&live=true`);
    await run(queue, id);
    await stream.over();
    const listed = await server.ok(200, 'GET', `${V1}/events?queue=${queue}&types=job.started,job.completed`);
    expect(stream.messages.map(({ data }) => data)).toEqual(listed.events);
  });

  it('shows every 15 seconds that it is alive', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const queue = freshName();
      await server.enqueue(queue);
      const stream = await StreamReader.open(`/queues/${queue}/events`, {}, TestServer.with({}));
      expect(stream.comments).toEqual([]);
      for (const count of [1, 2]) {
        vi.advanceTimersByTime(15_000);
        await until(() => stream.comments.length === count, 'a heartbeat');
      }
      expect(stream.comments).toEqual(['heartbeat', 'heartbeat']);
      await stream.close();
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it('answers HEAD, and is not kept by caches', async () => {
    const queue = freshName();
    await server.enqueue(queue);
    const head = await server.send(new Request(`http://localhost${V1}/queues/${queue}/events`, { method: 'HEAD' }));
    expect([head.status, await head.text(), head.headers.get('Cache-Control')]).toEqual([
      200,
      '',
      'no-cache, no-transform',
    ]);
  });

  it.each([
    ['/events/stream?channel=queue', 'channel'],
    ['/events/stream?channel=queue:no%20name', 'channel'],
    ['/events/stream?types=job.unheard', 'types'],
    ['/events/stream?format=xml', 'format'],
    ['/events/stream?after=evt_1', 'after'],
    ['/events/stream?channel=queue:a&queue=b', 'queue'],
    ['/queues/a%20b/events', 'name'],
  ])('is refused: %s', async (path, field) => {
    expect(await server.refusal('GET', V1 + path)).toEqual({ status: 400, code: 'invalid_request', field });
  });

  it.each(['/queues/nowhere/events', `/jobs/${UNKNOWN_ID}/events`, '/events/stream?channel=job:x'])(
    'is refused where there is nothing: %s',
    async (path) => {
      expect(await server.refusal('GET', V1 + path)).toEqual({ status: 404, code: 'not_found' });
    },
  );
});

describe('the progress of a job', () => {
  it('is sent twice, named and unnamed, and then the outcome of the job', async () => {
    const queue = freshName();
    const id = await server.enqueue(queue);
    await server.takeOne(queue);
    const report = (progress: number) =>
      server.ok(200, 'PUT', `${V1}/jobs/${id}/progress`, { progress, message: 'on its way', data: { n: 1 } });
    await report(0.25);
    const stream = await StreamReader.open(`/jobs/${id}/progress/stream`);
    await report(0.5);
    await stream.get('progress', 2);
    await ack(id);
    await stream.over();
    expect(stream.names()).toEqual(['progress', 'message', 'progress', 'message', 'completed']);
    const told = { job_id: id, message: 'on its way', data: { n: 1 }, updated_at: expect.any(String) };
    expect(stream.messages.map(({ data }) => data)).toMatchObject([
      { ...told, progress: 0.25 },
      { ...told, progress: 0.25 },
      { ...told, progress: 0.5 },
      { ...told, progress: 0.5 },
      { job_id: id, state: 'completed' },
    ]);
    const late = await StreamReader.open(`/jobs/${id}/progress/stream`);
    await late.over();
    expect(late.names().at(-1)).toBe('completed');
  });
});
