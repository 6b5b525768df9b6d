/** Groups of entries, declared as a whole. */

import { describe, expect, it } from 'vitest';
import { clock, HOUR, iso, MINUTE, T0 } from '../../../support/clock';
import { TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';
import { CRON, create, read, ticksOf } from './entries';

server.emptyBeforeEach();
clock.startAtT0();

const GROUPS = '/ojs/v1/cron-groups';

const declared = (name: string, change: Json = {}): Json => ({
  name,
  expression: '@hourly',
  job_template: { type: 'x', options: { queue: name.startsWith('m') ? 'mail' : 'other' } },
  ...change,
});

const put = (group: string, ...entries: Json[]) => server.ok(200, 'PUT', `${GROUPS}/${group}`, { entries });
const names = async () => ((await server.ok(200, 'GET', CRON)).crons as Json[]).map(({ name }) => name);

describe('PUT /cron-groups/:name', () => {
  it('adds what is new, replaces what has changed, deletes what is no longer listed, and leaves the rest alone', async () => {
    expect(await put('g', declared('m-1'), declared('m-2'), declared('o-1'))).toMatchObject({
      name: 'g',
      count: 3,
      created: ['m-1', 'm-2', 'o-1'],
      updated: [],
      unchanged: [],
      deleted: [],
    });
    await new TestQueue('mail').jumpTo(T0 + HOUR);
    await new TestQueue('other').jumpTo(T0 + HOUR);
    const answer = await put('g', declared('m-2'), declared('o-1', { expression: '@daily' }), declared('o-2'));
    expect(answer).toMatchObject({ created: ['o-2'], updated: ['o-1'], unchanged: ['m-2'], deleted: ['m-1'] });
    expect((answer.entries as Json[]).map(({ name, group }) => [name, group])).toEqual([
      ['m-2', 'g'],
      ['o-1', 'g'],
      ['o-2', 'g'],
    ]);
    expect(await names()).toEqual(['m-2', 'o-1', 'o-2']);
    expect(await read('m-2')).toMatchObject({ run_count: 1, next_run_at: iso(T0 + 2 * HOUR), updated_at: iso(T0) });
    expect(await read('o-1')).toMatchObject({ run_count: 1, expression: '@daily' });
  });

  it('is idempotent, as often and as many at a time as it may be', async () => {
    const entries = ['m-1', 'm-2', 'o-1'].map((name) => declared(name, { overlap_policy: 'allow' }));
    await put('g', ...entries);
    clock.set(T0 + 59 * MINUTE);
    const answers = await Promise.all([1, 2, 3, 4].map(() => put('g', ...entries)));
    for (const answer of answers) expect(answer).toMatchObject({ unchanged: ['m-1', 'm-2', 'o-1'], deleted: [] });
    await new TestQueue('mail').jumpTo(T0 + HOUR);
    await Promise.all([1, 2, 3].map(() => put('g', ...entries)));
    expect(await ticksOf('mail')).toEqual([T0 + HOUR, T0 + HOUR]);
    expect(await read('m-1')).toMatchObject({ updated_at: iso(T0), run_count: 1 });
  });

  it('made for the first time by several at once gives each entry once', async () => {
    await Promise.all(
      [1, 2, 3, 4, 5].map(() => put('g', declared('m-1', { overlap_policy: 'allow' }), declared('o-1'))),
    );
    expect(await names()).toEqual(['m-1', 'o-1']);
    await new TestQueue('mail').jumpTo(T0 + HOUR);
    expect(await ticksOf('mail')).toEqual([T0 + HOUR]);
  });

  it('leaves entries of other groups and of none alone, and takes over one of none that it lists', async () => {
    await create('free');
    await create('m-1');
    await put('other-group', declared('o-1'));
    expect(await put('g', declared('m-1'))).toMatchObject({ updated: ['m-1'], deleted: [] });
    expect(await put('g')).toMatchObject({ deleted: ['m-1'], count: 0 });
    expect(await names()).toEqual(['free', 'o-1']);
  });

  it('keeps an entry in its group that is replaced alone, and paused what an operator has paused', async () => {
    await put('g', declared('m-1'));
    await server.ok(200, 'POST', CRON, declared('m-1', { description: 'x' }));
    expect(await read('m-1')).toMatchObject({ group: 'g', description: 'x' });
    await server.ok(200, 'POST', `${CRON}/m-1/pause`);
    expect(await put('g', declared('m-1'))).toMatchObject({ entries: [{ enabled: false }] });
    expect(await put('g', declared('m-1', { enabled: true }))).toMatchObject({ entries: [{ enabled: true }] });
  });

  it('gives entries without a zone that of the group', async () => {
    const timezone = 'Asia/Tokyo';
    const body = { timezone, entries: [declared('m-1'), declared('m-2', { timezone: 'UTC' })] };
    await server.ok(200, 'PUT', `${GROUPS}/g`, body);
    expect([(await read('m-1')).timezone, (await read('m-2')).timezone]).toEqual([timezone, 'UTC']);
  });

  it.each<[string, Json, number, Json]>([
    ['no entries', {}, 400, { field: 'entries' }],
    ['entries that are no list', { entries: {} }, 400, { field: 'entries' }],
    ['an entry that is no object', { entries: ['x'] }, 400, { field: 'entries[0]' }],
    ['a zone that is none', { entries: [], timezone: 'EST' }, 400, { field: 'timezone' }],
    [
      'a wrong expression',
      { entries: [declared('m-1'), declared('m-2', { expression: '* *' })] },
      400,
      { field: 'entries[1].expression', index: 1 },
    ],
    [
      'a wrong template',
      { entries: [declared('m-1', { job_template: { type: 'X' } })] },
      400,
      { field: 'entries[0].job_template.type', index: 0 },
    ],
    ['a name twice', { entries: [declared('m-1'), declared('m-1')] }, 400, { field: 'entries[1].name', index: 1 }],
    ['an entry of another group', { entries: [declared('m-9'), declared('taken')] }, 409, { group: 'first', index: 1 }],
  ])('refuses %s and changes nothing', async (_, body, status, details) => {
    await put('first', declared('taken'));
    await put('g', declared('m-0'));
    expect(await server.call('PUT', `${GROUPS}/g`, body)).toMatchObject({ status, body: { error: { details } } });
    expect(await names()).toEqual(['m-0', 'taken']);
  });
});

describe('groups', () => {
  it('are listed, read and deleted', async () => {
    await put('b', declared('m-1'));
    await put('a', declared('m-2'), declared('o-1'));
    expect(await server.ok(200, 'GET', GROUPS)).toMatchObject({
      groups: [
        { name: 'a', count: 2 },
        { name: 'b', count: 1 },
      ],
      pagination: { total: 2 },
    });
    expect(await server.ok(200, 'GET', `${GROUPS}/a`)).toMatchObject({
      name: 'a',
      count: 2,
      entries: [{ name: 'm-2' }, { name: 'o-1' }],
    });
    expect(await server.ok(200, 'GET', `${CRON}?group=a`)).toMatchObject({ count: 2 });
    expect(await server.ok(200, 'DELETE', `${GROUPS}/a`)).toMatchObject({
      deleted: true,
      name: 'a',
      entries: ['m-2', 'o-1'],
    });
    expect(await names()).toEqual(['m-1']);
  });

  it.each(['GET', 'DELETE'])('%s answers 404 for one that has no entries', async (method) => {
    expect(await server.call(method, `${GROUPS}/nobody`)).toMatchObject({
      status: 404,
      body: { error: { details: { resource_type: 'cron group', resource_id: 'nobody' } } },
    });
  });
});
