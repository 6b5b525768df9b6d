/** Jobs that a handler enqueues with its answer, where their queues do not take them all at once. */
import { expect, it } from 'vitest';
import { clock, MINUTE, until } from '../../../support/clock';
import { failAlways } from '../../../support/faults';
import { freshName, TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';

clock.startAtT0();

const child = (n: number, queue: string, options: Json = {}) => ({
  type: 'a.child',
  args: [n],
  options: { queue, group: 'g', ...options },
});

/** Runs a handler that enqueues these jobs with its answer. @returns its queue */
async function enqueued(children: readonly Json[]): Promise<TestQueue> {
  const queue = new TestQueue(freshName('talk'));
  const options = { queue: queue.name, retry: { max_attempts: 1 } };
  const id = await server.add('talk.do', [{ end: { enqueue: children } }], options);
  await server.jobIn(id, 'completed');
  return queue;
}

const messages = (parent: TestQueue) => parent.rows("SELECT address FROM outbox WHERE kind = 'children'");

/** The parent's alarm rings after the longest pause, and what it sends was answered. */
async function ring(parent: TestQueue): Promise<void> {
  clock.advance(MINUTE);
  await parent.alarm();
  await parent.inside(({ engine }) => (engine as unknown as { relay: { idle(): Promise<void> } }).relay.idle());
}

/** Runs what waits in a queue, as long as its parent has more. @returns the arguments, in the order of running */
async function run(parent: TestQueue, queues: readonly string[]): Promise<unknown[]> {
  const ran: unknown[] = [];
  await until(async () => {
    for (const queue of queues) {
      for (const job of await server.take(queue, { count: 100 })) {
        ran.push((job.args as unknown[])[0]);
        await server.ack(job.id);
      }
    }
    const isOver = (await messages(parent)).length === 0;
    await ring(parent);
    return isOver;
  }, 'all jobs to arrive');
  return ran;
}

it.each<[string, Json]>([
  ['a bound of their group', { groups: { max_waiting: 2 } }],
  ['a bound of their queue in jobs', { max_size: 3 }],
  ['a bound of their queue in bytes', { max_size_bytes: 300 }],
  ['a bound of a queue that drops its oldest', { max_size: 3, overflow_policy: 'drop_oldest' }],
  ['a bound of groups that drop their oldest', { groups: { max_waiting: 3, overflow_policy: 'drop_oldest' } }],
])('jobs that a handler enqueues all run, although %s is lower', async (_, settings) => {
  const queue = freshName('children');
  await server.configure(queue, settings);
  const parent = await enqueued(Array.from({ length: 8 }, (_, n) => child(n, queue)));
  expect((await run(parent, [queue])).sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
});

it('jobs that a handler enqueues into several queues wait for their own only', async () => {
  const [full, free] = [freshName('children'), freshName('children')];
  await server.configure(full, { max_size: 1 });
  const parent = await enqueued([child(0, full), child(1, full), child(2, free), child(3, free)]);
  await until(async () => (await server.jobs(free)).length === 2, 'the jobs of the queue that has room');
  expect((await run(parent, [full, free])).sort()).toEqual([0, 1, 2, 3]);
});

it('jobs that a handler enqueues are taken once each, although the answer of a full queue is lost', async () => {
  const queue = freshName('children');
  await server.configure(queue, { max_size: 2 });
  const parent = await enqueued([]);
  let lost = 0;
  // The message that divides the first one was sent, and its answer cannot be written.
  const restore = await parent.inside(({ sql }) => failAlways(sql, /DELETE FROM outbox/, () => lost++ !== 1));
  const children = [0, 1, 2, 3].map((n) => child(n, queue));
  const options = { queue: parent.name, retry: { max_attempts: 1 } };
  await server.jobIn(await server.add('talk.do', [{ end: { enqueue: children } }], options), 'completed');
  await until(async () => lost > 1, 'an answer to be lost');
  await parent.inside(() => restore());
  await parent.evict();
  expect((await run(parent, [queue])).sort()).toEqual([0, 1, 2, 3]);
});
