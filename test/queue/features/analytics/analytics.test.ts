/** A deployment that binds a data set of Workers Analytics Engine finds there what happened to its jobs. */
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { Analytics } from '../../../../src/queue/features/analytics/feature';
import { until } from '../../../support/clock';
import { TestQueue } from '../../../support/queue';
import { TestServer, V1 } from '../../../support/server';

interface Point {
  indexes: string[];
  blobs: string[];
  doubles: number[];
}

const { INSIDE, ANALYTICS_FAKE } = env as unknown as { INSIDE: Fetcher; ANALYTICS_FAKE: { take(): Promise<Point[]> } };

const server = new TestServer((request) => {
  const sent = new Request(request);
  sent.headers.set('Authorization', 'Bearer secret');
  return INSIDE.fetch(sent) as unknown as Promise<Response>;
});

/** Waits for data points of a queue, until their numbers add up to these. */
async function written(queue: string, wanted: Record<string, number[]>, seen: Point[]): Promise<void> {
  const sums = () => {
    const all: Record<string, number[]> = {};
    for (const { indexes, blobs, doubles } of seen) {
      if (indexes[0] !== queue) continue;
      expect(blobs[0]).toBe(queue);
      expect(doubles).toHaveLength(12);
      const sum = all[blobs[1] as string] ?? doubles.map(() => 0);
      all[blobs[1] as string] = sum.map((value, index) => value + (doubles[index] as number));
    }
    return Object.fromEntries(Object.entries(all).map(([type, sum]) => [type, sum.slice(0, 7)]));
  };
  await until(
    async () => {
      seen.push(...(await ANALYTICS_FAKE.take()));
      const now = sums();
      return Object.entries(wanted).every(([type, counts]) => String(now[type]) === String(counts));
    },
    () => `${JSON.stringify(wanted)}; there are ${JSON.stringify(sums())}`,
  );
}

describe('the data set of a deployment', () => {
  it('has each commit, by type', async () => {
    const seen: Point[] = [];
    const queue = `sink-${crypto.randomUUID().slice(0, 8)}`;
    await server.addAll([1, 2, 3].map((n) => ({ type: n === 3 ? 'b' : 'a', args: [], options: { queue } })));
    const jobs = await server.take(queue, { count: 3 });
    for (const { id, type } of jobs) await (type === 'a' ? server.ack(id) : server.nack(id));
    await written(queue, { a: [2, 2, 0, 0, 0, 0, 0], b: [1, 0, 1, 1, 0, 0, 0] }, seen);
    const [, , , , , , , rows, runs, , waits] = seen.filter(({ blobs }) => blobs[1] === 'a').at(-1)?.doubles ?? [];
    expect([rows, runs, waits]).toEqual([expect.any(Number), 1, 0]);
  });

  it('has many types of one commit in bounded parts, and loses none', async () => {
    const queue = `sink-${crypto.randomUUID().slice(0, 8)}`;
    const types = Array.from({ length: 50 }, (_, n) => `type.t${n}`);
    await server.addAll(types.map((type) => ({ type, args: [], options: { queue } })));
    for (let n = 0; n < 3; n++) await server.ok(200, 'POST', `${V1}/queues/${queue}/${n % 2 ? 'resume' : 'pause'}`);
    await written(queue, Object.fromEntries(types.map((type) => [type, [1, 0, 0, 0, 0, 0, 0]])), []);
  });

  it('takes twenty in one event, and one that fails stops nothing', async () => {
    const queue = new TestQueue();
    await queue.add();
    const parts = await queue.inside(({ q }) => {
      const points: unknown[] = [];
      const dataset = {
        writeDataPoint(point?: unknown) {
          points.push(point);
          if (points.length === 3) throw new Error('full');
        },
      };
      const sink = new Analytics(q, dataset);
      for (let n = 0; n < 50; n++) q.observed.meters.enqueued(`type.t${n}`, 1, Date.now());
      q.observed.meters.publish();
      return Array.from({ length: 4 }, () => {
        sink.start();
        return points.length;
      });
    });
    expect(parts).toEqual([20, 40, 50, 50]);
  });
});
