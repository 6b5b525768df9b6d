/** The table that undoes steps: what a run records for it, and the jobs that it runs in. */
import { describe, expect, it } from 'vitest';
import { defineHandlers, fail, type HandlerContext, type Job, snooze, type UndoContext } from '../../src/handler';
import { Registry } from '../../src/handler/registry';
import { runHandler, undoHandler } from '../../src/testing';
import { post } from './deliver';
import { openCall } from './live-call';

const once = { maxAttempts: 1 };

/** What undo functions were called with. */
function recorded() {
  const calls: [step: string, result: unknown, isCertain: boolean][] = [];
  const note = (result: unknown, { step, isCertain }: UndoContext) => void calls.push([step, result, isCertain]);
  return { calls, note };
}

describe('a step that can be undone', () => {
  const { note } = recorded();
  const handlers = defineHandlers({
    'order.fulfil': {
      undo: { charge: note, 'seat-*': note },
      handler: async (_: Job, ctx: HandlerContext) => {
        await ctx.step('charge', () => 7);
        await ctx.step('note', () => 8);
        await ctx
          .step(
            'seat-1',
            () => {
              throw new Error('taken');
            },
            { retry: once },
          )
          .catch(() => undefined);
        await ctx.step('seat-2', () => {
          throw fail('none left');
        });
      },
    },
  });

  it('is on record before it is done, and keeps its flag after it', async () => {
    const call = openCall(handlers, [{ type: 'order.fulfil' }]);
    expect(await call.results).toMatchObject({ del_0: { status: 'failed', error: { code: 'FAIL' } } });
    call.hangUp();
    expect(call.said.flatMap(({ step }) => step ?? [])).toEqual([
      { name: 'charge', begun: true, undo: true },
      { name: 'charge', result: 7, undo: true },
      { name: 'note', result: 8 },
      { name: 'seat-1', begun: true, undo: true },
      { name: 'seat-1', error: expect.objectContaining({ message: 'taken' }), undo: true },
      { name: 'seat-2', begun: true, undo: true },
    ]);
  });

  it('that was begun runs again, and is not recorded as begun twice', async () => {
    const run = await runHandler(handlers, 'order.fulfil', [], {
      steps: { charge: { begun: true, undo: true }, 'seat-1': { result: 1, undo: true } },
    });
    expect(run.steps).toMatchObject({ charge: { result: 7, undo: true }, 'seat-2': { begun: true } });
  });

  it('is recorded with the answer where nothing can be said before', async () => {
    const answer = await handlers.fetch(post({ id: 'j', type: 'order.fulfil', args: [] }), {});
    expect(await answer.json()).toMatchObject({ status: 'snoozed', steps: { charge: { result: 7, undo: true } } });
  });
});

describe('children that can be undone', () => {
  const calls: unknown[] = [];
  const note = (result: unknown, { step, isCertain, jobIds }: UndoContext) =>
    void calls.push([step, result, isCertain, jobIds.length]);
  const handlers = defineHandlers({
    'trip.book': {
      undo: { 'book *': note, pay: note },
      handler: async (_: Job, ctx: HandlerContext) => {
        await ctx.step('pay', () => 1);
        const hotels = [1, 2].map((room) => ({ type: 'hotel.book', args: [room] }));
        await Promise.all([
          ctx.run('book flight', 'flight.book', []),
          ctx.runAll('book hotels', hotels),
          ctx.run('mail', 'mail.send', []),
        ]);
      },
    },
  });

  it('are asked for with a flag, once', async () => {
    const run = await runHandler(handlers, 'trip.book', []);
    expect(run.waitsFor.map(({ name, undo }) => [name, undo])).toEqual([
      ['book flight', true],
      ['book hotels', true],
      ['mail', undefined],
    ]);
    const later = await runHandler(handlers, 'trip.book', [], { steps: run.steps });
    expect(later.waitsFor).toEqual([{ name: 'book flight' }, { name: 'book hotels' }, { name: 'mail' }]);
  });

  it('begin again where a queue knows only that they once began', async () => {
    const run = await runHandler(handlers, 'trip.book', [], { steps: { 'book flight': { begun: true, undo: true } } });
    expect(run.waitsFor[0]).toMatchObject({ name: 'book flight', undo: true });
  });

  it('are undone with their results and ids', async () => {
    const runs = { 'book flight': { result: 'AB1' }, 'book hotels': [{ result: 1 }, { error: new Error('full') }] };
    const { steps } = await runHandler(handlers, 'trip.book', [], { runs });
    const done = await undoHandler(handlers, 'trip.book', steps);
    expect(done).toMatchObject({ status: 'completed', result: { undone: 3 } });
    const list = [
      { id: expect.any(String), result: 1 },
      { id: expect.any(String), error: expect.objectContaining({ message: 'full' }) },
    ];
    expect(calls).toEqual(
      expect.arrayContaining([
        ['book flight', 'AB1', true, 1],
        ['book hotels', list, false, 2],
        ['pay', 1, true, 0],
      ]),
    );
  });
});

describe('a table of undo', () => {
  const run = () => undefined;
  const handler = (job: Job, ctx: HandlerContext) => [job, ctx];

  it('adds a handler of its own type, and announces it', () => {
    const registry = new Registry({ 'order.fulfil': { handler, undo: { a: run }, timeoutMs: 5_000 } });
    expect(registry.typeNames()).toEqual(['order.fulfil', 'order.fulfil.undo']);
    expect(registry.announcement().types).toMatchObject([
      { type: 'order.fulfil' },
      { type: 'order.fulfil.undo', timeout_ms: 5_000, talks: true },
    ]);
  });

  it.each<[string, object]>([
    ['undo of "a.b" needs an object of functions', { 'a.b': { handler, undo: {} } }],
    ['undo of "a.b" needs an object of functions', { 'a.b': { handler, undoRetry: 3 } }],
    ['undo of "a.b" needs a function for "x"', { 'a.b': { handler, undo: { x: 5 } } }],
    ['"a.b".undoRetry', { 'a.b': { handler, undo: { x: run }, undoRetry: { jitter: 5 } } }],
    ['"*" has undo', { '*': { handler, undo: { x: run } } }],
    ['"a.b.undo" has a handler', { 'a.b': { handler, undo: { x: run } }, 'a.b.undo': handler }],
    ['is not a job type', { [`a.${'b'.repeat(250)}`]: { handler, undo: { x: run } } }],
  ])('is refused: %s', (problem, wrong) => {
    expect(() => new Registry(wrong)).toThrow(problem);
    expect(() => new Registry(wrong)).toThrow(TypeError);
  });
});

describe('the handler that undoes', () => {
  const steps = {
    charge: { result: 7 },
    other: { result: 0 },
    'seat-1': { result: { seat: 4 } },
    'seat-2': { begun: true },
  } as const;

  it('undoes the last step first, by the name or its longest beginning', async () => {
    const { calls, note } = recorded();
    const named = (name: string) => (result: unknown, context: UndoContext) => note([name, result], context);
    const undo = { 's*': named('s*'), 'seat-*': named('seat-*'), charge: named('charge') };
    const handlers = { 'order.fulfil': { undo, handler: () => 1 } };
    const done = await undoHandler(handlers, 'order.fulfil', steps);
    expect(done).toMatchObject({ status: 'completed', result: { undone: 3 } });
    expect(calls).toEqual([
      ['seat-2', ['seat-*', undefined], false],
      ['seat-1', ['seat-*', { seat: 4 }], true],
      ['charge', ['charge', 7], true],
    ]);
    expect(Object.keys(done.steps)).toEqual(['undo seat-2', 'undo seat-1', 'undo charge']);
  });

  it('knows what the job was, and may enqueue', async () => {
    const undo = {
      charge: async (paid: number, { job, env, enqueue, log }: UndoContext<{ shop: string }>) => {
        log.info(`refund ${paid}`, { id: job.id, end: job.end });
        await enqueue('refund', [env.shop, `${job.id}:charge`, job.error.code]);
      },
    };
    const handlers = { 'order.fulfil': { undo, handler: () => 1 } };
    const undone = {
      id: 'job-7',
      end: 'cancelled',
      error: { code: 'cancelled', type: 'cancelled', message: '' },
    } as const;
    const run = await undoHandler(handlers, 'order.fulfil', { charge: { result: 7 } }, { env: { shop: 'a' }, undone });
    expect(run.enqueued).toMatchObject([{ type: 'refund', args: ['a', 'job-7:charge', 'cancelled'] }]);
    expect(run.log).toMatchObject([{ message: 'refund 7', fields: { id: 'job-7', end: 'cancelled' } }]);
  });

  it('continues past a step that cannot be undone, and in the end lists it as a dead letter', async () => {
    const { calls, note } = recorded();
    const tries: string[] = [];
    const broken = (_: unknown, { step }: UndoContext) => {
      tries.push(step);
      throw new Error('the bank is closed');
    };
    const handlers = { 'order.fulfil': { undo: { charge: note, 'seat-*': broken }, handler: () => 1 } };
    const run = await undoHandler(handlers, 'order.fulfil', steps);
    expect(tries).toEqual([...Array(5).fill('seat-2'), ...Array(5).fill('seat-1')]);
    expect(calls).toEqual([['charge', 7, true]]);
    expect(run).toMatchObject({
      ...{ status: 'failed', isLast: true },
      error: {
        ...{ code: 'DEAD_LETTER', type: 'undo_failed' },
        message: 'Not undone: "seat-2", "seat-1", of 3 steps of job 01900000-0000-7000-8000-000000000001.',
        details: {
          failed: [{ step: 'seat-2', message: expect.stringContaining('the bank is closed') }, { step: 'seat-1' }],
        },
      },
    });
  });

  it('takes what undoRetry says, and names that are as long as names may be', async () => {
    const long = ['x'.repeat(128), `${'x'.repeat(119)}${'😀'.repeat(4)}`, 'x'.repeat(127)];
    let calls = 0;
    const undo = {
      'x*': () => {
        calls++;
        throw new Error('no');
      },
    };
    const handlers = { 'order.fulfil': { undo, undoRetry: 1, handler: () => 1 } };
    const records = Object.fromEntries(long.map((name) => [name, { result: 1 }]));
    const run = await undoHandler(handlers, 'order.fulfil', records);
    expect(calls).toBe(3);
    expect(run.error?.message).toContain('of 3 steps');
    expect(Object.keys(run.steps)).toHaveLength(3);
  });

  it('waits when an entry asks for it, and does not count as failed', async () => {
    let calls = 0;
    const undo = {
      charge: () => {
        if (++calls === 1) throw snooze('10m', 'the bank is closed');
      },
    };
    const run = await undoHandler({ 'order.fulfil': { undo, handler: () => 1 } }, 'order.fulfil', {
      charge: { result: 1 },
    });
    expect(run).toMatchObject({ status: 'completed', sleptMs: 600_000 });
  });

  it('fails for a step that its table has forgotten, and for arguments that are not a queue’s', async () => {
    const handlers = { 'a.b': { undo: { charge: () => undefined }, handler: () => 1 } };
    const job = { id: 'j', type: 'a.b', args: [], meta: {}, end: 'discarded' };
    const of = (args: unknown[]) => runHandler(handlers as object, 'a.b.undo', args);
    const gone = await of([
      {
        job,
        steps: [
          { name: 'reserve', certain: false },
          { name: 'charge', certain: true },
        ],
      },
    ]);
    expect(gone).toMatchObject({ status: 'failed', error: { code: 'DEAD_LETTER' } });
    expect(gone.steps).toMatchObject({ 'undo charge': { result: null } });
    expect(await of([])).toMatchObject({ status: 'failed', isLast: true });
    await expect(undoHandler({ 'a.b': () => 1 }, 'a.b', {})).rejects.toThrow(TypeError);
  });
});
