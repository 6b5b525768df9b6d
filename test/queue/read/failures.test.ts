/** Failures in groups: what falls together, how it is counted, and what acting on a group does. */
import { describe, expect, it } from 'vitest';
import { RANK_BIT } from '../../../src/job/ids';
import { STATE } from '../../../src/queue/store/job-row';
import { freshName, TestQueue } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

server.emptyBeforeEach();

const ADMIN = `${V1}/admin`;

const DEAD = { max_attempts: 1, on_exhaustion: 'dead_letter' };
const RETRIED = { max_attempts: 5, initial_interval: 'PT1H', jitter: false };
const DISCARDED = { max_attempts: 1 };

/** A job that has failed once. */
async function failed(queue: string, error: Json, retry: Json = DEAD, change: Json = {}): Promise<string> {
  const id = await server.enqueue(queue, { ...change, options: { retry } });
  await server.take(queue, { count: 1 });
  await server.nack(id, { error });
  return id;
}

const smtp = (box: number) => ({ type: 'SmtpError', code: 'smtp', message: `Mailbox ${box} is full` });
const groupsOf = async (query = '') => (await server.ok(200, 'GET', `${ADMIN}/failures${query}`)).items as Json[];
const stateOf = async (id: string) => (await server.call('GET', `${V1}/jobs/${id}`)).body.job?.state ?? 'none';

/** A queue with this many dead letters of `kinds` different messages, and jobs that wait. */
async function withDead(count: number, kinds: number, name = freshName('failures')): Promise<TestQueue> {
  const queue = new TestQueue(name);
  await queue.add();
  const T0 = Date.UTC(2026, 0, 1);
  await queue.inside(({ sql, q }) => {
    sql
      .exec(
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
         INSERT INTO jobs (key, state, type, priority, attempt, claims, created_at, enqueued_at, ended_at, body, history)
         SELECT ${RANK_BIT} + 1000 + i, ${STATE.dead}, 'dies', 0, 3, 3, ?, ?, CAST(? AS INTEGER) + i * 1000,
           json_object('type', 'dies', 'args', json_array(), 'meta', json_object()),
           json_object('error', json_object('type', 'E', 'code', 'c',
             'message', 'no ' || char(97 + i % CAST(? AS INTEGER)) || ' in ' || i, 'occurred_at', 0, 'attempt', 3))
         FROM n`,
        ...[count, T0, T0, T0, kinds],
      )
      .toArray();
    q.load();
  });
  return queue;
}

describe('groups of failures', () => {
  it('hold what failed in the same way, whatever its numbers, in all queues', async () => {
    const [a, b] = [freshName('failures'), freshName('failures')];
    const first = await failed(a, smtp(1));
    await failed(a, smtp(22), RETRIED);
    await failed(b, smtp(333), DISCARDED);
    const last = await failed(b, smtp(4));
    const other = await failed(b, { type: 'TypeError', message: 'x is not a function' }, DEAD, { type: 'other.job' });
    const groups = await groupsOf();
    expect(groups).toHaveLength(2);
    expect(groups[0]).toMatchObject({
      ...{ type: 'test.echo', count: 4, dead: 2, discarded: 1, retrying: 1 },
      error: { type: 'SmtpError', code: 'smtp', message: 'Mailbox <n> is full' },
      sample: { job_id: last, message: 'Mailbox 4 is full' },
    });
    expect(new Set(groups[0]?.queues as string[])).toEqual(new Set([a, b]));
    const [firstSeen, lastSeen] = [groups[0]?.first_seen_at, groups[0]?.last_seen_at].map(
      (at) => new Date(at as string),
    );
    expect(Number(firstSeen)).toBeLessThanOrEqual(Number(lastSeen));
    expect(groups[1]).toMatchObject({ type: 'other.job', count: 1, sample: { job_id: other } });
    expect(await groupsOf(`?queue=${a}`)).toMatchObject([{ count: 2, queues: [a] }]);
    expect(await groupsOf('?state=retrying')).toMatchObject([{ count: 1, dead: 0, retrying: 1 }]);
    expect(await groupsOf('?type=other.*')).toMatchObject([{ type: 'other.job' }]);
    expect(await groupsOf('?since=+1h')).toEqual([]);
    expect(await groupsOf('?since=1h&sort=last_seen')).toMatchObject([{ type: 'other.job' }, { type: 'test.echo' }]);
    expect(await groupsOf('?per_page=1&page=2')).toMatchObject([{ type: 'other.job' }]);
    const { fingerprint } = groups[0] as Json;
    const one = await server.ok(200, 'GET', `${ADMIN}/failures/${fingerprint}`);
    expect(one).toMatchObject({ ...groups[0], more: false, cursor: null });
    const jobs = await server.ok(200, 'GET', `${ADMIN}/jobs?fingerprint=${fingerprint}&state=discarded`);
    expect(jobs.items?.map(({ id }) => id)).toContain(first);
    expect(jobs.total).toBe(3);
    const job = await server.ok(200, 'GET', `${ADMIN}/jobs/${first}`);
    expect(job.fingerprint).toBe(fingerprint);
  });

  it('change when a job of theirs does', async () => {
    const queue = freshName('failures');
    const id = await failed(queue, smtp(1));
    expect(await groupsOf()).toMatchObject([{ count: 1 }]);
    await failed(queue, smtp(2));
    expect(await groupsOf()).toMatchObject([{ count: 2 }]);
    await server.ok(200, 'POST', `${ADMIN}/jobs/${id}/retry`);
    expect(await groupsOf()).toMatchObject([{ count: 1 }]);
  });

  it('include jobs that ended without an error, by reason', async () => {
    const queue = freshName('failures');
    const at = new Date(Date.now() - 1000).toISOString();
    await server.enqueue(queue, { options: { expires_at: at } });
    const groups = await groupsOf(`?queue=${queue}`);
    expect(groups).toMatchObject([{ discarded: 1, error: { code: 'expired', message: '' } }]);
  });

  it.each([
    ['/failures?state=failed', 'state'],
    ['/failures?sort=name', 'sort'],
    ['/failures?since=soon', 'since'],
    ['/failures/nothing', 'fingerprint'],
    ['/failures?cursor=abc', 'cursor'],
  ])('asked for by %s are refused, naming %s', async (path, field) => {
    const answer = await server.call('GET', ADMIN + path);
    expect(answer).toMatchObject({ status: 400, body: { error: { details: { field } } } });
  });

  it('that do not exist are not found', async () => {
    expect((await server.call('GET', `${ADMIN}/failures/0123456789abcdef`)).status).toBe(404);
  });
});

describe('looking for groups', () => {
  it('reads a bounded number of jobs, says so, and continues from there', async () => {
    const queue = await withDead(45_000, 3);
    const cost = async (path: string) => {
      await queue.startCounting();
      const answer = await server.ok(200, 'GET', path);
      return { answer, read: (await queue.counted()).read };
    };
    const path = `${ADMIN}/failures?queue=${queue.name}`;
    const { answer, read } = await cost(path);
    expect(answer).toMatchObject({ searched: 20_000, more: true, total: 3, total_is_exact: false });
    // An index entry or two and a row for each.
    expect(read).toBeLessThan(100_000);
    let count = 0;
    let pages = 0;
    for (let cursor = ''; ; pages++) {
      const page = await server.ok(200, 'GET', `${path}&limit=100${cursor}`);
      for (const group of page.items as Json[]) count += group.count as number;
      if (!page.more) break;
      cursor = `&cursor=${page.cursor}`;
    }
    expect([count, pages]).toEqual([45_000, 2]);
  });

  it('reads nothing while nothing changes', async () => {
    const queue = await withDead(300, 2);
    const path = `${ADMIN}/failures?queue=${queue.name}`;
    const first = await server.ok(200, 'GET', path);
    await queue.startCounting();
    expect((await server.ok(200, 'GET', path)).items).toEqual(first.items);
    expect((await queue.counted()).read).toBe(0);
  });
});

describe('acting on a group', () => {
  it('gives all of its jobs another life, and no others', async () => {
    const queue = freshName('failures');
    const mine = [
      await failed(queue, smtp(1)),
      await failed(queue, smtp(2), DISCARDED),
      await failed(queue, smtp(3), RETRIED),
    ];
    const other = await failed(queue, { type: 'TypeError', message: 'no' });
    const fingerprint = (await groupsOf())[0]?.fingerprint;
    const refused = await server.call('POST', `${ADMIN}/failures/${fingerprint}/redrive`, {});
    expect(refused).toMatchObject({ status: 400, body: { error: { details: { field: 'confirm' } } } });
    const done = await server.ok(200, 'POST', `${ADMIN}/failures/${fingerprint}/redrive`, { confirm: true });
    expect(done).toMatchObject({ action: 'retry', matched: 3, succeeded: 3, completed: true });
    expect(await Promise.all(mine.map(stateOf))).toEqual(['available', 'available', 'available']);
    expect(await stateOf(other)).toBe('discarded');
  });

  it('removes all of its jobs, or those in one state or queue', async () => {
    const [a, b] = [freshName('failures'), freshName('failures')];
    const dead = await failed(a, smtp(1));
    const retried = await failed(a, smtp(2), RETRIED);
    const elsewhere = await failed(b, smtp(3));
    const fingerprint = (await groupsOf())[0]?.fingerprint;
    const discard = (body: Json) => server.ok(200, 'POST', `${ADMIN}/failures/${fingerprint}/discard`, body);
    expect(await discard({ confirm: true, queue: a, state: 'dead' })).toMatchObject({ succeeded: 1 });
    expect(await Promise.all([dead, retried, elsewhere].map(stateOf))).toEqual(['none', 'retryable', 'discarded']);
    expect(await discard({ confirm: true })).toMatchObject({ succeeded: 2 });
    expect(await Promise.all([retried, elsewhere].map(stateOf))).toEqual(['none', 'none']);
  });

  it.each<[Json, string]>([
    [{ confirm: true, filter: {} }, 'filter'],
    [{ confirm: true, state: ['dead', 'retrying'] }, 'state'],
    [{ confirm: true, state: 'x' }, 'state'],
    [{ confirm: true, queue: 7 }, 'queue'],
  ])('with %j is refused, naming %s', async (body, field) => {
    const answer = await server.call('POST', `${ADMIN}/failures/0123456789abcdef/discard`, body);
    expect(answer).toMatchObject({ status: 400, body: { error: { details: { field } } } });
  });
});
