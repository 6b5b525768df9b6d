/** Filters over every place where jobs lie, counts, and pages that stay as they are while jobs move. */

import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { histories } from '../../support/long';
import { freshName } from '../../support/queue';
import { type Json, server } from '../../support/server';

server.emptyBeforeEach();

let queue: string;
beforeEach(() => {
  queue = freshName('query');
});

const list = async (query: string) => {
  const body = await server.ok(200, 'GET', `/ojs/v1/jobs?queue=${queue}&${query}`);
  return (body.jobs as Json[]).map(({ id }) => id as string);
};
const count = async (query: string) =>
  (await server.ok(200, 'GET', `/ojs/v1/jobs/count?queue=${queue}&${query}`)).count;
const long = (end: string) => `mail.${'very_'.repeat(49)}${end}`;
const fetchJobs = (count: number) => server.take(queue, { count });

/** The same job waiting and completed. */
async function waitingAndCompleted(change: Json): Promise<[string, string]> {
  const completed = await server.enqueue(queue, change);
  await fetchJobs(1);
  await server.ack(completed);
  return [await server.enqueue(queue, change), completed];
}

describe('a filter', () => {
  it.each<[string, Json, Json, string]>([
    ['by type', { type: 'mail.send' }, { type: 'sms.send' }, 'type=mail.send'],
    ['by the beginning of a type', { type: 'mail.send' }, { type: 'sms.send' }, 'type=mail.*'],
    ['by the end of a type', { type: 'mail.send' }, { type: 'mail.read' }, 'type=*.send'],
    ['by a long type', { type: long('x') }, { type: long('y') }, `type=${long('x')}`],
    ['by the beginning of a long type', { type: long('x') }, { type: 'a.b' }, `type=${long('').slice(0, 200)}*`],
    ['by parts of a type', { type: 'a.mail.to.b' }, { type: 'a.to.mail.b' }, 'type=*mail*to*'],
    ['by parts that do not overlap', { type: 'ab.ab' }, { type: 'ab' }, 'type=ab*ab'],
    ['by parts that come twice', { type: 'a.bb.bb.c' }, { type: 'a.bb.c' }, 'type=a*bb*bb*c'],
    ['by many parts', { type: 'a'.repeat(120) }, { type: 'a'.repeat(99) }, `type=${'*a'.repeat(100)}*`],
    ['by several types', { type: 'mail.send' }, { type: 'sms.send' }, 'type=fax,mail.send'],
    ['by tag', { options: { tags: ['eu', 'vip'] } }, { options: { tags: ['eu'] } }, 'tag=vip&tag=eu'],
    ['by priority', { options: { priority: 7 } }, { options: { priority: 6 } }, 'priority=7'],
    ['by a range of priorities', { options: { priority: 7 } }, { options: { priority: -3 } }, 'priority_min=0'],
    ['by a number in the payload', { args: [{ user_id: 42 }] }, { args: [{ user_id: 43 }] }, 'args.0.user_id=42'],
    ['by a text of digits', { args: [{ user_id: '42' }] }, { args: [{ user_id: '4' }] }, 'args.0.user_id=42'],
    ['by a boolean', { args: [{ on: true }] }, { args: [{ on: 1 }] }, 'args[0].on=true'],
    ['by null', { args: [{ on: null }] }, { args: [{}] }, 'args.0.on=null'],
    ['by a deep member', { args: [0, { a: [{ b: 'x' }] }] }, { args: [0, { a: [] }] }, 'args.1.a.0.b=x'],
    [
      'by text with quotes',
      { args: ['say "hi" ü'] },
      { args: ['say hi'] },
      `args.0=${encodeURIComponent('say "hi" ü')}`,
    ],
    ['by meta', { meta: { tenant: 'acme' } }, { meta: { tenant: 'ajax' } }, 'meta.tenant=acme'],
    [
      'by a name with dots',
      { meta: { 'a.b': 1 } },
      { meta: { a: { b: 1 } } },
      `${encodeURIComponent('meta["a.b"]')}=1`,
    ],
    ['by any of several values', { args: [1] }, { args: [3] }, 'args.0=1&args.0=2'],
    ['by attempts', {}, { options: { pending: true } }, 'attempts_max=9&state=available,completed'],
  ])('%s finds jobs that wait and jobs that have completed', async (_, matching, other, query) => {
    const matches = await waitingAndCompleted(matching);
    await server.enqueue(queue, other);
    expect(await list(query)).toEqual(matches);
    expect(await count(query)).toBe(2);
    expect(await count('')).toBe(3);
  });

  it('by id finds jobs wherever they are, once', async () => {
    const [waiting, completed] = await waitingAndCompleted({});
    const other = await server.enqueue(queue);
    const unknown = '01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee';
    expect(await list(`id=${completed},${waiting},${completed},${unknown},nonsense`)).toEqual([waiting, completed]);
    expect(await list(`id=${other}&state=completed`)).toEqual([]);
    const page = await server.ok(200, 'GET', `/ojs/v1/jobs?id=${waiting},${completed},${other}&limit=2`);
    expect(page.jobs?.map(({ id }) => id)).toEqual([other, waiting]);
    const next = await server.ok(
      200,
      'GET',
      `/ojs/v1/jobs?id=${waiting},${completed},${other}&limit=2&cursor=${page.pagination?.next_cursor}`,
    );
    expect(next.jobs?.map(({ id }) => id)).toEqual([completed]);
  });

  it('by state and time', async () => {
    const early = await server.enqueue(queue, { options: { delay_until: '2040-01-01T00:00:00Z' } });
    const late = await server.enqueue(queue, { options: { delay_until: '2050-01-01T00:00:00Z' } });
    expect(await list('scheduled_before=2045-01-01T00:00:00Z')).toEqual([early]);
    expect(await list('state=scheduled&scheduled_after=2045-01-01T00:00:00%2B01:00')).toEqual([late]);
    expect(await list('created_after=2045-01-01T00:00:00Z')).toEqual([]);
    expect(await list('enqueued_before=2045-01-01T00:00:00Z')).toEqual([late, early]);
    expect(await list('ended_after=2000-01-01T00:00:00Z')).toEqual([]);
    expect(await list('older_than=PT1H')).toEqual([]);
  });

  it('by the error, the dead letters and the attempts of jobs that run', async () => {
    const retry = { max_attempts: 1, on_exhaustion: 'dead_letter' };
    const dead = await server.enqueue(queue, { options: { retry } });
    await fetchJobs(1);
    const error = { code: 'boom', type: 'BoomError', message: 'no' };
    await server.nack(dead, { error });
    const gone = await server.enqueue(queue);
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${gone}`);
    const running = await server.enqueue(queue);
    await fetchJobs(1);
    expect(await list('error_type=BoomError')).toEqual([dead]);
    expect(await list('dead_letter=true')).toEqual([dead]);
    expect(await list('dead_letter=false&state=discarded')).toEqual([]);
    expect(await list('attempts=1')).toEqual([running, dead]);
    expect(await list('attempts=0')).toEqual([gone]);
  });

  it.each<[string, string]>([
    ['state=done', 'state'],
    ['priority=high', 'priority'],
    ['priority_min=101', 'priority_min'],
    ['priority_min=5&priority_max=3', 'priority'],
    ['attempts=-1', 'attempts'],
    ['created_after=yesterday', 'created_after'],
    ['ended_before=2030-01-01', 'ended_before'],
    ['older_than=soon', 'older_than'],
    ['type=Mail', 'type'],
    ['dead_letter=maybe', 'dead_letter'],
    ['args=5', 'args'],
    ['args.=5', 'args.'],
    ['args..a=5', 'args..a'],
    ['meta[x]=5', 'meta[x]'],
    [`${encodeURIComponent('meta["a"b"]')}=5`, 'meta["a"b"]'],
    ['args.0.a%27%22)=5', 'args.0.a\'")'],
    [`tag=${Array.from({ length: 11 }, (_, n) => `t${n}`)}`, 'tag'],
    [`${Array.from({ length: 99 }, (_, n) => `args.0=${n}a`).join('&')}`, 'filter'],
    [Array.from({ length: 11 }, (_, n) => `args.${n}=1`).join('&'), 'args.0'],
    ['queue=Nope', 'queue'],
    ['cursor=abc', 'cursor'],
    ['limit=x', 'limit'],
  ])('%s is refused, naming %s', async (query, field) => {
    await server.enqueue(queue);
    const answer = await server.call('GET', `/ojs/v1/jobs?${query}`);
    expect(answer.status, JSON.stringify(answer.body)).toBe(400);
    expect(answer.body.error?.details?.field).toBe(field);
  });

  it('reads text that looks like SQL as text', async () => {
    const nasty = `'; DROP TABLE jobs; --`;
    const id = await server.enqueue(queue, { args: [nasty], options: { tags: [nasty] } });
    expect(await list(`args.0=${encodeURIComponent(nasty)}&tag=${encodeURIComponent(nasty)}`)).toEqual([id]);
    expect(await list(`error_type=${encodeURIComponent(nasty)}`)).toEqual([]);
  });
});

it('pages show each job once, newest first, while jobs run, fail, move and end', async () => {
  const move = fc.constantFrom('run', 'ack', 'cancel', 'later', 'first', 'new');
  await fc.assert(
    fc.asyncProperty(fc.array(move, { maxLength: 12 }), fc.integer({ min: 1, max: 7 }), async (moves, limit) => {
      queue = freshName('pages');
      const other = `${queue}-b`;
      const ids: string[] = [];
      for (let n = 0; n < 12; n++) ids.push(await server.enqueue(n % 3 === 0 ? other : queue));
      const shown: string[] = [];
      let cursor = '';
      for (let step = 0; ; step++) {
        const page = await server.ok(200, 'GET', `/ojs/v1/jobs?queue=${queue},${other}&limit=${limit}${cursor}`);
        shown.push(...(page.jobs as Json[]).map(({ id }) => id as string));
        expect(page.total).toBe(12);
        if (page.pagination?.has_more !== true) break;
        cursor = `&cursor=${page.pagination.next_cursor}`;
        const target = ids[(step * 5) % 12] as string;
        switch (moves[step]) {
          case 'run':
            await fetchJobs(2);
            break;
          case 'ack':
            for (const job of await fetchJobs(2)) await server.ack(job.id);
            break;
          case 'cancel':
            await server.call('DELETE', `/ojs/v1/jobs/${target}`);
            break;
          case 'later':
            await server.call('PATCH', `/ojs/v1/jobs/${target}`, { scheduled_at: '+PT1H' });
            break;
          case 'first':
            await server.call('PATCH', `/ojs/v1/jobs/${target}`, { priority: 50 });
            break;
          case 'new':
            await server.enqueue(queue);
        }
      }
      expect(new Set(shown).size).toBe(shown.length);
      expect([...shown].sort()).toEqual([...ids].sort());
    }),
    { numRuns: histories(6) },
  );
});
