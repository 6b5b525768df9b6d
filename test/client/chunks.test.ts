/** Chunked handlers in a worker that runs by itself, over both transports. */
import { beforeEach, describe, expect, it } from 'vitest';
import { batched, defineHandlers, discard, type Job } from '../../src/handler';
import { freshName } from '../support/queue';
import { server } from '../support/server';
import { liveClient } from './live-client';

server.emptyBeforeEach();
const client = liveClient();
let queue: string;
let stop: AbortController;
beforeEach(() => {
  queue = freshName('chunks');
  stop = new AbortController();
});

describe.each([
  ['over a socket', true],
  ['over HTTP', false],
])('a worker with chunked handlers, %s', (_, socket) => {
  const options = () => ({ log: () => undefined, signal: stop.signal, socket, waitMs: 100, concurrency: 2 });

  it('runs many jobs in one call, and reports the outcome of each', async () => {
    const calls: number[] = [];
    const handlers = defineHandlers({
      'rows.insert': batched({ size: 50, wait: '1h' }, (jobs: readonly Job<[{ bad?: boolean }]>[], ctx) => {
        calls.push(jobs.length);
        for (const job of jobs) if (job.args[0].bad) ctx.fail(job, discard('refused'));
        return jobs.map(({ id }) => id);
      }),
      'single.one': () => 'done',
    });
    const jobs = await client.enqueueMany([
      ...Array.from({ length: 100 }, (_, n) => ({ type: 'rows.insert', args: [{ bad: n === 7 }], options: { queue } })),
      { type: 'single.one', args: [], options: { queue } },
    ]);
    const running = client.worker('w1', { queues: [queue] }).run(handlers, options());
    const outcomes = await Promise.all(jobs.map(({ id }) => client.jobs.wait(id)));
    stop.abort();
    await running;
    expect(calls).toEqual([50, 50]);
    for (const [n, outcome] of outcomes.entries()) {
      if (n === 7) expect(outcome).toMatchObject({ state: 'discarded', error: { message: 'refused' } });
      else expect(outcome).toMatchObject({ state: 'completed', result: n === 100 ? 'done' : jobs[n]?.id });
    }
  });

  it('takes as many chunks at once as it has room for', async () => {
    let [now, most] = [0, 0];
    const handlers = defineHandlers({
      'rows.insert': batched({ size: 10, wait: '1h' }, async () => {
        most = Math.max(most, ++now);
        await scheduler.wait(20);
        now--;
      }),
    });
    const jobs = await client.enqueueMany(
      Array.from({ length: 60 }, () => ({ type: 'rows.insert', args: [], options: { queue } })),
    );
    const running = client.worker('w1', { queues: [queue] }).run(handlers, options());
    await Promise.all(jobs.map(({ id }) => client.jobs.wait(id)));
    stop.abort();
    await running;
    expect(most).toBe(2);
  });

  it('runs a chunk that is not full once it has waited', async () => {
    const handlers = defineHandlers({
      'rows.insert': batched({ size: 10, wait: 50 }, (jobs: readonly Job[]) => jobs.map(() => jobs.length)),
    });
    const running = client.worker('w1', { queues: [queue] }).run(handlers, options());
    const jobs = await client.enqueueMany(
      Array.from({ length: 3 }, () => ({ type: 'rows.insert', args: [], options: { queue } })),
    );
    const outcomes = await Promise.all(jobs.map(({ id }) => client.jobs.wait(id)));
    stop.abort();
    await running;
    expect(outcomes.map(({ result }) => result)).toEqual([3, 3, 3]);
  });
});
