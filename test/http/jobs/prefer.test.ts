/** `Prefer: return=minimal` on an enqueue: the answer leaves out what the request brought. */
import { describe, expect, it } from 'vitest';
import { type Body, type Json, server, V1 } from '../../support/server';

server.emptyBeforeEach();

const MINIMAL = { Prefer: 'return=minimal' };
const job = (change: Json = {}): Json => ({ type: 'a.b', args: ['x'.repeat(100)], options: { queue: 'q' }, ...change });
const brief = (state = 'available') => ({
  ...{ id: expect.any(String), state, max_attempts: 3, created_at: expect.stringMatching(/Z$/) },
});

describe('a minimal answer to an enqueue', () => {
  it('has what the producer cannot know, and says that it is one', async () => {
    const { status, headers, body } = await server.call('POST', `${V1}/jobs`, job(), MINIMAL);
    expect([status, headers.get('Preference-Applied')]).toEqual([201, 'return=minimal']);
    expect(body).toEqual(brief());
    expect(headers.get('Location')).toBe(`${V1}/jobs/${body.id}`);
    const stored = await server.job(body.id);
    expect(body).toMatchObject({ created_at: stored.created_at, max_attempts: stored.max_attempts });
  });

  it('tells when a delayed job starts, and how often one with a policy runs', async () => {
    const options = { queue: 'q', delay_until: '+PT1H', retry: { max_attempts: 9 } };
    const { body } = await server.call('POST', `${V1}/jobs`, job({ options }), MINIMAL);
    const stored = await server.job(body.id);
    expect(body).toMatchObject({ state: 'scheduled', max_attempts: 9, scheduled_at: stored.scheduled_at });
  });

  it('has one entry for each job of a batch, in order', async () => {
    const { status, headers, body } = await server.call('POST', `${V1}/jobs/batch`, { jobs: [job(), job()] }, MINIMAL);
    expect([status, headers.get('Preference-Applied')]).toEqual([201, 'return=minimal']);
    expect(body).toMatchObject({ jobs: [brief(), brief()], enqueued: 2, failed: 0 });
    expect(body.jobs?.[0]).toEqual(brief());
    expect((await server.jobs('q')).map(({ id }) => id)).toEqual(body.jobs?.map(({ id }) => id));
  });

  it('has the outcome of each job of many', async () => {
    const { body } = await server.call('POST', `${V1}/jobs/bulk`, { jobs: [job(), { type: '?' }] }, MINIMAL);
    expect(body.items).toMatchObject([
      { index: 0, status: 'created', job: brief() },
      { index: 1, status: 'failed' },
    ]);
    expect(body.items?.[0]?.job).toEqual(brief());
  });

  it('tells a job that existed already whole', async () => {
    const unique = { keys: ['type'], on_conflict: 'ignore' };
    const id = await server.enqueue('q', { type: 'a.b', args: [1], options: { unique } });
    const twin = job({ options: { queue: 'q', unique } });
    const one = await server.call('POST', `${V1}/jobs`, twin, MINIMAL);
    expect([one.status, one.headers.get('Preference-Applied')]).toEqual([200, null]);
    expect(one.body).toMatchObject({ deduplicated: true, job: { id, args: [1] } });
    const { body } = await server.call('POST', `${V1}/jobs/batch`, { jobs: [twin, job({ type: 'c.d' })] }, MINIMAL);
    expect(body.jobs).toMatchObject([{ id, args: [1], deduplicated: true }, brief()]);
  });

  it('repeats that of the first request when the key is used again', async () => {
    const headers = { ...MINIMAL, 'Idempotency-Key': 'k' };
    const first = await server.call('POST', `${V1}/jobs`, job(), headers);
    const again = await server.call('POST', `${V1}/jobs`, job(), headers);
    expect(again.headers.get('Idempotency-Replayed')).toBe('true');
    expect(again.body.id).toBe(first.body.id);
  });

  it.each([
    ['return="minimal"', true],
    ['respond-async, Return=Minimal; x=1', true],
    ['return=representation, return=minimal', false],
    ['minimal', false],
    ['', false],
  ])('is given for %j: %s', async (Prefer, isMinimal) => {
    const { body } = await server.call('POST', `${V1}/jobs`, job(), { Prefer });
    expect(body.job === undefined).toBe(isMinimal);
  });
});

describe('an answer about jobs that have a long retry policy in common', () => {
  const POLICY = {
    backoff_strategy: 'table',
    table: Array.from({ length: 1000 }, (_, n) => 86_400_001 + 61_001 * n),
    non_retryable_errors: Array.from({ length: 100 }, (_, n) => `${'e'.repeat(250)}${n}`),
  };
  const unique = { keys: ['queue', 'type', 'args'], on_conflict: 'ignore' };
  const once = Array.from({ length: 1000 }, (_, n) => ({ type: 'a.b', args: [n], options: { queue: 'q', unique } }));
  const MIB = 1024 * 1024;

  /** At most 1 MiB of policies, in the jobs that come first, and each job with what is its own. */
  function expectFew(body: Body, list: readonly (Json | undefined)[], length: number): void {
    expect(list).toHaveLength(length);
    expect(
      JSON.stringify(body).length - JSON.stringify(list.map((job) => ({ ...job, retry_effective: 1 }))).length,
    ).toBeLessThan(MIB * 1.1);
    expect(list[0]).toMatchObject({ args: [0], retry_effective: { backoff_strategy: 'table' } });
    expect(list.at(-1)).toMatchObject({ id: expect.any(String), args: [length - 1], max_attempts: 3 });
    expect(list.at(-1)).not.toHaveProperty('retry_effective');
  }

  it.each([
    ['/jobs/batch', ({ jobs }: Body) => jobs as Json[]],
    ['/jobs/bulk', ({ items }: Body) => (items as Json[]).map(({ job }) => job as Json)],
  ])('shows at most 1 MiB of policies: POST %s, also for jobs that existed', async (path, listOf) => {
    await server.configure('q', { default_retry: POLICY });
    for (const headers of [{}, {}, MINIMAL]) {
      const { body } = await server.call('POST', V1 + path, { jobs: once }, headers);
      expectFew(body, listOf(body), 1000);
    }
    const { id } = (await server.jobs('q')).at(-1) as Json;
    expect(await server.job(id as string)).toMatchObject({ retry_effective: { backoff_strategy: 'table' } });
  });

  it('shows at most 1 MiB of policies in a page of a list and in a fetch', async () => {
    await server.configure('q', { default_retry: POLICY });
    await server.ok(201, 'POST', `${V1}/jobs/batch`, { jobs: once.slice(0, 100).reverse() });
    const page = await server.ok(200, 'GET', `${V1}/jobs?limit=100`);
    expectFew(page, page.jobs as Json[], 100);
    const claim = { queues: ['q'], worker_id: 'w', count: 100 };
    const fetched = await server.ok(200, 'POST', `${V1}/workers/fetch`, claim);
    const jobs = [...(fetched.jobs as Json[])];
    expect(jobs.filter((job) => 'retry_effective' in job).length).toBeLessThan(40);
    expect(JSON.stringify(fetched).length).toBeLessThan(MIB * 1.2);
    expect(jobs).toHaveLength(100);
  });
});
