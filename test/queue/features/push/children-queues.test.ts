/** Jobs that a handler enqueues with its answer, into very many queues. */
import { expect, it } from 'vitest';
import { until } from '../../../support/clock';
import { isLong } from '../../../support/long';
import { freshName, TestQueue } from '../../../support/queue';
import { server } from '../../../support/server';

it.runIf(isLong)('jobs that a handler enqueues into more queues than a request may name all arrive', async () => {
  const parent = new TestQueue(freshName('talk'));
  const queues = Array.from({ length: 201 }, () => freshName('children'));
  const enqueue = queues.map((queue, n) => ({ type: 'a.child', args: [n], options: { queue } }));
  const options = { queue: parent.name, retry: { max_attempts: 1 } };
  await server.jobIn(await server.add('talk.do', [{ end: { enqueue } }], options), 'completed');
  await until(async () => (await parent.rows('SELECT 1 FROM outbox')).length === 0, 'the messages to arrive');
  for (const queue of queues) expect(await server.jobs(queue)).toHaveLength(1);
});
