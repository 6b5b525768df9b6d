import { describe, expect, it } from 'vitest';
import { defineHandlers, type HandlerContext, handler, type Job, type WorkerOptions } from '../../src/handler';
import { deliver, deliverOne, post, quiet } from './deliver';

const echo = defineHandlers({ 'test.echo': (job) => job.args }, quiet());

describe('a delivery', () => {
  it('as a batch is answered with one result for each delivery id', async () => {
    const results = await deliver(echo, {}, { type: 'test.echo', args: [1] }, { type: 'test.echo', args: ['b'] });
    expect(results).toEqual([
      { delivery_id: 'del_0', status: 'completed', result: [1] },
      { delivery_id: 'del_1', status: 'completed', result: ['b'] },
    ]);
  });

  it('as an envelope is answered with its status alone', async () => {
    const job = { id: '1', type: 'test.echo', args: [7], attempt: 1 };
    const response = await echo.fetch(post({ job, delivery_id: 'del_1', worker_id: 'push_x' }), {});
    expect(response.headers.get('Content-Type')).toBe('application/json');
    expect(await response.json()).toEqual({ status: 'completed', result: [7] });
  });

  it('as a bare job takes its delivery id and attempt from the headers', async () => {
    const worker = defineHandlers((job, ctx) => [job.type, ctx.deliveryId, ctx.attempt], quiet());
    const headers = { 'X-OJS-Delivery-ID': 'del_9', 'X-OJS-Attempt': '4' };
    const response = await worker.fetch(post({ id: '1', type: 'any.type', args: [] }, headers), {});
    expect(await response.json()).toEqual({ status: 'completed', result: ['any.type', 'del_9', 4] });
  });

  it('may arrive at any path', async () => {
    const job = { id: '1', type: 'test.echo', args: [] };
    expect((await echo.fetch(post({ job }, {}, 'http://handler/some/where'), {})).status).toBe(200);
  });

  it.each([
    ['no JSON', '{"deliveries":'],
    ['an array', '[]'],
    ['deliveries that are no array', '{"deliveries":{}}'],
    ['a job that is no object', '{"job":"x"}'],
    ['a job without type', '{"job":{"args":[]}}'],
    ['nothing', ''],
  ])('that holds %s is answered 400 as JSON', async (_, body) => {
    const response = await echo.fetch(post(body), {});
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_request', retryable: false } });
  });

  it('in a batch whose job is broken fails without its siblings', async () => {
    const deliveries = [
      { delivery_id: 'del_a', job: null },
      { delivery_id: 'del_b', job: { id: '1', type: 'test.echo', args: ['fine'] } },
      { delivery_id: 'del_c', job: { id: '2', type: 'test.echo', args: { not: 'a list' } } },
    ];
    const response = await echo.fetch(post({ deliveries }), {});
    expect(await response.json()).toMatchObject({
      results: [
        { delivery_id: 'del_a', status: 'failed', error: { code: 'invalid_request' } },
        { delivery_id: 'del_b', status: 'completed', result: ['fine'] },
        { delivery_id: 'del_c', status: 'failed', error: { code: 'invalid_request' } },
      ],
    });
  });

  it('that is named twice in a batch runs once', async () => {
    let runs = 0;
    const worker = defineHandlers(() => ++runs, quiet());
    const entry = { delivery_id: 'del_a', job: { id: '1', type: 'test.run', args: [] } };
    const response = await worker.fetch(post({ deliveries: [entry, entry] }), {});
    expect(await response.json()).toEqual({ results: [{ delivery_id: 'del_a', status: 'completed', result: 1 }] });
  });

  it('of a type no one handles fails with handler_not_found', async () => {
    const [unknown, known] = await deliver(echo, {}, { type: 'test.other' }, { type: 'test.echo' });
    expect(unknown?.error).toMatchObject({ code: 'handler_not_found', message: expect.stringContaining('test.other') });
    expect(known?.status).toBe('completed');
  });

  it.each(['constructor', '__proto__', 'toString'])('of type %s finds no handler by accident', async (type) => {
    expect((await deliverOne(echo, {}, { type })).error?.code).toBe('handler_not_found');
  });

  it('of a type without a handler of its own goes to the catch-all', async () => {
    const worker = defineHandlers({ 'a.b': () => 'own', '*': (job) => `any ${job.type}` }, quiet());
    const results = await deliver(worker, {}, { type: 'a.b' }, { type: 'c.d' });
    expect(results.map((result) => result.result)).toEqual(['own', 'any c.d']);
  });
});

describe('a handler', () => {
  it('receives the job, its attempt, the environment and the delivery id', async () => {
    type Jobs = { 'mail.send': [{ to: string }] };
    const worker = defineHandlers<Jobs, { SENDER: string }>(
      {
        'mail.send': (job, ctx) => {
          const [mail] = job.args;
          return [mail.to, ctx.env.SENDER, ctx.attempt, ctx.deliveryId, ctx.job === job, ctx.signal.aborted];
        },
      },
      quiet(),
    );
    const job = { type: 'mail.send', args: [{ to: 'a@example.com' }], attempt: 3 };
    const result = await deliverOne(worker, { SENDER: 'me' }, job);
    expect(result.result).toEqual(['a@example.com', 'me', 3, 'del_0', true, false]);
  });

  it('may pass on what it was given, a copy of it, or a part of it', async () => {
    const worker = defineHandlers((_job, ctx) => {
      const copy = { ...ctx, more: 1 };
      const { signal } = ctx;
      return [copy.signal === ctx.signal, signal === ctx.signal, Object.keys(ctx).includes('signal')];
    }, quiet());
    expect((await deliverOne(worker, {}, { type: 'a.b' })).result).toEqual([true, true, true]);
  });

  it('hands work that outlives its answer to the execution context', async () => {
    const kept: Promise<unknown>[] = [];
    const worker = defineHandlers((_job, ctx) => ctx.waitUntil(Promise.resolve('later')), quiet());
    const executionCtx = { waitUntil: (promise: Promise<unknown>) => void kept.push(promise) };
    await worker.fetch(post({ job: { id: '1', type: 'a', args: [] } }), {}, executionCtx);
    expect(await Promise.all(kept)).toEqual(['later']);
  });

  it('may be defined apart from the map with types of its own', async () => {
    const double = handler<[number], number>((job) => job.args[0] * 2);
    const typed = (job: Job<[string]>): string => job.args[0].toUpperCase();
    const worker = defineHandlers({ 'math.double': { handler: double }, 'text.upper': typed }, quiet());
    const results = await deliver(worker, {}, { type: 'math.double', args: [21] }, { type: 'text.upper', args: ['x'] });
    expect(results.map((result) => result.result)).toEqual([42, 'X']);
  });
});

describe('the announcement', () => {
  it('names the types in order with the settings that were given', async () => {
    const worker = defineHandlers({
      'email.send': {
        handler: () => undefined,
        retry: { preset: 'sidekiq' },
        timeoutMs: 10_000,
        maxAttempts: 5,
        concurrency: 2,
      },
      'image.resize': async () => undefined,
      'own.delay': { handler: () => undefined, retry: () => 1000 },
      '*': () => undefined,
    });
    const response = await worker.fetch(new Request('http://handler/.well-known/tocsin'), {});
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({
      types: [
        { type: 'email.send', retry: { preset: 'sidekiq' }, timeout_ms: 10_000, max_attempts: 5, concurrency: 2 },
        { type: 'image.resize' },
        { type: 'own.delay' },
        { type: '*' },
      ],
      payload: 'batch',
      control: true,
      recalls: true,
      version: expect.stringMatching(/^[0-9a-f]{8}$/),
    });
  });

  it('says of which types the calls must stay open: those whose handlers may speak', async () => {
    const types = async (worker: { fetch: (request: Request, env: object) => Promise<Response> }) => {
      const response = await worker.fetch(new Request('http://handler/.well-known/tocsin'), {});
      const { types } = await response.json<{ types: { type: string; talks?: true }[] }>();
      return types.filter(({ talks }) => talks).map(({ type }) => type);
    };
    const handlers = {
      none: () => 1,
      job: (job: Job) => job.id,
      ctx: (_job: Job, ctx: HandlerContext) => ctx.attempt,
      any: { handler: (_job: Job, ..._rest: unknown[]) => 1 },
      later: { handler: async (_job: Job, _ctx: HandlerContext) => 1, timeoutMs: 5 },
    };
    expect(await types(defineHandlers(handlers))).toEqual(['ctx', 'later']);
    const use: WorkerOptions['use'] = [(_job, _ctx, next) => next()];
    expect(await types(defineHandlers(handlers, { use }))).toEqual(Object.keys(handlers));
    const onFailed: WorkerOptions['onFailed'] = (_job, ctx) => ctx.enqueue('a.b', []);
    expect(await types(defineHandlers({ none: handlers.none }, { onFailed }))).toEqual(['none']);
    const quietHook = { onFailed: () => undefined };
    expect(await types(defineHandlers({ none: handlers.none }, quietHook))).toEqual([]);
  });

  it('has another version when a type or a setting differs, and every answer names it', async () => {
    const handler = () => undefined;
    const versions = [{ a: handler }, { b: handler }, { a: { handler, timeoutMs: 5 } }, { a: handler }].map(
      async (handlers) => {
        const worker = defineHandlers(handlers);
        const announced = await worker.fetch(new Request('http://handler/.well-known/tocsin'), {});
        const { version } = (await announced.json()) as { version: string };
        const body = JSON.stringify({ deliveries: [] });
        const answer = await worker.fetch(new Request('http://handler/', { method: 'POST', body }), {});
        expect(answer.headers.get('Tocsin-Announcement')).toBe(version);
        return version;
      },
    );
    const [first, second, third, same] = await Promise.all(versions);
    expect(new Set([first, second, third]).size).toBe(3);
    expect(same).toBe(first);
  });

  it('of a single function is the catch-all', async () => {
    const response = await defineHandlers(() => 1).fetch(new Request('http://handler/.well-known/tocsin'), {});
    expect(await response.json()).toMatchObject({ types: [{ type: '*' }], payload: 'batch' });
  });
});

describe('any other request', () => {
  it.each([
    ['GET', '/', 405, 'POST'],
    ['PUT', '/', 405, 'POST'],
    ['DELETE', '/.well-known/tocsin', 405, 'GET'],
    ['GET', '/elsewhere', 404, null],
  ])('%s %s is answered %i as JSON', async (method, path, status, allow) => {
    const response = await echo.fetch(new Request(`http://handler${path}`, { method }), {});
    expect(response.status).toBe(status);
    expect(response.headers.get('Allow')).toBe(allow);
    expect(await response.json()).toMatchObject({ error: { retryable: false } });
  });

  it('goes to the fetch of the Worker, if it has one', async () => {
    const worker = defineHandlers(
      { 'test.echo': (job) => job.args },
      { ...quiet(), fetch: (request) => new Response(`${request.method} ${new URL(request.url).pathname}`) },
    );
    const texts = await Promise.all(
      [new Request('http://handler/'), post({}, {}, 'http://handler/orders')].map(async (request) =>
        (await worker.fetch(request, {})).text(),
      ),
    );
    expect(texts).toEqual(['GET /', 'POST /orders']);
    expect((await deliverOne(worker, {}, { type: 'test.echo', args: [1] })).result).toEqual([1]);
  });

  it('to / goes there too when deliveries have a path of their own', async () => {
    const options = { ...quiet(), path: '/jobs', fetch: () => new Response('mine') };
    const worker = defineHandlers(() => 'ran', options);
    expect(await (await worker.fetch(post({}), {})).text()).toBe('mine');
    const delivery = post({ job: { id: '1', type: 'a', args: [] } }, {}, 'http://handler/jobs');
    expect(await (await worker.fetch(delivery, {})).json()).toEqual({ status: 'completed', result: 'ran' });
  });
});
