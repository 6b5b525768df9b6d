/** Jobs of a file go into a queue: what they cost, and how they live there. */
import { describe, expect, it } from 'vitest';
import type { StoredJob } from '../../../../src/export/stored-job';
import { unwrap } from '../../../../src/job/errors';
import type { ImportRequest } from '../../../../src/rpc/export';
import { clock, DAY, HOUR, MINUTE, T0 } from '../../../support/clock';
import { type JobChange, steady, TestQueue } from '../../../support/queue';

clock.startAtT0();

/** The jobs of a queue as a file has them. */
async function storedIn(queue: TestQueue, ended = true): Promise<StoredJob[]> {
  const start = unwrap(await queue.api.beginExport());
  const jobs: StoredJob[] = [];
  for (let after: number | undefined = 0; after !== undefined && start; ) {
    const page: { lines: string; next?: number } = unwrap(
      await queue.api.exportPage({ after, until: start.until, ended }),
    );
    for (const line of page.lines.split('\n').slice(0, -1)) jobs.push(texts(JSON.parse(line).job));
    after = page.next;
  }
  return jobs;
}

/** As a reader of files gives it: some members are texts. */
function texts(job: Record<string, unknown> & { run?: { result?: unknown }; checkpoint?: { content: unknown } }) {
  const { run, checkpoint } = job;
  return {
    ...job,
    body: JSON.stringify(job.body),
    ...(job.history !== undefined && { history: JSON.stringify(job.history) }),
    ...(checkpoint && { checkpoint: { ...checkpoint, content: JSON.stringify(checkpoint.content) } }),
    ...(run && { run: { ...run, ...('result' in run && { result: JSON.stringify(run.result) }) } }),
  } as unknown as StoredJob;
}

async function take(queue: TestQueue, jobs: StoredJob[]): Promise<void> {
  for (let at = 0, number = 1; at < jobs.length; at += 500, number++) {
    const parts = [{ number, jobs: jobs.slice(at, at + 500) }];
    unwrap(await queue.api.importParts({ file: 'a file', merge: false, parts }));
  }
}

/** The queue is emptied as if it had never been, and takes its own jobs back. @returns the rows that this wrote */
async function again(queue: TestQueue, jobs: StoredJob[]): Promise<number> {
  await queue.api.reset();
  // It exists, so that its creation does not count.
  await queue.api.resume();
  return queue.rowsWritten(() => take(queue, jobs));
}

const many = (count: number, change: (n: number) => JobChange = () => ({})) =>
  Array.from({ length: count }, (_, n) => change(n));

describe('the jobs of a file', () => {
  it.each<[string, (n: number) => JobChange, number]>([
    ['wait in the line', () => ({}), 0.01],
    ['wait for one moment', () => ({ scheduledAt: T0 + HOUR }), 0.01],
    ['wait for moments of their own', (n) => ({ scheduledAt: T0 + HOUR + n }), 0.02],
    ['are prioritised', (n) => ({ priority: 1 + (n % 5) }), 0.02],
    ['are grouped', (n) => ({ group: `g${n % 7}`, body: { group: `g${n % 7}` } }), 0.01],
    ['are unique', (n) => ({ body: { fingerprint: String(n % 10).repeat(64), unique: { keys: ['queue'] } } }), 1.01],
  ])('that %s cost as few rows as if they were enqueued in batches', async (_, change, most) => {
    const queue = new TestQueue();
    await queue.enqueue(...many(1000, change));
    const jobs = await storedIn(queue);
    expect((await again(queue, jobs)) / 1000).toBeLessThanOrEqual(most);
    expect(await storedIn(queue)).toEqual(jobs);
    expect(await queue.claimAll()).toEqual(
      change(0).scheduledAt === undefined ? expect.arrayContaining(jobs.map(({ id }) => id)) : [],
    );
  });

  it('cost few rows, too, when they wait for another attempt, or have completed', async () => {
    const queue = new TestQueue();
    await queue.enqueue(...many(500, () => ({ retry: steady(3, HOUR) })));
    for (const id of await queue.claimAll()) await queue.nack(id);
    await queue.enqueue(...many(500));
    for (const id of await queue.claimAll()) await queue.ack(id, { result: '{"n":1}' });
    const jobs = await storedIn(queue);
    expect((await again(queue, jobs)) / 1000).toBeLessThanOrEqual(0.03);
    expect(await queue.counts()).toEqual({ retryable: 500, completed: 500 });
    expect(await storedIn(queue)).toEqual(jobs);
    await queue.evict();
    expect(await storedIn(queue)).toEqual(jobs);
    clock.advance(HOUR);
    expect((await queue.claimAll()).length).toBe(500);
  });

  it('whose numbers are not free take a row each for their ids', async () => {
    const [from, to] = [new TestQueue(), new TestQueue()];
    await from.enqueue(...many(500));
    const jobs = await storedIn(from);
    await to.api.resume();
    expect((await to.rowsWritten(() => take(to, jobs))) / 500).toBeLessThanOrEqual(1.02);
    expect((await to.claimAll()).toSorted()).toEqual(jobs.map(({ id }) => id).toSorted());
  });

  it('keep their numbers: those that come later have higher ones, also after an eviction', async () => {
    const queue = new TestQueue();
    await queue.enqueue(...many(30));
    for (const id of (await queue.claimAll()).slice(20)) await queue.ack(id);
    const jobs = await storedIn(queue);
    await again(queue, jobs);
    await queue.evict();
    const fresh = await queue.add();
    expect(jobs.map(({ id }) => id)).not.toContain(fresh);
    expect((await queue.get(fresh)).id.slice(-10) > (jobs.at(-1) as StoredJob).id.slice(-10)).toBe(true);
    expect(await queue.counts()).toEqual({ available: 21, completed: 10 });
  });

  it('end as they would have: they expire, are retried, and are removed after their retention', async () => {
    const queue = new TestQueue();
    const [expiring, failing, ended] = await queue.enqueue(
      { expiresAt: T0 + HOUR },
      { retry: steady(2, MINUTE), priority: 1 },
      { priority: 2 },
    );
    await queue.claim();
    await queue.ack(ended?.id as string);
    await queue.claim();
    await queue.nack(failing?.id as string);
    await again(queue, await storedIn(queue));
    await queue.passTo(T0 + MINUTE);
    expect((await queue.claim())[0]).toMatchObject({ id: failing?.id, attempt: 2 });
    await queue.nack(failing?.id as string);
    expect(await queue.state(failing?.id as string)).toBe('discarded');
    await queue.passTo(T0 + HOUR);
    expect(await queue.get(expiring?.id as string)).toMatchObject({
      state: 'discarded',
      history: { reason: 'expired' },
    });
    await queue.passTo(T0 + 8 * DAY);
    expect(await queue.state(ended?.id as string)).toBe('404');
    await queue.passTo(T0 + 40 * DAY);
    expect(await queue.counts()).toEqual({});
  });

  it('are taken once, in whatever parts they come together', async () => {
    const [from, to] = [new TestQueue(), new TestQueue()];
    await from.enqueue(...many(40));
    const jobs = await storedIn(from);
    const parts = [1, 2, 3, 4].map((number) => ({ number, jobs: jobs.slice(10 * (number - 1), 10 * number) }));
    const take = async (first: number, last: number) => {
      const request = { file: 'a file', merge: false, parts: parts.slice(first - 1, last) };
      const { imported, known } = unwrap(await to.api.importParts(request));
      return [imported, known];
    };
    expect(await take(1, 2)).toEqual([20, 0]);
    unwrap(await to.api.configure({ retention: { completed: 0 } }));
    for (const id of await to.claimAll()) await to.ack(id);
    expect(await take(2, 3)).toEqual([10, 10]);
    expect(await take(1, 4)).toEqual([10, 30]);
    expect(await to.counts()).toEqual({ available: 20 });
  });

  it('of a strict group continue behind the one that has begun', async () => {
    const queue = new TestQueue();
    unwrap(await queue.api.configure({ groups: { order: 'strict' } }));
    const grouped = { group: 'acme', body: { group: 'acme' }, retry: steady(3, HOUR) };
    const ids = (await queue.enqueue(grouped, grouped, grouped)).map(({ id }) => id);
    await queue.nack((await queue.claim())[0]?.id as string);
    const jobs = await storedIn(queue);
    await queue.api.reset();
    const settings = { config: { groups: { order: 'strict' as const } }, mode: 'active' as const, groups: {} };
    const request: ImportRequest = { file: 'f', merge: false, parts: [{ number: 1, jobs, settings }] };
    unwrap(await queue.api.importParts(request));
    expect(await queue.claim()).toEqual([]);
    await queue.evict();
    expect(await queue.claim()).toEqual([]);
    await queue.passTo(T0 + HOUR);
    expect((await queue.claim()).map(({ id }) => id)).toEqual([ids[0]]);
    await queue.ack(ids[0] as string);
    expect((await queue.claim()).map(({ id }) => id)).toEqual([ids[1]]);
  });
});
