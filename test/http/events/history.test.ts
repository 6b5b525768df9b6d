/** The stream of a job: first what is on record, then what happens, each once. */
import { beforeEach, describe, expect, it } from 'vitest';
import { liveClient } from '../../client/live-client';
import { clock, T0 } from '../../support/clock';
import { freshName, steady, TestQueue } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';
import { StreamReader } from '../../support/streams';

server.emptyBeforeEach();
clock.startAtT0();
let queue: string;
let object: TestQueue;
beforeEach(() => {
  queue = freshName('history');
  object = new TestQueue(queue);
});

const keysOf = (stream: StreamReader) => [...new Set(stream.messages.map(({ data }) => String(data.key)))];
const open = (id: string, query = '', headers = {}) => StreamReader.open(`/jobs/${id}/events${query}`, headers);
const step = (id: string, name: string, body: Json) => server.ok(200, 'PUT', `${V1}/jobs/${id}/steps/${name}`, body);

/** A second of each: it fails, does a step, sleeps until a signal comes, and completes. */
async function live(id: string): Promise<void> {
  clock.advance(1_000);
  await server.takeOne(queue);
  clock.advance(1_000);
  await server.nack(id, { error: { code: 'E', message: 'é'.repeat(2_000), retry_in: 0 } });
  clock.advance(1_000);
  await server.takeOne(queue);
  clock.advance(1_000);
  await step(id, 'charge', { result: 'secret' });
  clock.advance(1_000);
  const snooze = { in: 3_600_000, signal: 'go', steps: { go: { until: T0 + 3_600_000 } } };
  await server.nack(id, { requeue: true, attempt_used: false, snooze });
  clock.advance(1_000);
  await server.ok(200, 'POST', `${V1}/jobs/${id}/signals/go`, { payload: 'secret' });
  clock.advance(1_000);
  await server.takeOne(queue);
  clock.advance(1_000);
  await server.ack(id);
}

const LIFE = [
  ...['enqueued', 'attempt:1:started', 'attempt:1:failed', 'attempt:1:retrying', 'attempt:2:started'],
  ...['step:charge:result', 'step:go:until', 'snoozed', 'signal:go', 'attempt:2:completed'],
];
const named = (keys: string[]) => keys.map((key) => key.replace(/:\d+$/, ''));

describe('the stream of a job', () => {
  it('has a key for each event, which is that of the same event on record', async () => {
    const id = await server.enqueue(queue, { options: { retry: steady(3) } });
    const stream = await open(id);
    await live(id);
    await stream.over();
    // Waking, it was enqueued again, and started: the record of an attempt has its first start and its last.
    const keys = keysOf(stream);
    expect(keys[0]).toBe(`enqueued:${T0}`);
    await object.evict();
    await object.startCounting();
    const again = await open(id);
    await again.over();
    expect((await object.counted()).written).toBe(0);
    const told = keysOf(again);
    expect(keys).toEqual(expect.arrayContaining(told));
    // What followed the sleep has taken the place of what began before it.
    expect(named(told)).toEqual([
      ...['enqueued', 'attempt:1:started', 'attempt:1:failed', 'attempt:1:retrying'],
      ...['step:charge:result', 'signal:go', 'attempt:2:started', 'attempt:2:completed'],
    ]);
    expect(named(keys)).toEqual(expect.arrayContaining(LIFE));
    const failed = again.of('job.failed')[0]?.data;
    expect(failed).toMatchObject({ job_id: id, attempt: 1, duration_ms: 1_000, truncated: true });
    expect(JSON.stringify(again.messages)).not.toContain('secret');
    expect(again.names().at(-1)).toBe('job.completed');
  });

  it('continues after what is on record, and repeats nothing', async () => {
    const id = await server.enqueue(queue);
    clock.advance(1_000);
    await server.takeOne(queue);
    const stream = await open(id, '?types=job.*');
    await stream.get('job.started');
    clock.advance(1_000);
    await step(id, 'a', { result: 1 });
    await stream.get('job.step');
    await server.ack(id);
    await stream.over();
    const names = stream.names().filter((name) => name !== 'job.state_changed');
    expect(names).toEqual(['job.enqueued', 'job.started', 'job.step', 'job.completed']);
    expect(stream.of('job.step')[0]?.data).toMatchObject({ job_id: id, type: 'test.echo', name: 'a', is: 'result' });
  });

  it('names the children of a job, and the job that undoes it, live and on record', async () => {
    const id = await server.enqueue(queue);
    const stream = await open(id, '?types=job.run,job.cancelled');
    await server.takeOne(queue);
    const child = { type: 'image.resize', args: [], options: { queue } };
    const runs = [
      { name: 'cover', jobs: [child], undo: true },
      { name: 'thumbs', jobs: [child, child], all: true },
      { name: 'never', jobs: [{ ...child, options: { queue, unique: { keys: ['type'] } } }] },
    ];
    clock.advance(1_000);
    await server.nack(id, { requeue: true, attempt_used: false, snooze: { runs } });
    const [cover] = (await server.takeIds(queue, { count: 2 })).filter((one) => one !== id);
    clock.advance(1_000);
    await server.ack(cover, { result: 'secret' });
    clock.advance(1_000);
    await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
    await stream.over();
    const of = { queue, type: 'image.resize' };
    const undo_job_id = ((await server.job(id)).undo as Json).job_id;
    const ends = [
      { name: 'thumbs', is: 'until', run: { ...of, jobs: 2, ended: 0, failed: 0 } },
      { name: 'never', is: 'error', run: of },
      { name: 'cover', is: 'result', run: { ...of, id: cover, state: 'completed' } },
    ];
    const said = (one: StreamReader) => one.of('job.run').map(({ data: { name, is, run } }) => ({ name, is, run }));
    expect(said(stream)).toEqual([{ name: 'cover', is: 'until', run: { ...of, id: cover } }, ...ends]);
    const keys = keysOf(stream);
    expect(named(keys)).toContain('run:cover:result');
    await object.evict();
    const again = await open(id, '?types=job.run,job.cancelled');
    await again.over();
    expect(said(again)).toEqual(ends);
    expect(keys).toEqual(expect.arrayContaining(keysOf(again)));
    for (const one of [stream, again]) expect(one.of('job.cancelled')[0]?.data).toMatchObject({ undo_job_id });
    expect(JSON.stringify([stream.messages, again.messages])).not.toContain('secret');
  });

  it('tells again what is on record after a gap, from the moment of the last event on', async () => {
    const id = await server.enqueue(queue);
    clock.advance(1_000);
    await server.takeOne(queue);
    const stream = await open(id, '?format=cloudevents');
    await stream.get('job.started');
    const { lastId } = stream;
    await stream.close();
    clock.advance(1_000);
    await step(id, 'missed', { result: 1 });
    await object.evict();
    const again = await open(id, '?format=cloudevents', { 'Last-Event-ID': lastId });
    await server.ack(id);
    await again.over();
    // The last event itself comes again, under its key: others may have happened in its millisecond.
    expect(again.names()).toEqual(['job.started', 'job.step', 'job.completed']);
    expect(again.messages[0]?.data.data).toMatchObject({ key: `attempt:1:started:${T0 + 1_000}` });
    const ids = again.messages.map(({ data }) => data.id);
    expect(ids).toEqual([...new Set(ids)]);
    expect((await open(id, '', { 'Last-Event-ID': String(ids[0]) })).response.status).toBe(200);
  });

  it('tells more than may wait for a client otherwise, and then what happens', async () => {
    const id = await server.enqueue(queue);
    await server.takeOne(queue);
    const until = T0 + 1_000;
    const name = (n: number) => `${n}${'承'.repeat(120)}`;
    const steps = Object.fromEntries(Array.from({ length: 800 }, (_, n) => [name(n), { until }]));
    await server.nack(id, { requeue: true, attempt_used: false, snooze: { until, steps } });
    const stream = await open(id, '?types=job.step,job.cancelled');
    await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
    await stream.over();
    expect([stream.error, stream.of('job.step').length, stream.names().at(-1)]).toEqual([
      ...[undefined, 800, 'job.cancelled'],
    ]);
  });

  it('of a job that lives again does not end with the end of its earlier life', async () => {
    const id = await server.enqueue(queue, { options: { retry: steady(1) } });
    await server.takeOne(queue);
    clock.advance(1_000);
    await server.nack(id);
    clock.advance(1_000);
    await server.ok(200, 'POST', `${V1}/admin/jobs/${id}/retry`, {});
    const stream = await open(id, '?format=cloudevents');
    clock.advance(1_000);
    await server.complete(queue);
    await stream.over();
    expect(stream.names()).toEqual([
      ...['job.enqueued', 'job.started', 'job.failed', 'job.enqueued', 'job.started', 'job.completed'],
    ]);
  });

  it('comes in the channel of the protocol only if it is asked for', async () => {
    const id = await server.enqueue(queue);
    await server.complete(queue);
    const told = async (query: string) => {
      const stream = await StreamReader.open(`/events/stream?channel=job:${id}${query}`);
      await stream.over();
      return stream.names();
    };
    expect(await told('')).toEqual(['job.state_changed']);
    expect(await told('&after=0')).toEqual(expect.arrayContaining(['job.enqueued', 'job.started', 'job.completed']));
    const refused = await server.refusal('GET', `${V1}/events/stream?after=0`);
    expect(refused).toMatchObject({ status: 400, field: 'after' });
  });

  it('gives a client each once, and only later ones if it asks for no history', async () => {
    const client = liveClient();
    const id = await server.enqueue(queue);
    await server.complete(queue);
    const typesOf = async (history?: boolean) => {
      const types: string[] = [];
      const query = { job: id, ...(history !== undefined && { history }) };
      for await (const { type } of client.events.follow(query)) types.push(type);
      return types;
    };
    expect(await typesOf()).toEqual(['job.enqueued', 'job.started', 'job.completed']);
    expect(await typesOf(false)).toEqual(['job.state_changed']);
    await expect(client.events.follow({ history: true }).next()).rejects.toThrow(TypeError);
  });
});
