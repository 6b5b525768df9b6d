/** A whole worker in one call. */
import { describe, expect, it, vi } from 'vitest';
import { runWorker } from '../../src/client';
import { defineHandlers, type HandlerContext, type Job } from '../../src/handler';
import type { SentRequest } from './fake-queue';
import { job, never, nothing, stopOfEach } from './scripted-worker';

const stop = stopOfEach();

describe('runWorker', () => {
  const script = (request: SentRequest) =>
    request.path.endsWith('fetch')
      ? (jobsOnce(request) ?? nothing(request))
      : Response.json({ state: 'running', job: { id: '1' }, items: [{ index: 0, job_id: '1', status: 'done' }] });
  let left: unknown[] = [];
  const jobsOnce = (_: SentRequest) => (left.length > 0 ? Response.json({ jobs: left.splice(0) }) : undefined);
  const service = (requests: SentRequest[]) => ({
    fetch: async (input: string, init: { method?: string; body?: string; signal?: AbortSignal } = {}) => {
      const path = new URL(input).pathname.replace('/ojs/v1', '');
      const request = { path, body: init.body && JSON.parse(init.body), signal: init.signal } as SentRequest;
      requests.push(request);
      return await script(request);
    },
  });

  it('runs what defineHandlers made until it is asked to stop', async () => {
    left = [job('1')];
    const requests: SentRequest[] = [];
    const handlers = defineHandlers({ 'a.b': (_job, ctx: HandlerContext<{ NAME: string }>) => ctx.env.NAME });
    const how = { queues: ['q'], id: 'w', env: { NAME: 'ada' }, signal: stop.signal, labels: { zone: 'x' } };
    const running = runWorker(handlers, { service: service(requests), ...how });
    await vi.advanceTimersByTimeAsync(10);
    stop.abort();
    await vi.advanceTimersByTimeAsync(10_000);
    await running;
    const bodies = (end: string) => requests.filter(({ path }) => path.endsWith(end)).map(({ body }) => body);
    expect(bodies('fetch')[0]).toMatchObject({ queues: ['q'], worker_id: 'w', types: ['a.b'] });
    expect(bodies('heartbeat')[0]).toMatchObject({ labels: { zone: 'x' } });
    expect(bodies('report')).toMatchObject([{ reports: [{ action: 'ack', job_id: '1', result: 'ada' }] }]);
    expect(bodies('heartbeat').at(-1)).toMatchObject({ state: 'stopped' });
  });

  it('ends at the signals of its process when it is given none', async () => {
    const listeners = new Map<string, () => void>();
    const host = {
      pid: 7,
      env: { NAME: 'grace' },
      once: (name: string, listener: () => void) => listeners.set(name, listener),
      off: (name: string) => listeners.delete(name),
    };
    vi.stubGlobal('process', host);
    left = [job('1')];
    const requests: SentRequest[] = [];
    const handlers = { 'a.b': (_job: Job, ctx: HandlerContext<{ NAME: string }>) => ctx.env.NAME };
    const running = runWorker(handlers, { service: service(requests), queues: ['q'] });
    await vi.advanceTimersByTimeAsync(10);
    expect([...listeners.keys()]).toEqual(['SIGINT', 'SIGTERM']);
    listeners.get('SIGTERM')?.();
    // A second signal finds the process as it was, and ends it.
    expect(listeners.size).toBe(0);
    await vi.advanceTimersByTimeAsync(10_000);
    await running;
    vi.unstubAllGlobals();
    const report = requests.find(({ path }) => path.endsWith('report'));
    expect(report?.body).toMatchObject({ reports: [{ result: 'grace' }] });
    expect(requests[0]?.body).toMatchObject({ pid: 7, worker_id: expect.stringMatching(/^worker-7-\w+$/) });
  });

  it('asks of each queue for no more jobs than it runs of it at once', async () => {
    left = [];
    const requests: SentRequest[] = [];
    const queues = { mail: 5, video: { concurrency: 1 } };
    const running = runWorker({ 'a.b': never }, { service: service(requests), queues, signal: stop.signal });
    await vi.advanceTimersByTimeAsync(10);
    stop.abort();
    await vi.advanceTimersByTimeAsync(10_000);
    await running;
    const fetch = requests.find(({ path }) => path.endsWith('fetch'));
    expect(fetch?.body).toMatchObject({ queues: ['mail', 'video'], count: 6, counts: { mail: 5, video: 1 } });
  });

  it.each<[string, object, RegExp]>([
    ['a concurrency of 0 of a queue', { queues: { q: 0 } }, /concurrency of queue q must be/],
    ['a concurrency of 101 of a queue', { queues: { q: { concurrency: 101 } } }, /concurrency of queue q must be/],
    ['an unknown option of a queue', { queues: { q: { concurency: 1 } } }, /queue q has no option "concurency"/],
    ['a concurrency of a pool', { queues: { 'pool:a': 2 } }, /a pool/],
    ['no queue', { queues: [] }, /queues/],
    ['no address', { queues: ['q'], url: undefined }, /url/],
    ['a concurrency of 0', { queues: ['q'], concurrency: 0 }, /concurrency/],
  ])('refuses %s', async (_, wrong, message) => {
    const options = { url: 'http://localhost', signal: stop.signal, ...wrong } as never;
    await expect(runWorker({ 'a.b': never }, options)).rejects.toThrow(message);
  });
});
