/** A handler that speaks, sleeps and waits, from the enqueue to its end: pushed to over a binding, and pulled. */
import { beforeEach, describe, expect, it } from 'vitest';
import { type ClientOptions, TocsinClient } from '../../src/client';
import { defineHandlers, type HandlerContext, type Job } from '../../src/handler';
import { liveClient } from '../client/live-client';
import { clock, DAY, HOUR, T0, until } from '../support/clock';
import { Gate } from '../support/handlers';
import { onRecord } from '../support/on-record';
import { freshName, TestQueue } from '../support/queue';
import { server } from '../support/server';

server.emptyBeforeEach();
clock.startAtT0();
const client = liveClient();
let queue: string;
beforeEach(() => {
  queue = freshName('steps');
});

const messages = async (id: string) => (await client.jobs.log(id)).map(({ message }) => message);
const inState = (id: string, state: string) =>
  until(async () => (await client.get(id)).state === state, `the job is ${state}`);

describe('a handler that is pushed to', () => {
  it('does each step once, sleeps, and continues when a signal comes', async () => {
    const object = new TestQueue(queue);
    const { id } = await client.enqueue('work.talk', [], {
      queue,
      retry: { maxAttempts: 3, initialInterval: 1000, jitter: false },
      // Two attempts, and no start more: waking costs none.
      rateLimit: { key: queue, rate: 2, period: 'day' },
    });
    await inState(id, 'retryable');
    expect(await client.get(id)).toMatchObject({ attempt: 1, error: { type: 'TypeError' } });
    expect(await client.jobs.steps(id)).toEqual(onRecord({ first: { result: 1 } }));
    expect(await messages(id)).toEqual(['first step done']);

    await object.passTo(T0 + 1000);
    await until(async () => 'pause' in (await client.jobs.steps(id)), 'the job sleeps');
    const { until: wakes } = (await client.jobs.steps(id)).pause as { until: number };
    expect(wakes - T0 - 1000).toBeGreaterThanOrEqual(HOUR);
    expect(wakes - T0 - 1000).toBeLessThan(HOUR + 5000);
    const children = await client.jobs.page({ parent: id });
    expect(children.jobs).toMatchObject([{ type: 'work.do', meta: { parent_id: id } }]);

    await object.passTo(wakes);
    await until(async () => 'approved' in (await client.jobs.steps(id)), 'the job waits for its signal');
    await client.signal(id, 'approved', { by: 'ada', snake_case: 1 });
    await inState(id, 'completed');
    // The first step ran in the first run only; of the runs only the failed one has used an attempt.
    expect(await client.get(id)).toMatchObject({ attempt: 2, result: { first: 1, by: 'ada' } });
    expect(await messages(id)).toEqual(Array(4).fill('first step done'));
  });
});

describe('a handler that asks a person', () => {
  const ask = async (id: string) => {
    await until(async () => 'approved' in (await client.jobs.steps(id)), 'the job waits for its answer');
    const { result } = (await client.jobs.steps(id))['url:approved'] as { result: string };
    expect(result).toMatch(/^https:\/\/jobs\.example\/queue\/ojs\/v1\/signal\//);
    const path = result.slice('https://jobs.example/queue'.length);
    expect(await server.ok(200, 'POST', path, { choice: 'yes' })).toMatchObject({ first: true });
    await inState(id, 'completed');
    expect(await client.get(id)).toMatchObject({ attempt: 1, result: { url: result, choice: 'yes' } });
  };

  it('gets the same URL in each run, pushed or pulled', async () => {
    const pushed = await client.enqueue('work.approve', [], { queue });
    await ask(pushed.id);
    const stop = new AbortController();
    const handlers = defineHandlers(
      {
        'trip.approve': async (_: Job, ctx: HandlerContext) => {
          const url = await ctx.signalUrl('approved', { choices: ['yes', 'no'], expires: '7d' });
          return { url, ...(await ctx.waitFor<{ choice: string }>('approved')) };
        },
      },
      { log: () => undefined },
    );
    const running = client.worker('w1', { queues: [queue] }).run(handlers, { signal: stop.signal, waitMs: 50 });
    const pulled = await client.enqueue('trip.approve', [], { queue });
    await ask(pulled.id);
    stop.abort();
    await running;
  });
});

describe('a handler whose steps are on record', () => {
  const steps = (order: Record<string, unknown>) =>
    client.enqueue('work.steps', [order], { queue, retry: { maxAttempts: 2, initialInterval: 1000, jitter: false } });

  it('does none of them again when its queue dies between two of them', async () => {
    const [object, gate] = [new TestQueue(queue), new Gate('WORK')];
    const { id } = await steps({ steps: 3, gate: gate.name });
    await gate.waiting(1);
    expect(await client.jobs.steps(id)).toEqual(onRecord({ 'step 0': { result: 1 } }));
    await object.die();
    await gate.open();
    // What it still knows of the run is its lease.
    while ((await client.get(id)).attempt === 1) await object.passTo(Number(await object.armedAt()));
    await inState(id, 'completed');
    expect(await client.get(id)).toMatchObject({ attempt: 2, result: { inRun: [1, 2, 2], began: 1 } });
  });

  it('writes one row for each', async () => {
    const [object, gate] = [new TestQueue(queue), new Gate('WORK')];
    // While it runs, the alarm stays as it is.
    await steps({ gate: gate.name });
    await gate.waiting(1);
    await object.startCounting();
    const written = async (count: number) => {
      const { id } = await steps({ steps: count });
      await inState(id, 'completed');
      const { written, alarms } = await object.counted();
      return written - alarms;
    };
    // The first job of all begins a block and a chunk, which the next ones join.
    await written(1);
    const one = await written(1);
    expect([await written(2), await written(6)]).toEqual([one + 1, one + 5]);
    await gate.open();
  });

  it('writes none while it sleeps', async () => {
    const object = new TestQueue(queue);
    const { id } = await steps({ sleep: '30d' });
    await until(async () => 'pause' in (await client.jobs.steps(id)), 'the job sleeps');
    // The alarm of the run rings once, and is set anew.
    await object.passTo(T0 + HOUR);
    await object.startCounting();
    for (let day = 1; day < 30; day++) await object.passTo(T0 + day * DAY);
    expect(await client.get(id)).toMatchObject({ state: 'scheduled' });
    expect((await object.counted()).written).toBe(0);
    const wakes = (await client.jobs.steps(id)).pause as { until: number };
    await object.passTo(wakes.until);
    await inState(id, 'completed');
    expect(await client.get(id)).toMatchObject({ attempt: 1, result: { inRun: [1], began: 1 } });
  });
});

describe('a handler that pulls', () => {
  it('does the same', async () => {
    const object = new TestQueue(queue);
    const done: string[] = [];
    const stop = new AbortController();
    const handlers = defineHandlers(
      {
        'trip.book': async (job: Job<[place: string]>, ctx: HandlerContext) => {
          await ctx.progress(0.5);
          const flight = await ctx.step('bookFlight', () => ({ seat_no: done.push('flight'), to: job.args[0] }));
          if (ctx.attempt === 1) throw new Error('no hotel');
          await ctx.sleep('untilMorning', '8h');
          ctx.log.info('good morning', { at_home: true });
          const signal = await ctx
            .waitFor<{ paid_by: string }>('paidFor', { timeout: '1h' })
            .catch((error) => error.name);
          return { flight, signal };
        },
      },
      { log: () => undefined },
    );
    const running = client.worker('w1', { queues: [queue] }).run(handlers, { signal: stop.signal, waitMs: 50 });
    const { id } = await client.enqueue('trip.book', ['Rome'], {
      queue,
      retry: { maxAttempts: 2, initialInterval: 1000, jitter: false },
    });
    await inState(id, 'retryable');
    await object.passTo(T0 + 1000);
    await until(async () => 'untilMorning' in (await client.jobs.steps(id)), 'the job sleeps');
    expect(await client.jobs.steps(id)).toMatchObject({
      bookFlight: { result: { seat_no: 1, to: 'Rome' } },
      untilMorning: { until: expect.any(Number) },
    });
    const wakes = (await client.jobs.steps(id)).untilMorning as { until: number };
    await object.passTo(wakes.until);
    await until(async () => 'paidFor' in (await client.jobs.steps(id)), 'the job waits for its signal');
    await client.signal(id, 'paidFor', { paid_by: 'ada' });
    await inState(id, 'completed');
    expect(await client.get(id)).toMatchObject({
      attempt: 2,
      result: { flight: { seat_no: 1, to: 'Rome' }, signal: { paid_by: 'ada' } },
    });
    expect(await client.jobs.log(id)).toMatchObject([{ message: 'good morning', fields: { at_home: true } }, {}]);
    expect(done).toEqual(['flight']);
    stop.abort();
    await running;
  });

  it('continues in peace when the answer to its sleep was lost, and the report comes again after it woke', async () => {
    const [object, stop] = [new TestQueue(queue), new AbortController()];
    const [woke, repeated] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let reports = 0;
    const service = {
      fetch: async (input: string, init?: object) => {
        const answer = await server.send(await asBefore(new Request(input, init as RequestInit)));
        if (!input.endsWith('/workers/nack')) return answer;
        if (++reports > 1) repeated.resolve();
        else await woke.promise.then(() => Promise.reject(new Error('connection lost')));
        return answer;
      },
    };
    const done: string[] = [];
    const handlers = {
      'trip.book': async (_: Job, ctx: HandlerContext) => {
        await ctx.step('flight', () => done.push('flight'));
        await ctx.sleep('untilMorning', '8h');
        woke.resolve();
        await repeated.promise;
        await ctx.step('hotel', () => done.push('hotel'));
      },
    };
    const losing = new TocsinClient({ service } as ClientOptions).worker('w1', { queues: [queue] });
    const running = losing.run(handlers, { signal: stop.signal, waitMs: 50, socket: false, onError: () => undefined });
    const { id } = await client.enqueue('trip.book', [], { queue });
    await until(async () => 'untilMorning' in (await client.jobs.steps(id)), 'the job sleeps');
    const { until: wakes } = (await client.jobs.steps(id)).untilMorning as { until: number };
    await object.passTo(wakes);
    await inState(id, 'completed');
    expect(await client.get(id)).toMatchObject({ attempt: 1 });
    expect(await client.get(id)).not.toHaveProperty('errors');
    expect(done).toEqual(['flight', 'hotel']);
    expect(reports).toBe(2);
    stop.abort();
    await running;
  });
});

/** A request as a server of a release without batches of reports takes it: each report then travels alone. */
async function asBefore(request: Request): Promise<Request> {
  if (request.url.endsWith('/workers/report')) return new Request(`${request.url}s`, request);
  if (!request.url.endsWith('/workers/fetch')) return request;
  const { reports: _, ...body } = (await request.json()) as Record<string, unknown>;
  return new Request(request.url, { method: 'POST', headers: request.headers, body: JSON.stringify(body) });
}
