/** Searching jobs, and what a page of them costs however many there are. */
import { describe, expect, it } from 'vitest';
import { RANK_BIT } from '../../../src/job/ids';
import { STATE } from '../../../src/queue/store/job-row';
import { freshName, TestQueue } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

const T0 = Date.UTC(2026, 0, 1);

/** A queue with this many jobs that wait, made one after the other, numbered in their arguments. */
async function withWaiting(count: number, name = freshName('search')): Promise<TestQueue> {
  const queue = new TestQueue(name);
  await queue.add();
  await queue.inside(({ sql, q }) => {
    sql
      .exec(
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
         INSERT INTO jobs (key, state, type, priority, due_at, attempt, claims, created_at, enqueued_at, body)
         SELECT ${RANK_BIT} + 1000 + i, ${STATE.waiting}, 'waits', 0, ?, 0, 0, ?, ?,
           json_object('type', 'waits', 'args', json_array('Number ' || i || '.'), 'meta', json_object()) FROM n`,
        ...[count, T0, T0, T0],
      )
      .toArray();
    q.load();
  });
  return queue;
}

const rowsRead = (queue: TestQueue, path: string): Promise<number> =>
  queue.rowsRead(() => server.ok(200, 'GET', V1 + path));

const idsIn = ({ items }: { items?: Json[] }) => (items ?? []).map(({ id }) => id as string);

describe('a search', () => {
  it('finds waiting, failed and completed jobs by all of its words', async () => {
    const queue = freshName('search');
    const id = (args: unknown[], options: Json = {}) => server.enqueue(queue, { args, options });
    const done = await id([{ to: 'Ada Lovelace', city: 'London' }]);
    await server.take(queue, { count: 1 });
    await server.ack(done);
    const failed = await id([7], { retry: { max_attempts: 5 } });
    await server.take(queue, { count: 1 });
    await server.nack(failed, { error: { type: 'SmtpError', message: 'Mailbox of ADA is full' } });
    const waiting = await id(['ada'], { tags: ['london'] });
    await id(['grace', 'London']);
    const search = async (q: string) => idsIn(await server.ok(200, 'GET', `${V1}/admin/jobs?queue=${queue}&${q}`));
    expect(await search('q=ada')).toEqual([waiting, failed, done]);
    expect(await search('q=ADA%20london')).toEqual([waiting, done]);
    expect(await search('q=%22ada%20lovelace%22')).toEqual([done]);
    expect(await search('q=ada&state=available,completed')).toEqual([waiting, done]);
    expect(await search('q=smtperror')).toEqual([failed]);
    expect(await search('error=mailbox%20full')).toEqual([failed]);
    expect(await search('error=ada%20london')).toEqual([]);
    expect(await search(`q=${waiting}`)).toEqual([waiting]);
    expect(await search(`q=${waiting.slice(0, 30)}`)).toContain(waiting);
    const { body } = await server.call('GET', `${V1}/admin/jobs?queue=${queue}&q=ada&counts=true&state=completed`);
    expect(body).toMatchObject({ total: 1, searched: 1, more: false, cursor: null });
    expect(body.counts).toMatchObject({ completed: 1, available: 1, retryable: 1, discarded: 0 });
    expect(body).not.toHaveProperty('counts_exact');
    const filter = { queue, q: 'ada', state: ['available'] };
    await server.ok(200, 'POST', `${V1}/admin/jobs/bulk/cancel`, { filter, confirm: true });
    expect(await search('q=ada&state=cancelled')).toEqual([waiting]);
  });

  it('that has not looked at everything says so, and continues to its end', async () => {
    const queue = await withWaiting(45_000);
    const found: string[] = [];
    const searched: number[] = [];
    for (let cursor = ''; ; ) {
      const path = `${V1}/admin/jobs?queue=${queue.name}&q=%22Number%2017%20%22%20&limit=5${cursor}`;
      const page = await server.ok(200, 'GET', path.replace('%20%22%20', '.%22'));
      found.push(...idsIn(page));
      searched.push(page.searched as number);
      if (!page.more) break;
      cursor = `&cursor=${page.cursor}`;
    }
    expect(found).toHaveLength(1);
    expect(searched.length).toBeGreaterThan(1);
    expect(searched.at(-1)).toBe(45_001);
    expect(searched).toEqual([...searched].sort((a, b) => a - b));
  });

  it.each([
    ['q=%20%22%22', 'q'],
    [`q=${'x'.repeat(501)}`, 'q'],
    ['q=a%20b%20c%20d%20e%20f%20g%20h%20i%20j%20k', 'q'],
    ['error=%20%20.&error=b', 'error'],
    ['fingerprint=xyz', 'fingerprint'],
    ['counts=maybe', 'counts'],
    ['since=P1X', 'since'],
  ])('with %s is refused, naming %s', async (query, field) => {
    const answer = await server.call('GET', `${V1}/admin/jobs?${query}`);
    expect(answer).toMatchObject({ status: 400, body: { error: { details: { field } } } });
  });
});

describe('what a page costs', () => {
  it('does not grow with the queue, for states and for searches', async () => {
    const [small, large] = [await withWaiting(1_000), await withWaiting(20_000)];
    for (const query of [
      '',
      '&state=available',
      '&state=active,scheduled',
      '&state=discarded',
      '&page=3&state=available',
    ]) {
      const cost = async (queue: TestQueue) => {
        const path = `/admin/jobs?queue=${queue.name}&per_page=20${query}`;
        // The first one counts what is standing; that is remembered.
        await rowsRead(queue, path);
        return rowsRead(queue, path);
      };
      const [few, many] = [await cost(small), await cost(large)];
      expect([query, many <= few + 1_500, many < 3_000]).toEqual([query, true, true]);
    }
    // A search looks at so many jobs for its page, for the total beside it and for its counts, and no further.
    const search = `/admin/jobs?queue=${large.name}&q=nowhere&counts=true`;
    expect(await rowsRead(large, search)).toBeLessThan(100_000);
    const huge = await withWaiting(100_000);
    expect(await rowsRead(huge, search.replace(large.name, huge.name))).toBeLessThan(100_000);
    const page = await server.ok(200, 'GET', `${V1}${search.replace(large.name, huge.name)}`);
    expect(page).toMatchObject({ items: [], more: true, counts_exact: false, total_is_exact: false });
  });

  it('counts large payloads for what they weigh', async () => {
    const queue = new TestQueue(freshName('search'));
    for (let i = 0; i < 40; i++) await queue.enqueue({ body: { args: ['x'.repeat(1_000_000)] } });
    const page = await server.ok(200, 'GET', `${V1}/admin/jobs?queue=${queue.name}&q=nowhere`);
    expect(page).toMatchObject({ items: [], more: true });
    expect(page.searched).toBeLessThan(40);
  });
});

describe('since and until', () => {
  it('count back from now, and with a plus from now on', async () => {
    const queue = freshName('search');
    await server.enqueue(queue);
    const total = async (query: string) => (await server.ok(200, 'GET', `${V1}/jobs?queue=${queue}&${query}`)).total;
    expect(await total('since=24h')).toBe(1);
    expect(await total('since=PT1M&until=+PT1M')).toBe(1);
    expect(await total('until=PT1M')).toBe(0);
    expect(await total('since=+24h')).toBe(0);
    expect(await total('scheduled_after=24h')).toBe(0);
  });
});
