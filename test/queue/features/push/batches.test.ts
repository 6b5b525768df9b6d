import { describe, expect, it } from 'vitest';
import { Gate, handler } from '../../../support/handlers';
import { type Json, server } from '../../../support/server';

const AT_ONCE = { initial_interval: 0, jitter: false };
/** A retry of these would not come within the test. */
const LATER = { initial_interval: 'PT1H', max_interval: null, jitter: false };

/** Enqueues into a paused queue and resumes it, so that the first selection sees all jobs. */
async function together(queue: string, jobs: { type: string; args: unknown[]; options?: Json }[]): Promise<string[]> {
  await server.setMode(queue, 'pause');
  const ids = await server.addAll(jobs.map((job) => ({ ...job, options: { ...job.options, queue } })));
  await server.ok(200, 'POST', `/ojs/v1/queues/${queue}/resume`);
  return ids;
}

describe('jobs that share a call', () => {
  it('are carried by one call', async () => {
    await server.configure('shared', { concurrency: 100 });
    const ids = await together('shared', Array(20).fill({ type: 'raw.order', args: [{}] }));
    for (const id of ids) expect(await server.jobIn(id, 'completed')).toMatchObject({ attempt: 1, result: 20 });
  });

  it('do not suffer from one that fails', async () => {
    const orders = [{ value: 1 }, { do: 'throw' }, { value: 2 }, { do: 'unrecoverable' }, { value: 3 }];
    const ids = await together(
      'one-fails',
      orders.map((order) => ({ type: 'work.do', args: [order], options: { retry: LATER } })),
    );
    const ends = ['completed', 'retryable', 'completed', 'discarded', 'completed'];
    for (const [n, id] of ids.entries()) await server.jobIn(id, ends[n] as string);
  });

  it('do not suffer from one that hangs: what was done is done in its first attempt', async () => {
    const options = { timeout_ms: 200, retry: LATER };
    const orders = [{ value: 1 }, { value: 2 }, { do: 'hang' }, { value: 3 }];
    const ids = await together(
      'one-hangs',
      orders.map((order) => ({ type: 'work.do', args: [order], options })),
    );
    for (const [n, id] of ids.entries()) {
      if (n === 2) expect(await server.jobIn(id, 'retryable')).toMatchObject({ error: { type: 'timeout' } });
      else expect(await server.jobIn(id, 'completed')).not.toHaveProperty('errors');
    }
  });

  it('end by the limit that the queue sets, which the handler knows', async () => {
    await server.configure('limited', { default_timeout: 1 });
    const orders = [{ value: 1 }, { do: 'hang' }, { value: 3 }];
    const ids = await together(
      'limited',
      orders.map((order) => ({ type: 'work.do', args: [order], options: { retry: LATER } })),
    );
    expect(await server.jobIn(ids[1] as string, 'retryable')).toMatchObject({
      error: { type: 'timeout', message: 'The job did not finish within 1000 ms.' },
    });
    for (const n of [0, 2]) expect(await server.jobIn(ids[n] as string, 'completed')).not.toHaveProperty('errors');
  });

  it('have the same execution limit: no one waits for the slow', async () => {
    const gate = new Gate('WORK');
    const [slow, quick] = await together('two-limits', [
      { type: 'work.do', args: gate.args, options: { timeout_ms: 60_000 } },
      { type: 'work.do', args: [{ value: 'done' }], options: { timeout_ms: 5_000 } },
    ]);
    await gate.waiting(1);
    expect(await server.jobIn(quick as string, 'completed')).toMatchObject({ result: 'done' });
    await gate.open();
    await server.jobIn(slow as string, 'completed');
  });
});

describe('a job that takes its call down', () => {
  it('leaves everyone else completed, and ends alone after its attempts', async () => {
    await server.configure('poison', { concurrency: 100 });
    const good = { type: 'raw.order', args: [{}], options: { retry: AT_ONCE } };
    const poison = { type: 'raw.order', args: [{ do: 'throw' }], options: { retry: AT_ONCE } };
    const jobs = [...Array(30).fill(good), poison, ...Array(30).fill(good)];
    const ids = await together('poison', jobs);
    const bad = ids[30] as string;
    for (const id of ids.filter((each) => each !== bad)) {
      expect((await server.jobIn(id, 'completed')).attempt).toBeLessThanOrEqual(2);
    }
    expect(await server.jobIn(bad, 'discarded')).toMatchObject({
      attempt: 3,
      errors: [{ type: 'tocsin.batch_crash' }, { type: 'tocsin.crash' }, { reason: 'retries_exhausted' }],
    });
    const calls = await handler<{ id: string; attempt: number }[][]>('RAW', '/calls');
    const withBad = calls.filter((call) => call.some(({ id }) => id === bad));
    expect(withBad.map((call) => call.length)).toEqual([20, 1, 1]);
  });

  it('is a dead letter after its own crash where the policy says so, and its siblings are not', async () => {
    const retry = { ...AT_ONCE, on_crash: 'dead_letter' };
    const ids = await together('poison-letter', [
      { type: 'raw.order', args: [{}], options: { retry } },
      { type: 'raw.order', args: [{ do: 'throw' }], options: { retry } },
    ]);
    await server.jobIn(ids[0] as string, 'completed');
    expect(await server.jobIn(ids[1] as string, 'discarded')).toMatchObject({ attempt: 2, error: { reason: 'crash' } });
  });

  it('cannot cost a job its last attempt: that one travels alone', async () => {
    const once = { type: 'raw.order', args: [{}], options: { max_attempts: 1 } };
    const poison = { type: 'raw.order', args: [{ do: 'throw' }], options: { retry: AT_ONCE } };
    const ids = await together('last-chance', [once, poison, once]);
    for (const id of [ids[0], ids[2]])
      expect(await server.jobIn(id as string, 'completed')).toMatchObject({ result: 1 });
    await server.jobIn(ids[1] as string, 'discarded');
  });

  it('runs again only while nothing else runs at its target, so that it can affects no other', async () => {
    const gate = new Gate('PLAIN');
    const args = [{ ...(gate.args[0] as Json), do: 'throw-then-gate' }];
    const suspect = await server.add('wide.order', args, { queue: 'solo', retry: AT_ONCE });
    await gate.waiting(1);
    const others = [];
    for (let n = 0; n < 3; n++) others.push(await server.add('wide.order', [{}], { queue: 'solo' }));
    expect(await server.counts('solo')).toMatchObject({ active: 1, available: 3 });
    await gate.open();
    for (const id of [suspect, ...others]) await server.jobIn(id, 'completed');
  });

  it('by hanging costs its siblings one attempt at most', async () => {
    const good = { type: 'raw.order', args: [{}], options: { retry: AT_ONCE, timeout_ms: 100 } };
    const hanging = { ...good, args: [{ do: 'hang' }] };
    const ids = await together('hanging', [good, hanging, good]);
    for (const id of [ids[0], ids[2]]) {
      expect((await server.jobIn(id as string, 'completed')).attempt).toBeLessThanOrEqual(2);
    }
    expect(await server.jobIn(ids[1] as string, 'discarded')).toMatchObject({ error: { type: 'timeout' } });
  });
});
