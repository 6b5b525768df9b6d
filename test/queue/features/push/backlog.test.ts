/** A pushed job among very many that wait for workers. */
import { describe, it } from 'vitest';
import { TestQueue } from '../../../support/queue';
import { server } from '../../../support/server';

/** Twice as many as one selection reads, and some. */
const CROWD = 9_000;

async function crowded(name: string, priority: number): Promise<TestQueue> {
  const queue = new TestQueue(name);
  await queue.add();
  await server.ok(200, 'POST', `/ojs/v1/queues/${name}/pause`);
  for (let left = CROWD; left > 0; left -= 1000) await queue.enqueue(...Array(1000).fill({ priority }));
  return queue;
}

describe('a pushed job behind thousands that workers pull', () => {
  it.each([
    ['in the line', 0],
    ['in the due index', 5],
  ])('%s is found after a restart', async (where, priority) => {
    const queue = await crowded(`behind ${where}`.replaceAll(' ', '-'), priority);
    const id = await server.add('work.do', [{}], { queue: queue.name, priority });
    await queue.evict();
    await server.ok(200, 'POST', `/ojs/v1/queues/${queue.name}/resume`);
    await server.jobIn(id, 'completed', 5_000);
  });
});
