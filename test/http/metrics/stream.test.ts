/** Live statistics: told while something changes, and of no cost to queues that do nothing. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { clock, MINUTE, SECOND } from '../../support/clock';
import { freshName, TestQueue } from '../../support/queue';
import { type Json, server } from '../../support/server';
import { StreamReader } from '../../support/streams';

server.emptyBeforeEach();

let queue: string;
let reader: StreamReader | undefined;

// What is told every two seconds is told at once when these have passed by the clock.
clock.startAtT0();

beforeEach(() => {
  queue = freshName('live');
});
afterEach(async () => {
  await reader?.close();
  reader = undefined;
});

const open = async () => {
  reader = await StreamReader.open('/admin/stats/stream');
  await reader.get('metrics');
  return reader;
};

/** What is asked of an object from now on, whatever asks. */
function watched(object: TestQueue): Promise<PropertyKey[]> {
  return object.inside(({ instance }) => {
    const touched: PropertyKey[] = [];
    const life = new Proxy(instance.life, {
      get: (target, name) => {
        touched.push(name);
        const value = Reflect.get(target, name, target) as unknown;
        return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
      },
    });
    Object.defineProperty(instance, 'life', { value: life });
    return touched;
  });
}

const numbers = (message: { data: Json } | undefined) =>
  (message?.data.queues as Json[] | undefined)?.find(({ queue: name }) => name === queue);

describe('GET /admin/stats/stream', () => {
  it('begins with the numbers as they are, in the names of its clients', async () => {
    await server.enqueue(queue);
    await server.heartbeat('w1');
    const [first] = (await open()).of('metrics');
    expect(first?.data).toMatchObject({
      queues: [{ queue, available: 1, active: 0, scheduled: 0, retryable: 0 }],
      throughput: { processed_per_second: 0, failed_per_second: 0, enqueued_per_second: 0 },
      workers: {
        total: 1,
        active: [{ id: 'w1', state: 'running', activeJobs: 0, lastHeartbeatAt: expect.any(String) }],
      },
      error_rate: 0,
    });
  });

  it('tells what has changed, and the events themselves', async () => {
    await server.enqueue(queue);
    const stream = await open();
    clock.advance(2 * SECOND);
    const id = await server.enqueue(queue);
    expect((await stream.get('job.enqueued'))[0]?.data).toMatchObject({ job_id: id, queue });
    const [, second] = await stream.get('metrics', 2);
    expect(numbers(second)).toMatchObject({ available: 2 });
    expect(second?.data.throughput).toMatchObject({ enqueued_per_second: 0.5 });
    // The rates go back to 0, without anything happening.
    const [, , third] = await stream.get('metrics', 3);
    expect(third?.data.throughput).toMatchObject({ enqueued_per_second: 0 });
  });

  it('tells of many events no more often than every two seconds', async () => {
    await server.enqueue(queue);
    const stream = await open();
    for (let n = 0; n < 20; n++) await server.enqueue(queue);
    await stream.get('job.enqueued', 20);
    expect(stream.of('metrics')).toHaveLength(1);
    expect(numbers((await stream.get('metrics', 2))[1])).toMatchObject({ available: 21 });
  });

  it('follows queues that come into being', async () => {
    const stream = await open();
    clock.advance(2 * SECOND);
    await server.enqueue(queue);
    await stream.get('metrics', 2);
    expect(numbers(stream.of('metrics').at(-1))).toMatchObject({ available: 1 });
  });

  it('leaves queues that do nothing asleep, for as long as it is open', async () => {
    await server.enqueue(queue);
    const other = freshName('busy');
    await server.enqueue(other);
    const object = new TestQueue(queue);
    const stream = await open();
    const touched = await watched(object);
    const rows = await object.rowsWritten(async () => {
      // Ten minutes, in which another queue has something to do now and then.
      for (let minute = 0; minute < 10; minute++) {
        clock.advance(MINUTE);
        if (minute % 3 === 0) await server.enqueue(other);
        if (minute % 3 === 0) await stream.get('metrics', 2 + minute / 3);
      }
    });
    expect(rows).toBe(0);
    expect(touched).toEqual([]);
    // The same watch sees what wakes the object.
    await server.counts(queue);
    expect(touched).not.toEqual([]);
  });
});
