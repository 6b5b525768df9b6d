/** Answers that are large or long: each run that was reported counts, whatever the report beside it looks like. */
import { describe, expect, it } from 'vitest';
import { failAlways } from '../../../support/faults';
import { Gate, handler } from '../../../support/handlers';
import { TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';

const LATER = { initial_interval: 'PT1H', max_interval: null, jitter: false };

interface Order {
  type: string;
  args: unknown[];
  options?: Json;
}

/** Enqueues into a paused queue and resumes it, so that jobs share calls. */
async function together(queue: string, jobs: Order[]): Promise<string[]> {
  await server.setMode(queue, 'pause');
  const ids = await server.addAll(jobs.map((job) => ({ ...job, options: { retry: LATER, ...job.options, queue } })));
  await server.ok(200, 'POST', `/ojs/v1/queues/${queue}/resume`);
  return ids;
}

const callsWith = async (ids: string[]) => {
  const calls = await handler<{ id: string; attempt: number }[][]>('RAW', '/calls');
  return calls.filter((call) => call.some(({ id }) => ids.includes(id)));
};

describe('a batch answer above 32 MiB', () => {
  it('completes every job in it, and the next calls are smaller', async () => {
    await server.configure('crowd', { concurrency: 100 });
    const order = { type: 'crowd.order', args: [{ size: 1_000_000 }] };
    const ids = await together('crowd', Array(36).fill(order));
    for (const id of ids) {
      const { state, attempt, result } = await server.jobIn(id, ['completed', 'retryable']);
      expect([state, attempt, (result as string | undefined)?.length]).toEqual(['completed', 1, 1_000_000]);
    }
    expect((await callsWith(ids)).map(({ length }) => length)).toEqual([36]);
    const more = await together('crowd', Array(8).fill(order));
    for (const id of more) await server.jobIn(id, 'completed');
    expect((await callsWith(more)).map(({ length }) => length)).toEqual([4, 4]);
  });

  it('that breaks off completes the jobs that came whole; the others end as without an answer', async () => {
    const orders = [{ size: 700_000 }, { size: 700_000 }, { size: 700_000 }, { do: 'break' }, {}];
    const ids = await together(
      'breaks-off',
      orders.map((order) => ({ type: 'raw.order', args: [order] })),
    );
    for (const id of ids.slice(0, 3)) expect(await server.jobIn(id, 'completed')).toMatchObject({ attempt: 1 });
    for (const id of ids.slice(3)) {
      expect(await server.jobIn(id, 'retryable')).toMatchObject({ error: { type: 'tocsin.batch_crash' } });
    }
  });

  it('of the library comes as its runs end: what is done is completed while a sibling runs', async () => {
    const gate = new Gate('WORK');
    const large = { type: 'work.do', args: [{ do: 'sized', size: 1_000_000 }] };
    const ids = await together('streamed', [large, large, { type: 'work.do', args: gate.args }, large]);
    for (const n of [0, 1, 3]) expect(await server.jobIn(ids[n] as string, 'completed')).toMatchObject({ attempt: 1 });
    expect(await server.state(ids[2] as string)).toBe('active');
    await gate.open();
    expect(await server.jobIn(ids[2] as string, 'completed')).toMatchObject({ attempt: 1, result: gate.name });
  });
});

describe('an answer of one job that is longer than is read', () => {
  it('is not treated as a success when it may say otherwise', async () => {
    const id = await server.add('plain.order', [{ failsAfter: 5_000_000 }], { queue: 'too-long' });
    expect(await server.jobIn(id, ['completed', 'discarded'])).toMatchObject({
      state: 'discarded',
      error: { code: 'result_too_large' },
    });
  });
});

describe('an error whose texts have no end', () => {
  it.each([
    ['is cut', 150_000, 'x'.repeat(254)],
    ['so long that it is not read to its end is a failure all the same', 800_000, 'handler_error'],
  ])('%s, and its siblings keep their outcomes', async (_, times, code) => {
    const orders = [{}, { do: 'fail', text: '😀', times }, {}];
    const ids = await together(
      `endless-${times}`,
      orders.map((order) => ({ type: 'raw.order', args: [order] })),
    );
    for (const n of [0, 2]) expect(await server.jobIn(ids[n] as string, 'completed')).toMatchObject({ attempt: 1 });
    const failed = await server.jobIn(ids[1] as string, 'retryable');
    expect(failed).toMatchObject({ attempt: 1, error: { code, type: code } });
    expect((failed.error as { message: string }).message.length).toBeLessThanOrEqual(8192);
  });

  it('is cut when a worker reports it', async () => {
    const id = await server.enqueue('endless-pull', { options: { retry: LATER } });
    await server.takeOne('endless-pull');
    const text = 'é'.repeat(100_000);
    await server.nack(id, { error: { code: text, type: text, message: text } });
    const { error } = await server.job(id);
    expect(error).toMatchObject({ code: text.slice(0, 255), type: text.slice(0, 255), message: text.slice(0, 8192) });
  });
});

describe('an outcome that cannot be written', () => {
  it('costs only its own job: those beside it in the call are settled', async () => {
    const gate = new Gate('WORK');
    const queue = new TestQueue('unwritable');
    const ids = await together('unwritable', [
      { type: 'work.do', args: [{ value: 1 }] },
      { type: 'work.do', args: [{ do: 'throw' }] },
      { type: 'work.do', args: gate.args },
    ]);
    await gate.waiting(1);
    await queue.inside(({ sql }) => void failAlways(sql, /INSERT INTO jobs/));
    await gate.open();
    for (const n of [0, 2]) expect(await server.jobIn(ids[n] as string, 'completed')).toMatchObject({ attempt: 1 });
    expect(await server.state(ids[1] as string)).toBe('active');
  });
});
