import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { errorAnswer, fakeQueue, type SentRequest } from './fake-queue';

type Wire = { type: string };

const sizes = (requests: SentRequest[]): number[] =>
  requests.map((request) => (Array.isArray(request.body?.jobs) ? request.body.jobs.length : 1));

/** Refuses a batch because of its first job of type `bad`, and such a job alone. */
function strict(request: SentRequest): Response | undefined {
  const jobs = request.path === '/jobs/batch' ? (request.body?.jobs as Wire[]) : undefined;
  if (!jobs)
    return request.body?.type === 'bad' ? errorAnswer(422, 'invalid_request', { field: 'options.retry' }) : undefined;
  const index = jobs.findIndex((job) => job.type === 'bad');
  return index < 0 ? undefined : errorAnswer(422, 'invalid_request', { index, field: `jobs[${index}].options.retry` });
}

describe('enqueues of one turn', () => {
  it('share a request and get their own jobs', async () => {
    const { client, requests } = fakeQueue();
    const jobs = await Promise.all(['a', 'b', 'c'].map((type) => client.enqueue(type, [])));
    expect(jobs.map((job) => job.type)).toEqual(['a', 'b', 'c']);
    expect(requests.map((request) => request.path)).toEqual(['/jobs/batch']);
  });

  it('go by queue, so that each request is one transaction', async () => {
    const { client, requests } = fakeQueue();
    await Promise.all(['x', 'y', 'x'].map((queue) => client.enqueue('a', [], { queue })));
    expect(sizes(requests)).toEqual([2, 1]);
  });

  it('are split at the largest batch', async () => {
    const { client, requests } = fakeQueue(undefined, { maxBatch: 10 });
    await Promise.all(Array.from({ length: 25 }, () => client.enqueue('a', [])));
    expect(sizes(requests)).toEqual([10, 10, 5]);
  });

  it('are split before a body grows beyond 8 MiB', async () => {
    const { client, requests } = fakeQueue();
    await Promise.all(Array.from({ length: 10 }, () => client.enqueue('a', ['x'.repeat(1_000_000)])));
    expect(sizes(requests)).toEqual([8, 2]);
  });

  it('are not gathered when batches have one job', async () => {
    const { client, requests } = fakeQueue(undefined, { maxBatch: 1 });
    await Promise.all([client.enqueue('a', []), client.enqueue('a', [])]);
    expect(requests.map((request) => request.path)).toEqual(['/jobs', '/jobs']);
  });

  it('of a later turn are another request', async () => {
    const { client, requests } = fakeQueue();
    await client.enqueue('a', []);
    await client.enqueue('b', []);
    expect(requests.map((request) => request.path)).toEqual(['/jobs', '/jobs']);
  });

  it('may be gathered for longer', async () => {
    const { client, requests } = fakeQueue(undefined, { linger: 0 });
    const first = client.enqueue('a', []);
    await Promise.resolve();
    await Promise.resolve();
    await Promise.all([first, client.enqueue('b', [])]);
    expect(sizes(requests)).toEqual([2]);
  });
});

describe('a batch refused because of one job', () => {
  it('fails that job alone, with the field as its caller wrote it', async () => {
    const { client, requests } = fakeQueue(strict);
    const results = await Promise.allSettled(['a', 'bad', 'c'].map((type) => client.enqueue(type, [])));
    expect(results).toMatchObject([
      { status: 'fulfilled', value: { type: 'a' } },
      {
        status: 'rejected',
        reason: { name: 'InvalidJobError', field: 'options.retry', message: expect.not.stringContaining('jobs[') },
      },
      { status: 'fulfilled', value: { type: 'c' } },
    ]);
    expect(results[1]).not.toHaveProperty('reason.details.index');
    expect(sizes(requests)).toEqual([3, 2]);
  });

  it('that is not named is found by halving', async () => {
    const { client, requests } = fakeQueue((request) => {
      const jobs = request.path === '/jobs/batch' ? (request.body?.jobs as Wire[]) : [request.body];
      return jobs.some((job) => job?.type === 'bad') ? errorAnswer(413, 'payload_too_large') : undefined;
    });
    const types = ['a', 'b', 'c', 'bad', 'e', 'f', 'g', 'h'];
    const results = await Promise.allSettled(types.map((type) => client.enqueue(type, [])));
    expect(results.map((result) => result.status === 'fulfilled')).toEqual(types.map((type) => type !== 'bad'));
    expect(requests.length).toBeLessThanOrEqual(7);
  });

  it('whatever the mix, gives each caller the outcome of its own job in a bounded number of requests', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom('good', 'bad'), { minLength: 1, maxLength: 40 }), async (types) => {
        const { client, requests } = fakeQueue(strict);
        const results = await Promise.allSettled(types.map((type) => client.enqueue(type, [])));
        expect(results.map((result) => result.status)).toEqual(
          types.map((type) => (type === 'good' ? 'fulfilled' : 'rejected')),
        );
        expect(requests.length).toBeLessThanOrEqual(8 + types.length);
      }),
    );
  });

  it('for a reason all share fails all of them', async () => {
    const { client, requests } = fakeQueue(() => errorAnswer(401, 'unauthorized'));
    const results = await Promise.allSettled([client.enqueue('a', []), client.enqueue('b', [])]);
    expect(results.map((result) => result.status === 'rejected' && result.reason.code)).toEqual(
      Array(2).fill('unauthorized'),
    );
    expect(requests).toHaveLength(1);
  });
});
