import { describe, expect, it } from 'vitest';
import { type Duration, InvalidJobError, TocsinClient, UnauthorizedError } from '../../src/client';
import { errorAnswer, fakeQueue } from './fake-queue';

describe('an enqueue', () => {
  it('posts the job with its options under their wire names', async () => {
    const { client, requests } = fakeQueue();
    const job = await client.enqueue('email.send', [{ to: 'a@example.com' }], {
      queue: 'mail',
      priority: 5,
      delayUntil: new Date('2030-01-01T00:00:00Z'),
      expiresAt: Date.UTC(2030, 0, 2),
      retry: { preset: 'zzz' },
      maxAttempts: 7,
      timeoutMs: 1000,
      visibilityTimeoutMs: 2000,
      tags: ['x'],
      meta: { traceparent: '00-…' },
      pending: true,
      unique: { keys: ['args'], onConflict: 'ignore' },
      rateLimit: { key: 'smtp', concurrency: 2 },
      schema: 'urn:email',
      version: 2,
    });
    expect(job.id).toBe('id-0');
    expect(requests).toHaveLength(1);
    expect(requests[0]).toMatchObject({ method: 'POST', path: '/jobs' });
    expect(requests[0]?.body).toEqual({
      type: 'email.send',
      args: [{ to: 'a@example.com' }],
      meta: { traceparent: '00-…' },
      schema: 'urn:email',
      version: 2,
      options: {
        queue: 'mail',
        priority: 5,
        delay_until: '2030-01-01T00:00:00.000Z',
        expires_at: '2030-01-02T00:00:00.000Z',
        retry: { preset: 'zzz' },
        max_attempts: 7,
        timeout_ms: 1000,
        visibility_timeout_ms: 2000,
        tags: ['x'],
        pending: true,
        unique: { keys: ['args'], on_conflict: 'ignore' },
        rate_limit: { key: 'smtp', concurrency: 2 },
      },
    });
  });

  it('tells a job that existed already from a new one, alone and in a batch', async () => {
    const job = { id: 'id-7', type: 'a', state: 'active' };
    const { client } = fakeQueue(({ path }) =>
      path === '/jobs'
        ? Response.json({ job, deduplicated: true })
        : Response.json({ jobs: [{ ...job, deduplicated: true }, job], enqueued: 1, deduplicated: 1 }, { status: 201 }),
    );
    const options = { unique: { key: 'one', onConflict: 'ignore' } } as const;
    expect(await client.enqueue('a', [], options)).toEqual({ ...job, deduplicated: true });
    const both = await client.enqueueMany([
      { type: 'a', args: [], options },
      { type: 'a', args: [] },
    ]);
    expect(both).toEqual([{ ...job, deduplicated: true }, job]);
  });

  it.each<[Duration, string]>([
    [1500, '+PT1.500S'],
    ['250', '+PT0.250S'],
    ['5m', '5m'],
    ['PT10S', 'PT10S'],
  ])('with delay %j starts relative to the clock of the server', async (delay, expected) => {
    const { client, requests } = fakeQueue();
    await client.enqueue('a', [], { delay });
    expect(requests[0]?.body?.options).toEqual({ delay_until: expected });
  });

  it('is answered with what only the server knows, and has the rest from what was sent', async () => {
    const known = { id: 'x', state: 'scheduled', max_attempts: 4, created_at: 'then', scheduled_at: 'later' };
    const { client, requests } = fakeQueue(({ path }) =>
      Response.json(path === '/jobs' ? known : { jobs: [known, { ...known, id: 'y', state: 'available' }] }),
    );
    const options = { queue: 'q', priority: 3, delay: '1h', meta: { own_name: 1 }, tags: ['t'], timeoutMs: 5 } as const;
    const job = await client.enqueue('a.b', [{ own_name: new Date(0) }], options);
    expect(job).toEqual({
      ...{ specversion: '1.0', id: 'x', type: 'a.b', queue: 'q', state: 'scheduled', attempt: 0, maxAttempts: 4 },
      ...{ args: [{ own_name: '1970-01-01T00:00:00.000Z' }], meta: { own_name: 1 }, priority: 3, tags: ['t'] },
      ...{ timeoutMs: 5, createdAt: 'then', enqueuedAt: 'then', scheduledAt: 'later' },
    });
    const two = await Promise.all([client.enqueue('a', []), client.enqueue('b', [2])]);
    expect(two).toMatchObject([
      { id: 'x', type: 'a' },
      { id: 'y', type: 'b', args: [2], queue: 'default' },
    ]);
    expect(requests.map(({ headers }) => headers.Prefer)).toEqual(['return=minimal', 'return=minimal']);
  });

  it('is answered in full where that is asked for', async () => {
    const { client, requests } = fakeQueue(undefined, { answers: 'full' });
    await client.enqueue('a', []);
    await client.with({ answers: 'minimal' }).enqueueMany([{ type: 'a', args: [] }]);
    expect(requests.map(({ headers }) => headers.Prefer)).toEqual([undefined, undefined]);
    expect(() => fakeQueue(undefined, { answers: 'brief' as never })).toThrow(TypeError);
  });

  it('takes the arguments as they are when it is called', async () => {
    const { client, requests } = fakeQueue();
    const email = { to: 'before' };
    const enqueued = client.enqueue('a', [email]);
    email.to = 'after';
    await enqueued;
    expect(requests[0]?.body?.args).toEqual([{ to: 'before' }]);
  });

  it.each<[string, unknown[], Record<string, unknown>, string]>([
    ['arguments that are not JSON', [1n], {}, 'args[0]'],
    ['an invalid date', [], { delayUntil: new Date(Number.NaN) }, 'options.delayUntil'],
    ['a negative delay', [], { delay: -1 }, 'options.delay'],
    ['a delay beside a time', [], { delay: 1, delayUntil: new Date(0) }, 'options.delay'],
  ])('with %s is refused before anything is sent', async (_, args, options, field) => {
    const { client, requests } = fakeQueue();
    const [bad, good] = await Promise.allSettled([client.enqueue('a', args, options), client.enqueue('b', [])]);
    expect(bad).toMatchObject({ status: 'rejected', reason: { field } });
    expect(bad.status === 'rejected' && bad.reason).toBeInstanceOf(InvalidJobError);
    expect(good.status).toBe('fulfilled');
    expect(requests).toHaveLength(1);
  });
});

describe('the connection', () => {
  it('sends the key as a bearer token', async () => {
    const { client, requests } = fakeQueue(undefined, { key: 'secret' });
    await client.get('x');
    expect(requests[0]?.headers.Authorization).toBe('Bearer secret');
  });

  it('by url keeps the path in front and uses the fetch it was given', async () => {
    const urls: string[] = [];
    const fetch = async (input: string) => {
      urls.push(input);
      return Response.json({ job: { id: '1' } });
    };
    await new TocsinClient({ url: 'https://example.com/queue/', fetch }).get('a/b');
    expect(urls).toEqual(['https://example.com/queue/ojs/v1/jobs/a%2Fb']);
  });

  it('calls a binding as its own method', async () => {
    class Binding {
      #answer = Response.json({ job: { id: '1' } });
      async fetch() {
        return this.#answer;
      }
    }
    expect((await new TocsinClient({ service: new Binding() }).get('1')).id).toBe('1');
  });

  it('without binding or valid url is refused at once', () => {
    expect(() => new TocsinClient({ url: 'nowhere' })).toThrow(TypeError);
    expect(() => new TocsinClient({ url: 'https://ada:hunter2@example.com' })).toThrow(/^(?!.*hunter2).*password/);
    expect(() => new TocsinClient({ url: 'https://example.com', maxBatch: 0 })).toThrow(TypeError);
  });
});

describe('enqueueMany', () => {
  it('sends one batch and answers in the order given', async () => {
    const { client, requests } = fakeQueue();
    const jobs = await client.enqueueMany([
      { type: 'a', args: [1], options: { queue: 'x' } },
      { type: 'b', args: [2] },
    ]);
    expect(jobs.map((job) => job.type)).toEqual(['a', 'b']);
    expect(requests.map((request) => request.path)).toEqual(['/jobs/batch']);
  });

  it('of nothing sends nothing', async () => {
    const { client, requests } = fakeQueue();
    expect(await client.enqueueMany([])).toEqual([]);
    expect(requests).toEqual([]);
  });

  it('is all or nothing: the error names the entry and nothing is sent again', async () => {
    const { client, requests } = fakeQueue(() =>
      errorAnswer(400, 'invalid_request', { index: 1, field: 'jobs[1].type' }),
    );
    const jobs = [
      { type: 'a', args: [] },
      { type: 'B', args: [] },
    ];
    await expect(client.enqueueMany(jobs)).rejects.toMatchObject({ details: { index: 1, field: 'jobs[1].type' } });
    expect(requests).toHaveLength(1);
  });
});

describe('a refusal', () => {
  it('carries what the server said', async () => {
    const { client } = fakeQueue(() => errorAnswer(401, 'unauthorized', { a: 1 }));
    const error = await client.get('x').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UnauthorizedError);
    expect(error).toMatchObject({
      status: 401,
      code: 'unauthorized',
      requestId: 'req_1',
      retryable: false,
      details: { a: 1 },
    });
  });

  it.each([
    [400, 'invalid_request', 'InvalidJobError'],
    [413, 'payload_too_large', 'InvalidJobError'],
    [422, 'unsupported', 'InvalidJobError'],
    [403, 'forbidden', 'UnauthorizedError'],
    [404, 'not_found', 'NotFoundError'],
    [409, 'conflict', 'ConflictError'],
    [409, 'duplicate', 'DuplicateJobError'],
    [429, 'rate_limited', 'RateLimitedError'],
    [429, 'QUEUE_FULL', 'QueueFullError'],
    [500, 'backend_error', 'UnavailableError'],
    [410, 'result_pruned', 'TocsinError'],
  ])('%i %s is a %s', async (status, code, name) => {
    const { client } = fakeQueue(() => errorAnswer(status, code), { retry: false });
    await expect(client.enqueue('a', [])).rejects.toMatchObject({ name, status, code });
  });

  it('that is not JSON still has its status', async () => {
    const { client } = fakeQueue(() => new Response('<html>', { status: 502 }), { retry: false });
    await expect(client.get('x')).rejects.toMatchObject({
      name: 'UnavailableError',
      code: 'http_502',
      retryable: true,
    });
  });
});
