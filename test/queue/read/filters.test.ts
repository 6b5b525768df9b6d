/** One set of conditions for lists, counts, the operators' list and operations: each finds the same jobs by the same names. */

import { beforeEach, describe, expect, it } from 'vitest';
import { freshName } from '../../support/queue';
import { type Json, server } from '../../support/server';

server.emptyBeforeEach();

let queue: string;
beforeEach(() => {
  queue = freshName('filters');
});

interface Condition {
  /** Makes the jobs that match, among others that do not. */
  given: () => Promise<{ matching: string[]; others: string[] }>;
  query: (matching: string[]) => string;
  filter: (matching: string[]) => Json;
  /** What is done to all that match; by default they are cancelled. */
  action?: 'retry' | 'delete';
}

/** One job that matches and one that does not. */
const pair = (matching: Json, other: Json) => async () => ({
  matching: [await server.enqueue(queue, matching)],
  others: [await server.enqueue(queue, other)],
});

const run = (count: number) => server.take(queue, { count });

const limitOf = (key: string) => ({ key, concurrency: 5 });

/** A job that failed once and waits for its retry. */
async function failedOnce(change: Json = {}): Promise<string> {
  const retry = { max_attempts: 3, initial_interval: 'PT1H', jitter: false, on_exhaustion: 'dead_letter' };
  const { options, ...rest } = change;
  const id = await server.enqueue(queue, { ...rest, options: { retry, ...(options as Json) } });
  await run(1);
  await server.nack(id, { error: { type: 'SmtpError', message: 'no' } });
  return id;
}

const cancelled = async () => {
  const id = await server.enqueue(queue);
  await server.ok(200, 'DELETE', `/ojs/v1/jobs/${id}`);
  return id;
};

const CONDITIONS: Record<string, Condition> = {
  'a list of ids': {
    given: async () => ({
      matching: [await server.enqueue(queue), await server.enqueue(`${queue}-b`)],
      others: [await server.enqueue(queue)],
    }),
    query: (ids) => `id=${ids.join(',')}`,
    filter: (ids) => ({ id: ids }),
  },
  'a queue': {
    given: async () => ({ matching: [await server.enqueue(queue)], others: [await server.enqueue(`${queue}-b`)] }),
    query: () => `queue=${queue}`,
    filter: () => ({ queue }),
  },
  'several queues': {
    given: async () => ({
      matching: [await server.enqueue(queue), await server.enqueue(`${queue}-b`)],
      others: [await server.enqueue(`${queue}-c`)],
    }),
    query: () => `queue=${queue}&queue=${queue}-b`,
    filter: () => ({ queue: [queue, `${queue}-b`] }),
  },
  'a type': {
    given: pair({ type: 'mail.send' }, { type: 'mail.send_all' }),
    query: () => 'type=mail.send',
    filter: () => ({ type: 'mail.send' }),
  },
  'types with an asterisk': {
    given: pair({ type: 'mail.send' }, { type: 'mails.send' }),
    query: () => 'type=mail.*,sms.*',
    filter: () => ({ type: ['mail.*', 'sms.*'] }),
  },
  'several states': {
    given: async () => ({
      matching: [await server.enqueue(queue, { options: { pending: true } }), await failedOnce()],
      others: [await server.enqueue(queue)],
    }),
    query: () => 'state=pending,retryable',
    filter: () => ({ state: ['pending', 'retryable'] }),
  },
  tags: {
    given: pair({ options: { tags: ['eu', 'vip'] } }, { options: { tags: ['eu'] } }),
    query: () => 'tag=eu,vip',
    filter: () => ({ tag: ['eu', 'vip'] }),
  },
  'a group': {
    given: pair({ options: { group: 'acme, inc' } }, { options: { group: 'acme' } }),
    query: () => `group=${encodeURIComponent('acme, inc')}`,
    filter: () => ({ group: 'acme, inc' }),
  },
  'a group that is the key of limits': {
    given: pair(
      { options: { rate_limit: limitOf('acme') } },
      { options: { group: 'own', rate_limit: limitOf('acme') } },
    ),
    query: () => 'group=acme',
    filter: () => ({ group: 'acme' }),
  },
  'a group of jobs that have completed, failed together, or are cancelled': {
    given: async () => {
      const of = (group: string) => ({ type: 'a', args: [], options: { queue, group, retry: { max_attempts: 1 } } });
      const ids = await server.addAll(['acme', 'other', 'acme', 'other', 'acme'].map(of));
      await run(4);
      await server.ack(ids[0] as string);
      await server.ack(ids[1] as string);
      await server.nack(ids[2] as string);
      await server.nack(ids[3] as string);
      await server.ok(200, 'DELETE', `/ojs/v1/jobs/${ids[4]}`);
      const even = (_: string, place: number) => place % 2 === 0;
      return { matching: ids.filter(even), others: ids.filter((id) => !ids.filter(even).includes(id)) };
    },
    query: () => 'group=acme',
    filter: () => ({ group: 'acme' }),
    action: 'delete',
  },
  'a priority': {
    given: pair({ options: { priority: 5 } }, { options: { priority: 4 } }),
    query: () => 'priority=5',
    filter: () => ({ priority: 5 }),
  },
  'a range of priorities': {
    given: pair({ options: { priority: 0 } }, { options: { priority: 4 } }),
    query: () => 'priority_min=-10&priority_max=3',
    filter: () => ({ priority_min: -10, priority_max: 3 }),
  },
  'a range of priorities in one member': {
    given: pair({ options: { priority: 0 } }, { options: { priority: 4 } }),
    query: () => 'priority_max=3',
    filter: () => ({ priority: { max: 3 } }),
  },
  'the time of making': {
    given: async () => ({ matching: [await server.enqueue(queue)], others: [] }),
    query: () => 'created_after=2020-01-01T00:00:00Z&created_before=2039-01-01T00:00:00Z',
    filter: () => ({ since: '2020-01-01T00:00:00Z', until: '2039-01-01T00:00:00Z' }),
  },
  'the time of enqueuing': {
    given: async () => ({ matching: [await server.enqueue(queue)], others: [] }),
    query: () => 'enqueued_after=2020-01-01T00:00:00Z&enqueued_before=2039-01-01T00:00:00Z',
    filter: () => ({ enqueued_after: '2020-01-01T00:00:00Z', enqueued_before: '2039-01-01T00:00:00Z' }),
  },
  'when a job is due': {
    given: pair(
      { options: { delay_until: '2040-05-01T00:00:00Z' } },
      { options: { delay_until: '2050-05-01T00:00:00Z' } },
    ),
    query: () => 'scheduled_after=2040-01-01T00:00:00Z&scheduled_before=2041-01-01T00:00:00Z',
    filter: () => ({ scheduled_after: '2040-01-01T00:00:00Z', scheduled_before: '2041-01-01T00:00:00Z' }),
  },
  'when a job ended': {
    given: async () => ({ matching: [await cancelled()], others: [await server.enqueue(queue)] }),
    query: () => 'ended_after=2020-01-01T00:00:00Z&ended_before=2039-01-01T00:00:00Z',
    filter: () => ({ ended_after: '2020-01-01T00:00:00Z', ended_before: '2039-01-01T00:00:00Z' }),
    action: 'delete',
  },
  'attempts begun': {
    given: async () => ({ matching: [await failedOnce()], others: [await server.enqueue(queue)] }),
    query: () => 'attempts_min=1&attempts_max=2',
    filter: () => ({ attempts_min: 1, attempts_max: 2 }),
  },
  'the last error': {
    given: async () => ({ matching: [await failedOnce()], others: [await cancelled()] }),
    query: () => 'error_type=SmtpError',
    filter: () => ({ error_type: 'SmtpError' }),
    action: 'retry',
  },
  'dead letters': {
    given: async () => ({
      matching: [await failedOnce({ options: { retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } } })],
      others: [await cancelled()],
    }),
    query: () => 'dead_letter=true',
    filter: () => ({ dead_letter: true }),
    action: 'retry',
  },
  'a member of the payload': {
    given: pair({ args: [{ user_id: 42 }] }, { args: [{ user_id: 43 }] }),
    query: () => 'args.0.user_id=42',
    filter: () => ({ 'args.0.user_id': 42 }),
  },
  'a member of the payload, beside others': {
    given: pair({ args: [{ user_id: 42 }, 'x'] }, { args: [{ user_id: 42 }, 'y'] }),
    query: () => 'args.0.user_id=42&args.1=x',
    filter: () => ({ where: { 'args[0].user_id': 42, 'args.1': ['x', 'z'] } }),
  },
  'a member of meta': {
    given: pair({ meta: { tenant: 'acme' } }, { meta: { tenant: 'ajax' } }),
    query: () => 'meta.tenant=acme',
    filter: () => ({ meta: { tenant: 'acme' } }),
  },
};

describe.each(Object.keys(CONDITIONS))('%s', (name) => {
  it('chooses the same jobs everywhere', async () => {
    const { given, query, filter, action } = CONDITIONS[name] as Condition;
    const { matching, others } = await given();
    const asked = query(matching);
    const ids = (jobs: unknown) => (jobs as Json[]).map(({ id }) => id).sort();
    const listed = await server.ok(200, 'GET', `/ojs/v1/jobs?${asked}`);
    expect(ids(listed.jobs)).toEqual([...matching].sort());
    expect(await server.ok(200, 'GET', `/ojs/v1/jobs/count?${asked}`)).toEqual({ count: matching.length });
    for (const sort of ['created_at', 'priority', 'scheduled_at']) {
      const forOperators = await server.ok(200, 'GET', `/ojs/v1/admin/jobs?${asked}&sort=${sort}`);
      expect(ids(forOperators.items)).toEqual([...matching].sort());
      expect(forOperators.pagination).toMatchObject({ total: matching.length });
    }
    const state = async (id: string) => (await server.call('GET', `/ojs/v1/jobs/${id}`)).body.job?.state ?? 'none';
    const before = await Promise.all(others.map(state));
    const verb = action ?? 'cancel';
    const done = await server.ok(200, 'POST', `/ojs/v1/jobs/bulk/${verb}`, { filter: filter(matching) });
    expect(done).toMatchObject({ total_matched: matching.length, failed: 0, completed: true });
    const after = { cancel: 'cancelled', retry: 'available', delete: 'none' }[verb];
    for (const id of matching) expect(await state(id)).toBe(after);
    expect(await Promise.all(others.map(state))).toEqual(before);
  });
});

it.each([
  ['priority=1&priority=2', 'priority'],
  ['priority=5&priority_min=1', 'priority'],
  ['attempts=1&attempt=1', 'attempt'],
  ['since=2020-01-01T00:00:00Z&created_after=2021-01-01T00:00:00Z', 'since'],
  ['until=2020-01-01T00:00:00Z&created_before=2021-01-01T00:00:00Z', 'until'],
  ['since=2020', 'since'],
  ['ended_after=2020-01-01T00:00:00Z&ended_after=2021-01-01T00:00:00Z', 'ended_after'],
  ['older_than=P1D&older_than=P2D', 'older_than'],
  ['error_type=a&error_type=b', 'error_type'],
  ['group=a&group=b', 'group'],
  [`group=${'x'.repeat(256)}`, 'group'],
  ['ended_after=2021-01-01T00:00:00Z&ended_before=2020-01-01T00:00:00Z', 'ended'],
])('the query %s is refused, naming %s, in lists and counts', async (query, field) => {
  for (const path of ['/jobs', '/jobs/count', '/admin/jobs']) {
    const answer = await server.call('GET', `/ojs/v1${path}?${query}`);
    expect(answer, JSON.stringify(answer.body)).toMatchObject({ status: 400, body: { error: { details: { field } } } });
  }
});

it.each<[Json, string]>([
  [{ id: ['x'], ids: ['y'] }, 'filter.ids'],
  [{ tag: 'x', tags: ['y'] }, 'filter.tags'],
  [{ group: '' }, 'filter.group'],
  [{ group: ['a', 'b'] }, 'filter.group'],
  [{ group: 'x'.repeat(256) }, 'filter.group'],
  [{ priority: 5, priority_min: 1 }, 'filter.priority_min'],
  [{ priority_min: 5, priority_max: 1 }, 'filter.priority_max'],
  [{ priority_max: 500 }, 'filter.priority_max'],
  [{ attempts_min: -1 }, 'filter.attempts_min'],
  [{ since: '2020-01-01T00:00:00Z', created_after: '2021-01-01T00:00:00Z' }, 'filter.created_after'],
  [{ dead_letter: 'yes' }, 'filter.dead_letter'],
  [{ 'args.0.a': {} }, 'filter.args.0.a'],
  [{ 'args..a': 1 }, 'args..a'],
  [{ args: [1] }, 'args'],
])('the filter %j is refused, naming %s, and nothing is changed', async (filter, field) => {
  const id = await server.enqueue(queue);
  for (const [path, body] of [
    ['/jobs/bulk/cancel', { filter }],
    ['/admin/jobs/bulk/cancel', { filter, confirm: true }],
  ] as const) {
    const answer = await server.call('POST', `/ojs/v1${path}`, body);
    expect(answer, JSON.stringify(answer.body)).toMatchObject({ status: 400, body: { error: { details: { field } } } });
  }
  expect((await server.call('GET', `/ojs/v1/jobs/${id}`)).body.job?.state).toBe('available');
});

describe('a group', () => {
  const add = (group: string, options: Json = {}) => server.enqueue(queue, { options: { group, ...options } });

  it('is a condition on dead letters, and on what is done to them', async () => {
    const retry = { max_attempts: 1, on_exhaustion: 'dead_letter' };
    const [acme, other] = [await add('acme', { retry }), await add('other', { retry })];
    await run(2);
    for (const id of [acme, other]) await server.nack(id);
    const path = `/ojs/v1/dead-letter?queue=${queue}`;
    const { jobs, total } = await server.ok(200, 'GET', `${path}&group=acme`);
    expect([jobs?.map(({ id }) => id), total]).toEqual([[acme], 1]);
    expect(await server.refusal('GET', `${path}&group=${'x'.repeat(256)}`)).toMatchObject({ field: 'group' });
    const filter = { queue, group: 'acme' };
    await server.ok(200, 'POST', '/ojs/v1/dead-letter/retry', { filter, confirm: true });
    expect((await server.ok(200, 'GET', path)).jobs).toMatchObject([{ id: other }]);
  });

  it('is purged without the others', async () => {
    await add('acme');
    const other = await add('other');
    const purge = (body: Json) => server.call('POST', `/ojs/v1/queues/${queue}/purge`, { confirm: true, ...body });
    expect(await purge({ states: ['available'], group: 7 })).toMatchObject({ status: 400 });
    expect(await purge({ states: ['available'], group: 'acme' })).toMatchObject({ body: { deleted: 1 } });
    expect((await server.ok(200, 'GET', `/ojs/v1/jobs?queue=${queue}`)).jobs).toMatchObject([{ id: other }]);
  });
});

it.each(['POST /dead-letter/retry', 'DELETE /dead-letter', 'DELETE /admin/dead-letter'])(
  '%s refuses a list in the place of a filter: it would be all dead letters',
  async (route) => {
    const id = await server.enqueue(queue, { options: { retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } } });
    await run(1);
    await server.nack(id);
    const [method = '', path = ''] = route.split(' ');
    const refused = await server.refusal(method, `/ojs/v1${path}`, { filter: [], confirm: true });
    expect(refused).toMatchObject({ status: 400, field: 'filter' });
    expect((await server.ok(200, 'GET', `/ojs/v1/dead-letter?queue=${queue}`)).jobs).toHaveLength(1);
  },
);

describe('times', () => {
  const HOUR = 3_600_000;
  const at = (ms: number) => new Date(Date.now() + ms).toISOString();
  const count = async (query: string) =>
    (await server.ok(200, 'GET', `/ojs/v1/jobs/count?queue=${queue}&${query}`)).count;

  it('are reported as distances from now too, in queries and filters alike', async () => {
    const soon = await server.enqueue(queue, { options: { delay_until: at(HOUR) } });
    const late = await server.enqueue(queue, { options: { delay_until: at(4 * HOUR) } });
    // A "+" reads as a space, escaped or not.
    for (const distance of ['+PT2H', '%2BPT2H', 'PT2H', '2h']) {
      const query = `queue=${queue}&scheduled_before=${distance}`;
      for (const path of ['jobs', 'admin/jobs']) {
        const body = await server.ok(200, 'GET', `/ojs/v1/${path}?${query}`);
        expect((body.jobs ?? body.items)?.map(({ id }) => id)).toEqual([soon]);
      }
      expect(await count(`scheduled_after=${distance}`)).toBe(1);
    }
    const filter = { queue, scheduled_after: '+PT2H', scheduled_before: '+PT5H', until: '+PT1S' };
    expect(await server.ok(200, 'POST', '/ojs/v1/jobs/bulk/cancel', { filter })).toMatchObject({
      items: [{ job_id: late, status: 'cancelled' }],
    });
  });

  it('are also read that way for dead letters and events', async () => {
    const id = await server.enqueue(queue);
    await run(1);
    const error = { code: 'DEAD_LETTER', message: 'no' };
    await server.nack(id, { error });
    const list = async (path: string) => ((await server.ok(200, 'GET', `/ojs/v1/${path}`)).total as number) ?? 0;
    expect(await list('dead-letter?until=+PT1M')).toBe(1);
    expect(await list('dead-letter?since=+PT1M')).toBe(0);
    expect(await list('admin/dead-letter?since=PT1M')).toBe(1);
    expect(await list('admin/dead-letter?until=PT1M')).toBe(0);
    expect((await server.ok(200, 'GET', '/ojs/v1/events?since=+PT1M')).events).toEqual([]);
    const filter = { since: '+PT1M' };
    const none = await server.ok(200, 'POST', '/ojs/v1/dead-letter/retry', { filter, confirm: true });
    expect(none).toMatchObject({ matched: 0 });
  });

  it.each(['-PT1H', 'PT', 'yesterday', '5', '2026-01-01'])('are not %s', async (time) => {
    for (const path of ['jobs', 'jobs/count', 'admin/jobs', 'dead-letter', 'admin/dead-letter', 'events']) {
      const answer = await server.call('GET', `/ojs/v1/${path}?since=${time}`);
      expect([path, answer.status, answer.body.error?.details?.field]).toEqual([path, 400, 'since']);
    }
    const answer = await server.call('POST', '/ojs/v1/jobs/bulk/cancel', { filter: { queue, enqueued_before: time } });
    expect([answer.status, answer.body.error?.details?.field]).toEqual([400, 'filter.enqueued_before']);
  });
});
