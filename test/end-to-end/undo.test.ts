/** Steps that are undone by handlers that are pushed to over a binding, and by handlers that pull. */
import { beforeEach, expect, it } from 'vitest';
import { defineHandlers, fail, type HandlerContext, type Job, type UndoContext } from '../../src/handler';
import { liveClient } from '../client/live-client';
import { clock, until } from '../support/clock';
import { onRecord } from '../support/on-record';
import { freshName } from '../support/queue';
import { server } from '../support/server';

server.emptyBeforeEach();
clock.startAtT0();
const client = liveClient();
let queue: string;
beforeEach(() => {
  queue = freshName('undo');
});

const ended = async (id: string) => {
  await until(async () => (await client.get(id)).state === 'discarded', 'the job has ended');
  const { jobId = '' } = (await client.get(id)).undo ?? {};
  await until(async () => (await client.get(jobId)).state === 'completed', 'it is undone');
  return await client.get(jobId);
};

it('over a binding, a step is on record before its effect', async () => {
  const { id } = await client.enqueue('work.undone', ['A17'], { queue });
  const undo = await ended(id);
  expect(undo).toMatchObject({ type: 'work.undone.undo', meta: { undo_of: id }, result: { undone: 2 } });
  expect(await client.jobs.steps(id)).toEqual(
    onRecord({
      charge: { result: 'charged A17', undo: true },
      reserve: { begun: true, undo: true },
    }),
  );
  expect(await client.jobs.steps(undo.id)).toMatchObject({ 'undo reserve': { result: null }, 'undo charge': {} });
  expect((await client.jobs.log(undo.id)).map(({ message }) => message)).toEqual([
    'reserve perhaps',
    'charge with charged A17',
  ]);
  expect(await client.get(id)).toMatchObject({ undo: { jobId: undo.id, state: 'completed' } });
});

it('a worker that pulls does the same, and takes the jobs that undo', async () => {
  const stop = new AbortController();
  const done: unknown[] = [];
  const note = (result: unknown, { step, isCertain, job }: UndoContext) =>
    void done.push([step, result, isCertain, job.id]);
  const handlers = defineHandlers(
    {
      'trip.book': {
        undo: { 'book-*': note },
        handler: async (_: Job, ctx: HandlerContext) => {
          await ctx.step('book-flight', () => ({ seat_no: 4 }));
          await ctx.step('book-hotel', () => Promise.reject(fail('no room')));
        },
      },
    },
    { log: () => undefined },
  );
  const running = client.worker('w1', { queues: [queue] }).run(handlers, { signal: stop.signal, waitMs: 50 });
  const { id } = await client.enqueue('trip.book', [], { queue });
  await ended(id);
  expect(done).toEqual([
    ['book-hotel', undefined, false, id],
    ['book-flight', { seat_no: 4 }, true, id],
  ]);
  stop.abort();
  await running;
});
