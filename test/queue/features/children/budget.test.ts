/** Rows that waiting for other jobs writes, alarms apart. */
import { describe, expect, it } from 'vitest';
import { unwrap } from '../../../../src/job/errors';
import { clock, T0, until } from '../../../support/clock';
import { freshName, TestQueue } from '../../../support/queue';

clock.startAtT0();

async function counted(queue: TestQueue): Promise<TestQueue> {
  await queue.add({ pending: true });
  await queue.add({ scheduledAt: T0 + 1 });
  clock.set(T0 + 1);
  await queue.ack((await queue.claim())[0]?.id as string);
  await queue.startCounting();
  return queue;
}

async function written(queue: TestQueue, act: () => Promise<unknown>): Promise<number> {
  await queue.counted();
  await act();
  const count = await queue.counted();
  return count.written - count.alarms;
}

const snooze = async (queue: TestQueue, job_id: string, to: string, jobs: number) => {
  const job = { type: 'child', args: [], options: { queue: to } };
  const runs = JSON.stringify([
    jobs === 1 ? { name: 'r', jobs: [job] } : { name: 'r', jobs: Array(jobs).fill(job), all: true },
  ]);
  unwrap(await queue.api.settle({ job_id, kind: 'snoozed', snooze: {}, runs }));
};

const empty = (queue: TestQueue) =>
  until(async () => (await queue.rows('SELECT 1 FROM outbox')).length === 0, 'the messages to arrive');

describe('waiting for a job', () => {
  it('of the own queue writes eight rows, and fourteen with the lives of both', async () => {
    const queue = await counted(new TestQueue(freshName('rows')));
    let id = '';
    const life = async () => {
      id = await queue.add();
      await queue.claim();
    };
    expect(await written(queue, life)).toBe(2);
    expect(await written(queue, () => snooze(queue, id, queue.name, 1))).toBe(4);
    let child = '';
    const claim = async () => {
      child = (await queue.claim())[0]?.id as string;
    };
    expect(await written(queue, claim)).toBe(1);
    expect(await written(queue, () => queue.ack(child, { result: '1' }))).toBe(4);
    const end = async () => {
      await queue.claim();
      await queue.ack(id);
    };
    expect(await written(queue, end)).toBe(3);
  });

  it('of another queue writes 21 rows with the lives of both', async () => {
    const queue = await counted(new TestQueue(freshName('rows')));
    const other = await counted(new TestQueue(freshName('rows')));
    await other.counted();
    let id = '';
    const whole = async () => {
      id = await queue.add();
      await queue.claim();
      await snooze(queue, id, other.name, 1);
      await empty(queue);
      const child = (await other.claim())[0]?.id as string;
      await other.ack(child, { result: '1' });
      await empty(other);
      await queue.claim();
      await queue.ack(id);
    };
    const own = await written(queue, whole);
    const { written: theirs, alarms } = await other.counted();
    expect({ own, theirs: theirs - alarms }).toEqual({ own: 14, theirs: 7 });
  });

  it('writes 0.11 rows for each of a hundred', async () => {
    const queue = await counted(new TestQueue(freshName('rows')));
    const id = await queue.add();
    await queue.claim();
    expect(await written(queue, () => snooze(queue, id, queue.name, 100))).toBe(4);
    let children: string[] = [];
    const claim = async () => {
      children = (await queue.claim({ count: 100 })).map((job) => job.id);
    };
    expect(await written(queue, claim)).toBe(1);
    const ends = async () => {
      const reports = children.map((job_id) => ({ kind: 'completed' as const, job_id, attempt: 1, result: '1' }));
      await queue.api.report(reports);
    };
    expect(await written(queue, ends)).toBe(6);
    expect(await queue.state(id)).toBe('available');
  });
});
