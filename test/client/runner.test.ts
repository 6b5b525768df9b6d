/** How a worker that runs by itself behaves when things go wrong, against a queue that answers from a script. */

import { describe, expect, it, vi } from 'vitest';
import { type RunOptions, TocsinClient, UnauthorizedError, type WorkerOptions } from '../../src/client';
import { type HandlerContext, type Job, retryIn } from '../../src/handler';
import { errorAnswer, fakeQueue, type SentRequest } from './fake-queue';
import { type Answers, job, jobsInTurn, never, nothing, startWorker, stopOfEach } from './scripted-worker';

const stop = stopOfEach();

const start = (answers: Answers, handlers?: object, options?: Partial<RunOptions>, about?: Partial<WorkerOptions>) =>
  startWorker(stop.signal, answers, handlers, options, about);

/** A handler that notes its signal and runs on until that aborts. */
function untilAborted() {
  const reasons: string[] = [];
  const handler = (_job: unknown, { signal }: { signal: AbortSignal }) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        reasons.push(signal.reason.message);
        reject(signal.reason);
      });
    });
  return { reasons, handlers: { 'a.b': handler } };
}

describe('a worker that runs fetches', () => {
  it('asks for the types of its handlers, under leases of a minute that heartbeats extend', async () => {
    const { sent } = start({ fetch: jobsInTurn([job('1')]) }, { 'a.b': never, 'c.d': { handler: never } });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sent('fetch')[0]).toMatchObject({ types: ['a.b', 'c.d'], count: 10, default_visibility_timeout_ms: 60_000 });
    expect(sent('heartbeat')[1]).toMatchObject({ active_jobs: ['1'] });
    // They keep the length that each job has.
    for (const body of [sent('fetch')[0], sent('heartbeat')[1]])
      expect(body).not.toHaveProperty('visibility_timeout_ms');
  });

  it('sends heartbeats at random moments', async () => {
    const beats: number[] = [];
    start({ heartbeat: () => void beats.push(Date.now()) });
    await vi.advanceTimersByTimeAsync(60_000);
    const gaps = beats.slice(1).map((at, index) => at - (beats[index] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(3750);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(5000);
    expect(new Set(gaps).size).toBeGreaterThan(3);
  });

  it('under leases of the length that its user has chosen, whatever the jobs say', async () => {
    const about = { visibilityTimeoutMs: 8_000 };
    const { sent } = start({ fetch: jobsInTurn([job('1', { lease_ms: 900 })]) }, { 'a.b': never }, {}, about);
    await vi.advanceTimersByTimeAsync(7_000);
    expect(sent('fetch')[0]).toMatchObject({ visibility_timeout_ms: 8_000 });
    expect(sent('fetch')[0]).not.toHaveProperty('default_visibility_timeout_ms');
    expect(sent('heartbeat').length).toBeLessThan(7);
    expect(sent('heartbeat')[1]).toMatchObject({ active_jobs: ['1'], visibility_timeout_ms: 8_000 });
  });

  it('sends heartbeats as often as its shortest lease needs', async () => {
    let end: (result?: unknown) => void = () => undefined;
    const fetch = jobsInTurn([job('1'), job('2', { lease_ms: 2_000, type: 'c.d' })]);
    const handlers = { 'a.b': never, 'c.d': () => new Promise((resolve) => (end = resolve)) };
    const beats: number[] = [];
    start({ fetch, heartbeat: () => void beats.push(Date.now()) }, handlers, { heartbeatMs: 20_000 });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(beats.length).toBeGreaterThan(20);
    end();
    await vi.advanceTimersByTimeAsync(2_000);
    const before = beats.length;
    await vi.advanceTimersByTimeAsync(12_000);
    expect(beats.length).toBe(before);
  });

  it('jobs of any type when one handler takes the rest', async () => {
    const { sent } = start({}, { 'a.b': never, '*': never });
    await vi.advanceTimersByTimeAsync(0);
    expect(sent('fetch')[0]).not.toHaveProperty('types');
  });

  it('announces the retry settings of its handlers, unless they are too large', async () => {
    const handler = { handler: never, maxAttempts: 1 };
    const { sent, errors } = start({}, { 'a.b': handler, 'c.d': never });
    await vi.advanceTimersByTimeAsync(0);
    expect(sent('fetch')[0]).toMatchObject({ handlers: [{ type: 'a.b', max_attempts: 1 }] });
    const open = start({}, { 'a.b': handler, '*': never });
    await vi.advanceTimersByTimeAsync(0);
    expect(open.sent('fetch')[0]).toMatchObject({ handlers: [{ type: 'a.b', max_attempts: 1 }, { type: '*' }] });
    expect(errors).toEqual([]);
    const many = Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`t.n${n}`, handler]));
    const full = start({}, many);
    await vi.advanceTimersByTimeAsync(0);
    expect(full.sent('fetch')[0]).not.toHaveProperty('handlers');
    expect(full.errors).toMatchObject([{ message: expect.stringMatching(/retry settings/) }]);
  });

  it('less and less often when an empty answer comes at once', async () => {
    const { sent, errors } = start({ fetch: () => ({ jobs: [] }) });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sent('fetch').length).toBeGreaterThan(10);
    expect(sent('fetch').length).toBeLessThan(40);
    expect(errors).toEqual([]);
  });

  it('again at once after a wait that brought nothing', async () => {
    const { sent } = start({});
    await vi.advanceTimersByTimeAsync(50_000);
    expect(sent('fetch').length).toBe(11);
  });

  it('waits for the time that the server names', async () => {
    const { sent, errors } = start({ fetch: () => errorAnswer(429, 'rate_limited', {}, { 'Retry-After': '30' }) });
    await vi.advanceTimersByTimeAsync(59_000);
    expect(sent('fetch').length).toBe(2);
    expect(errors).toMatchObject([{ code: 'rate_limited' }, { code: 'rate_limited' }]);
  });
});

describe('a job of a type that has no handler', () => {
  it('goes back as if it had not been fetched, and is not fetched again and again', async () => {
    const { sent, errors } = start({ fetch: () => ({ jobs: [job('1', { type: 'x.y' })] }) });
    await vi.advanceTimersByTimeAsync(30_000);
    expect(sent('nack')[0]).toEqual({ job_id: '1', attempt: 1, worker_id: 'w', requeue: true, attempt_used: false });
    expect(sent('fetch').length).toBeLessThan(25);
    expect(errors).toMatchObject([{ message: expect.stringContaining('"x.y"') }]);
  });

  it('becomes a dead letter where the worker is configured so', async () => {
    const { sent, errors } = start({ fetch: jobsInTurn([job('1', { type: 'x.y' })]) }, undefined, {
      unhandled: 'deadLetter',
    });
    await vi.advanceTimersByTimeAsync(100);
    expect(sent('fetch')[0]).not.toHaveProperty('types');
    const error = { code: 'handler_not_found', type: 'tocsin.no_handler', kill: true };
    expect(sent('nack')).toMatchObject([{ job_id: '1', error }]);
    expect(errors).toEqual([]);
  });

  it('does not keep the worker from those that have one', async () => {
    const batches = jobsInTurn([job('1', { type: 'x.y' }), job('2')]);
    const { sent } = start({ fetch: batches }, { 'a.b': () => 'done' });
    await vi.advanceTimersByTimeAsync(0);
    expect(sent('ack')).toMatchObject([{ job_id: '2', result: 'done' }]);
    expect(sent('nack')).toMatchObject([{ job_id: '1', attempt_used: false }]);
  });
});

describe('a key that is refused', () => {
  it.each([401, 403])('ends the run at the first heartbeat (%i)', async (status) => {
    const { running, said, errors } = start({ heartbeat: () => errorAnswer(status, 'unauthorized') });
    await expect(running).rejects.toThrow(UnauthorizedError);
    expect(said.map(([name]) => name)).toEqual(['heartbeat']);
    expect(errors).toEqual([]);
  });

  it('ends the run at the first fetch', async () => {
    const { running } = start({ fetch: () => errorAnswer(403, 'forbidden') });
    await expect(running).rejects.toMatchObject({ code: 'forbidden' });
  });

  it('later is reported, and the worker continues more slowly', async () => {
    let fetches = 0;
    const { sent, errors, ended } = start({
      fetch: (request) => (++fetches === 1 ? nothing(request) : errorAnswer(401, 'unauthorized')),
    });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(ended()).toBe(false);
    expect(sent('fetch').length).toBeLessThan(40);
    expect(errors[0]).toMatchObject({ code: 'unauthorized' });
  });

  it('is not a reason to end when the server could not be reached', async () => {
    const { errors, ended } = start({ heartbeat: () => errorAnswer(503, 'unavailable'), fetch: () => never() });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(ended()).toBe(false);
    expect(errors.length).toBeGreaterThan(2);
  });
});

describe("the handler's signal aborts, and nothing is reported,", () => {
  it.each([
    ['cancelled', { jobs_cancelled: ['1'] }, 'The job was cancelled.'],
    ['lost', { jobs_lost: ['1'] }, 'The lease of the job was lost; another worker may run it.'],
  ])('when a heartbeat says that the job is %s', async (_, answer, reason) => {
    const { handlers, reasons } = untilAborted();
    const heartbeat = ({ body }: SentRequest) =>
      String(body?.active_jobs).includes('1') ? { jobs_extended: ['2'], ...answer } : {};
    const { sent } = start({ fetch: jobsInTurn([job('1'), job('2')]), heartbeat }, handlers);
    await vi.advanceTimersByTimeAsync(15_000);
    expect(reasons).toEqual([reason]);
    expect(sent('nack')).toEqual([]);
    expect(sent('heartbeat').at(-1)).toMatchObject({ active_jobs: ['2'] });
  });

  it('when a progress report is answered so', async () => {
    const { handlers, reasons } = untilAborted();
    const progress = () => ({ job_id: '1', cancelled: true });
    const { worker, sent } = start({ fetch: jobsInTurn([job('1')]), progress }, handlers);
    await vi.advanceTimersByTimeAsync(0);
    expect(await worker.progress({ id: '1', attempt: 1 }, { progress: 0.5 })).toMatchObject({ cancelled: true });
    await vi.advanceTimersByTimeAsync(0);
    expect(reasons).toEqual(['The job was cancelled.']);
    expect(sent('nack')).toEqual([]);
  });

  it('when no heartbeat was answered for as long as the lease', async () => {
    const { handlers, reasons } = untilAborted();
    let beats = 0;
    const heartbeat = () => (++beats === 1 ? {} : errorAnswer(500, 'backend_error'));
    const { sent } = start({ fetch: jobsInTurn([job('1')]), heartbeat }, handlers);
    await vi.advanceTimersByTimeAsync(59_000);
    expect(reasons).toEqual([]);
    await vi.advanceTimersByTimeAsync(7_000);
    expect(reasons).toEqual(['The lease of the job was lost; another worker may run it.']);
    expect(sent('nack')).toEqual([]);
  });

  it('when its own lease ends and heartbeats fail, not before', async () => {
    const { handlers, reasons } = untilAborted();
    const heartbeat = () => errorAnswer(500, 'backend_error');
    start({ fetch: jobsInTurn([job('1', { lease_ms: 600_000 })]), heartbeat }, handlers);
    await vi.advanceTimersByTimeAsync(595_000);
    expect(reasons).toEqual([]);
    await vi.advanceTimersByTimeAsync(12_000);
    expect(reasons).toEqual(['The lease of the job was lost; another worker may run it.']);
  });

  it('without touching the attempt that was fetched since', async () => {
    const { handlers, reasons } = untilAborted();
    let answerBeat: (answer: object) => void = () => undefined;
    let beats = 0;
    const heartbeat = () => (++beats === 2 ? new Promise((resolve) => (answerBeat = resolve)) : undefined);
    const batches = jobsInTurn([], [job('1', { attempt: 2 })]);
    start({ fetch: batches, heartbeat }, handlers, { heartbeatMs: 100 });
    await vi.advanceTimersByTimeAsync(100);
    await vi.advanceTimersByTimeAsync(5000);
    answerBeat({ jobs_lost: ['1'] });
    await vi.advanceTimersByTimeAsync(0);
    expect(reasons).toEqual([]);
  });
});

describe('a blocked event loop', () => {
  it('is reported with the running jobs, noted in their logs, and followed by a heartbeat at once', async () => {
    const { sent, errors } = start(
      { fetch: jobsInTurn([job('1', { type: 'c.d', lease_ms: 600_000 })]) },
      { 'c.d': never },
    );
    await vi.advanceTimersByTimeAsync(700);
    const before = sent('heartbeat').length;
    const now = performance.now.bind(performance);
    const spy = vi.spyOn(performance, 'now').mockImplementation(() => now() + 75_000);
    await vi.advanceTimersByTimeAsync(500);
    spy.mockRestore();
    expect(errors).toMatchObject([{ message: expect.stringMatching(/was blocked for 75\.0 s .*: c\.d 1\. No heart/) }]);
    expect(sent('log')).toMatchObject([{ lines: [{ level: 'warn', message: expect.stringMatching(/75\.0 s/) }] }]);
    expect(sent('heartbeat').length).toBe(before + 1);
  });

  it('is reported with the advice that a lease has run out', async () => {
    const { errors } = start({ fetch: jobsInTurn([job('1')]) }, { 'a.b': never });
    await vi.advanceTimersByTimeAsync(700);
    const now = performance.now.bind(performance);
    const spy = vi.spyOn(performance, 'now').mockImplementation(() => now() + 75_000);
    vi.setSystemTime(Date.now() + 75_000);
    await vi.advanceTimersByTimeAsync(500);
    spy.mockRestore();
    expect(errors).toMatchObject([{ message: expect.stringMatching(/longer visibilityTimeoutMs/) }]);
  });
});

describe('a report', () => {
  it('is repeated until it is answered', async () => {
    let tries = 0;
    const ack = () => (++tries < 4 ? errorAnswer(503, 'unavailable') : {});
    const { sent, errors } = start({ fetch: jobsInTurn([job('1')]), ack }, { 'a.b': () => 1 });
    await vi.advanceTimersByTimeAsync(20_000);
    expect(sent('ack').length).toBe(4);
    expect(errors.length).toBe(3);
  });

  it('that is too late is an error once; for a cancelled job it is none', async () => {
    const ack = ({ body }: SentRequest) =>
      errorAnswer(409, 'conflict', { current_state: body?.job_id === '1' ? 'cancelled' : 'available' });
    const { sent, errors } = start({ fetch: jobsInTurn([job('1'), job('2')]), ack }, { 'a.b': () => 1 });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(sent('ack').length).toBe(2);
    expect(errors).toMatchObject([{ details: { currentState: 'available' } }]);
  });

  it('has the error in the words of a handler Worker', async () => {
    const thrown = Object.assign(retryIn('30s', 'busy'), { details: { load: 9 } });
    const handlers = { 'a.b': () => Promise.reject(thrown) };
    const { sent } = start({ fetch: jobsInTurn([job('1')]) }, handlers);
    await vi.advanceTimersByTimeAsync(0);
    expect(sent('nack')[0]?.error).toEqual({
      code: 'RETRY',
      type: 'RetryLaterError',
      message: 'busy',
      classes: ['RetryLaterError', 'OutcomeError', 'Error'],
      details: { load: 9 },
      retry_in: 30_000,
    });
  });
});

describe('reports', () => {
  const echo = { 'a.b': (own: Job) => own.id };
  const actions = (body: SentRequest['body']) =>
    (body?.reports as { job_id: string }[] | undefined)?.map(({ job_id }) => job_id);

  it('of what ends in one turn share a request, which names the worker once', async () => {
    const { requests, errors } = start({ fetch: jobsInTurn([job('1'), job('2'), job('3')]) }, echo);
    await vi.advanceTimersByTimeAsync(10);
    expect(requests('report')).toEqual([
      {
        worker_id: 'w',
        reports: ['1', '2', '3'].map((id) => ({ action: 'ack', job_id: id, attempt: 1, result: id })),
      },
    ]);
    expect(errors).toEqual([]);
  });

  it('travel with the fetch for which they make room, and that one does not wait', async () => {
    const batches = jobsInTurn([job('1'), job('2')], [job('3'), job('4')]);
    const { requests } = start({ fetch: batches }, echo, { concurrency: 2 });
    await vi.advanceTimersByTimeAsync(10);
    const fetches = requests('fetch');
    expect(fetches.map(actions)).toEqual([undefined, ['1', '2'], ['3', '4'], undefined]);
    expect(fetches.map((body) => body?.count)).toEqual([2, 2, 2, 2]);
    expect(requests('report')).toEqual([]);
  });

  it('that end while others are on their way wait a few milliseconds for each other, unless they are many', async () => {
    const ends = new Map<string, (value: unknown) => void>();
    const handlers = { 'a.b': ({ id }: Job) => new Promise((resolve) => ends.set(id, resolve)) };
    const ids = Array.from({ length: 20 }, (_, n) => String(n));
    const answers = { fetch: jobsInTurn(ids.map((id) => job(id))), ack: never };
    const { requests } = start(answers, handlers, { concurrency: 30 });
    await vi.advanceTimersByTimeAsync(10);
    const end = async (from: number, to: number, ms: number) => {
      for (const id of ids.slice(from, to)) ends.get(id)?.(id);
      await vi.advanceTimersByTimeAsync(ms);
    };
    await end(0, 1, 1);
    await end(1, 2, 1);
    await end(2, 3, 1);
    expect(requests('report').map(actions)).toEqual([['0']]);
    await end(3, 4, 5);
    expect(requests('report').map(actions)).toEqual([['0'], ['1', '2', '3']]);
    await end(4, 20, 1);
    expect(requests('report').map(actions)).toEqual([['0'], ['1', '2', '3'], ids.slice(4)]);
  });

  it('go by themselves when the fetch that took them along has failed', async () => {
    let fetches = 0;
    const batches = jobsInTurn([job('1')]);
    const fetch = (request: SentRequest) => (++fetches === 2 ? errorAnswer(500, 'backend_error') : batches(request));
    const { requests, errors } = start({ fetch }, echo, { concurrency: 1 });
    await vi.advanceTimersByTimeAsync(10);
    expect(requests('report').map(actions)).toEqual([['1']]);
    expect(errors).toMatchObject([{ code: 'backend_error' }]);
  });

  it('of a quiet worker do not wait for a fetch', async () => {
    let end: (value: unknown) => void = () => undefined;
    let state = 'running';
    const handlers = { 'a.b': () => new Promise((resolve) => (end = resolve)) };
    const heartbeat = () => ({ state });
    const { requests } = start({ fetch: jobsInTurn([job('1')]), heartbeat }, handlers, { concurrency: 1 });
    await vi.advanceTimersByTimeAsync(10);
    state = 'quiet';
    await vi.advanceTimersByTimeAsync(6_000);
    end(7);
    await vi.advanceTimersByTimeAsync(10);
    expect(requests('report').map(actions)).toEqual([['1']]);
  });

  it.each([1, 10])('go one by one to a server of an earlier release (concurrency %i)', async (concurrency) => {
    const route = { resource_type: 'route', resource_id: '/workers/report' };
    const early = { report: () => errorAnswer(404, 'not_found', route), fetch: jobsInTurn([job('1')], [job('2')]) };
    const { sent, errors } = start(early, echo, { concurrency });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(sent('ack')).toMatchObject([
      { job_id: '1', result: '1' },
      { job_id: '2', result: '2' },
    ]);
    expect(errors).toEqual([]);
  });
});

describe('a worker that is stopped', () => {
  it('says that it drains, finishes what it began, and says goodbye', async () => {
    let finish: (value: unknown) => void = () => undefined;
    const handlers = { 'a.b': () => new Promise((resolve) => (finish = resolve)) };
    const { said, ended, running } = start({ fetch: jobsInTurn([job('1')]) }, handlers, { concurrency: 1 });
    await vi.advanceTimersByTimeAsync(0);
    stop.abort();
    await vi.advanceTimersByTimeAsync(29_000);
    expect(ended()).toBe(false);
    const drains = said.filter(([name]) => name === 'heartbeat').slice(1);
    expect(drains.length).toBeGreaterThan(4);
    for (const [, body] of drains) expect(body).toMatchObject({ state: 'drain', active_jobs: ['1'] });
    finish('done');
    await vi.advanceTimersByTimeAsync(0);
    await running;
    expect(said.slice(-2)).toMatchObject([
      ['ack', { job_id: '1', result: 'done' }],
      ['heartbeat', { state: 'stopped', active_jobs: [] }],
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('gives back what takes too long, and ends', async () => {
    const { handlers, reasons } = untilAborted();
    const { said, running, sent } = start({ fetch: jobsInTurn([job('1')]) }, handlers, { concurrency: 1 });
    await vi.advanceTimersByTimeAsync(0);
    stop.abort();
    await vi.advanceTimersByTimeAsync(30_000);
    await running;
    expect(reasons).toEqual(['The worker was stopped.']);
    expect(sent('nack')).toMatchObject([{ job_id: '1', attempt: 1, requeue: true }]);
    expect(sent('nack')[0]).not.toHaveProperty('attempt_used');
    expect(said.at(-1)).toMatchObject(['heartbeat', { state: 'stopped' }]);
  });

  it('ends although its handlers and the server hang', async () => {
    let beats = 0;
    const answers = { fetch: jobsInTurn([job('1')]), nack: never, heartbeat: () => (++beats === 1 ? {} : never()) };
    const { running, ended } = start(answers, { 'a.b': never }, { shutdownTimeoutMs: 1000 });
    await vi.advanceTimersByTimeAsync(0);
    stop.abort();
    await vi.advanceTimersByTimeAsync(8500);
    expect(ended()).toBe(true);
    await running;
  });

  it('before its first heartbeat was answered, ends too', async () => {
    const { ended } = start({ heartbeat: never });
    await vi.advanceTimersByTimeAsync(10);
    stop.abort();
    await vi.advanceTimersByTimeAsync(5000);
    expect(ended()).toBe(true);
  });

  it('tells its handlers at once, long before it stops them', async () => {
    const told: string[] = [];
    const handler = (_job: unknown, { draining, signal }: HandlerContext) =>
      new Promise((resolve) => {
        draining.addEventListener('abort', () => {
          told.push(draining.reason.message, String(signal.aborted));
          resolve('saved');
        });
      });
    const { sent, running } = start({ fetch: jobsInTurn([job('1')]) }, { 'a.b': handler });
    await vi.advanceTimersByTimeAsync(10);
    expect(told).toEqual([]);
    stop.abort();
    await vi.advanceTimersByTimeAsync(5000);
    await running;
    expect(told).toEqual([expect.stringMatching(/takes no more jobs/), 'false']);
    expect(sent('ack')).toMatchObject([{ job_id: '1', result: 'saved' }]);
  });

  it('ends a fetch that waits, and gives back untouched what it brings nevertheless', async () => {
    let answer: (jobs: object) => void = () => undefined;
    let called = 0;
    const handlers = { 'a.b': () => called++ };
    const { sent, running } = start({ fetch: () => new Promise((resolve) => (answer = resolve)) }, handlers);
    await vi.advanceTimersByTimeAsync(10);
    stop.abort();
    await vi.advanceTimersByTimeAsync(10);
    answer({ jobs: [job('1')] });
    await vi.advanceTimersByTimeAsync(10);
    await running;
    expect(called).toBe(0);
    expect(sent('nack')).toMatchObject([{ job_id: '1', requeue: true, attempt_used: false }]);
  });

  it('aborts a fetch that is not answered', async () => {
    let cut = false;
    const fetch = ({ signal }: SentRequest) =>
      new Promise((_, reject) => {
        signal?.addEventListener('abort', () => {
          cut = true;
          reject(new Error('cut off'));
        });
      });
    const { ended, errors } = start({ fetch });
    await vi.advanceTimersByTimeAsync(10);
    stop.abort();
    await vi.advanceTimersByTimeAsync(2500);
    expect([cut, ended(), errors]).toEqual([true, true, []]);
  });

  it('waits for what its handlers left running', async () => {
    let finish: () => void = () => undefined;
    const later = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const handlers = {
      'a.b': (_job: unknown, ctx: { waitUntil(promise: Promise<unknown>): void }) => {
        ctx.waitUntil(later);
        ctx.waitUntil(Promise.reject(new Error('left behind')));
      },
    };
    const { ended, errors } = start({ fetch: jobsInTurn([job('1')]) }, handlers);
    await vi.advanceTimersByTimeAsync(0);
    stop.abort();
    await vi.advanceTimersByTimeAsync(10_000);
    expect([ended(), errors]).toMatchObject([false, [{ message: 'left behind' }]]);
    finish();
    await vi.advanceTimersByTimeAsync(0);
    expect(ended()).toBe(true);
  });

  it('through the signal of its client rejects, and sends nothing more', async () => {
    const script = (request: SentRequest) =>
      request.path.endsWith('fetch') ? nothing(request) : Response.json({ state: 'running' });
    const { client, requests } = fakeQueue(script, { signal: stop.signal });
    const running = client
      .worker('w', { queues: ['q'] })
      .run({ 'a.b': never }, { signal: new AbortController().signal });
    const rejected = expect(running).rejects.toMatchObject({ code: 'aborted' });
    await vi.advanceTimersByTimeAsync(6000);
    stop.abort();
    await rejected;
    const before = requests.length;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(requests.length).toBe(before);
  });
});

describe('options', () => {
  const run = (handlers: object, options: Partial<RunOptions>, visibilityTimeoutMs?: number) => {
    const client = new TocsinClient({ url: 'http://localhost' });
    const about = { queues: ['q'], ...(visibilityTimeoutMs && { visibilityTimeoutMs }) };
    return client.worker('w', about).run(handlers as never, { signal: stop.signal, ...options });
  };

  it.each<[string, object, Partial<RunOptions>, RegExp]>([
    ['no handlers', {}, {}, /there are none/],
    ['a handler that is none', { 'a.b': 1 }, {}, /"a.b"/],
    ['a concurrency of 0', { 'a.b': never }, { concurrency: 0 }, /concurrency/],
    ['a heartbeat in a lease', { 'a.b': never }, { heartbeatMs: 40_000 }, /heartbeatMs/],
    ['another fate of unknown types', { 'a.b': never }, { unhandled: 'drop' as never }, /unhandled/],
    ['no signal', { 'a.b': never }, { signal: undefined as never }, /signal must be an AbortSignal/],
    ['a negative end', { 'a.b': never }, { shutdownTimeoutMs: -1 }, /shutdownTimeoutMs/],
  ])('%s are refused before anything is sent', async (_, handlers, options, message) => {
    const refused = run(handlers, options);
    await expect(refused).rejects.toThrow(TypeError);
    await expect(refused).rejects.toThrow(message);
  });
});
