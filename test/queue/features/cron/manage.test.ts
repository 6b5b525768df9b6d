/** Creating, reading, changing and deleting cron entries over HTTP. */

import { describe, expect, it } from 'vitest';
import { clock, DAY, HOUR, iso, MINUTE, T0 } from '../../../support/clock';
import { TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';
import { CRON, create, entry, read, refused, ticksOf } from './entries';

server.emptyBeforeEach();
clock.startAtT0();

const minute = (n: number) => T0 + n * MINUTE;

describe('POST /cron', () => {
  it('creates an entry, in every spelling that clients look for', async () => {
    const answer = await server.call('POST', CRON, {
      name: 'nightly',
      expression: '0 2 * * *',
      timezone: 'Europe/Paris',
      description: 'Builds the report',
      job_template: { type: 'report.build', args: [{ of: 'sales' }], options: { queue: 'reports', priority: 3 } },
    });
    expect(answer.status).toBe(201);
    expect(answer.headers.get('Location')).toBe('/ojs/v1/cron/nightly');
    const { cron, cron_job } = answer.body;
    expect(cron).toEqual(cron_job);
    expect(cron).toEqual({
      name: 'nightly',
      id: 'nightly',
      expression: '0 2 * * *',
      cron: '0 2 * * *',
      schedule: '0 2 * * *',
      timezone: 'Europe/Paris',
      overlap_policy: 'skip',
      missed_policy: 'fire_once',
      enabled: true,
      status: 'active',
      description: 'Builds the report',
      next_run_at: '2040-09-02T00:00:00.000Z',
      last_run_at: null,
      run_count: 0,
      fire_count: 0,
      skipped_count: 0,
      waiting: 0,
      created_at: iso(T0),
      updated_at: iso(T0),
      type: 'report.build',
      queue: 'reports',
      args: [{ of: 'sales' }],
      options: { queue: 'reports', priority: 3 },
      job_template: { type: 'report.build', args: [{ of: 'sales' }], options: { queue: 'reports', priority: 3 } },
      next_fires: [0, 1, 2, 3, 4].map((n) => iso(Date.UTC(2040, 8, 2) + n * DAY)),
    });
  });

  it.each<[string, Json]>([
    ['flat, as the SDK writes it', { cron: '0 2 * * *', type: 'x', args: [1], options: { queue: 'q', tags: ['t'] } }],
    ['with the words of the admin UI', { schedule: '0 2 * * *', type: 'x', args: [1], queue: 'q', tags: ['t'] }],
    [
      'as a template',
      { expression: '0 2 * * *', job_template: { type: 'x', args: [1], options: { queue: 'q', tags: ['t'] } } },
    ],
    [
      'with options at the top of the template',
      { expression: '0 2 * * *', job_template: { type: 'x', args: [1], queue: 'q', tags: ['t'] } },
    ],
  ])('takes an entry %s', async (_, body) => {
    await server.ok(201, 'POST', CRON, { name: 'a', ...body });
    expect(await read('a')).toMatchObject({ expression: '0 2 * * *', type: 'x', queue: 'q' });
    await server.ok(201, 'POST', `${CRON}/a/trigger`);
    expect((await server.jobs('q'))[0]).toMatchObject({ type: 'x', args: [1], tags: ['t'] });
  });

  it('takes a template without args or queue', async () => {
    await server.ok(201, 'POST', CRON, { name: 'a', expression: '@daily', job_template: { type: 'x' } });
    expect(await read('a')).toMatchObject({ args: [], queue: 'default', options: {} });
  });

  it('replaces an entry of the same name, which continues counting', async () => {
    await create('a');
    await new TestQueue('a').jumpTo(minute(1));
    const answer = await server.call('POST', CRON, entry('a', { expression: '@hourly', description: 'slower' }));
    expect(answer.status).toBe(200);
    expect(answer.body.cron).toMatchObject({
      expression: '@hourly',
      description: 'slower',
      run_count: 1,
      created_at: iso(T0),
      updated_at: iso(minute(1)),
      next_run_at: iso(T0 + HOUR),
    });
    expect(await server.ok(200, 'GET', CRON)).toMatchObject({ count: 1 });
  });

  it('loses and doubles no fire when the schedule stays the same', async () => {
    await create('a', { expression: '@every 10m', overlap_policy: 'allow' });
    clock.set(T0 + 10 * MINUTE);
    await server.ok(
      200,
      'POST',
      CRON,
      entry('a', { expression: '@every 10m', overlap_policy: 'allow', description: 'new' }),
    );
    expect(await ticksOf('a')).toEqual([T0 + 10 * MINUTE]);
    expect((await read('a')).next_run_at).toBe(iso(T0 + 20 * MINUTE));
  });

  it('counts an interval from the moment it was changed', async () => {
    await create('a', { expression: '@every 10m' });
    clock.set(T0 + 3 * MINUTE);
    await server.ok(200, 'POST', CRON, entry('a', { expression: '@every 5m' }));
    expect((await read('a')).next_run_at).toBe(iso(T0 + 8 * MINUTE));
  });

  it('leaves an entry paused that an operator has paused, unless the request says otherwise', async () => {
    await create('a');
    await server.ok(200, 'POST', `${CRON}/a/pause`);
    expect(await server.ok(200, 'POST', CRON, entry('a', { description: 'deployed' }))).toMatchObject({
      cron: { enabled: false },
    });
    expect(await server.ok(200, 'POST', CRON, entry('a', { enabled: true }))).toMatchObject({
      cron: { enabled: true },
    });
  });

  it('writes nothing when nothing has changed', async () => {
    await create('a');
    clock.set(minute(0) + 1000);
    expect(await server.ok(200, 'POST', CRON, entry('a'))).toMatchObject({ cron: { updated_at: iso(T0) } });
  });

  it('ignores what only the server writes', async () => {
    expect(
      await create('a', { id: 'b', next_run_at: null, run_count: 7, last_run_at: 'x', created_at: 5, status: 'odd' }),
    ).toMatchObject({
      id: 'a',
      run_count: 0,
      status: 'active',
    });
  });

  it.each<[string, Json, string, RegExp?]>([
    ['no name', { name: undefined }, 'name', /required/],
    ['a name with capitals', { name: 'Nightly' }, 'name'],
    ['a name with a slash', { name: 'a/b' }, 'name'],
    ['a name that is too long', { name: 'a'.repeat(256) }, 'name'],
    ['a name that is no text', { name: 7 }, 'name'],
    ['no expression', { expression: undefined }, 'expression', /required/],
    ['an expression that is none', { expression: 'not a valid cron' }, 'expression', /4 fields/],
    ['an expression under another name', { expression: undefined, cron: '99 * * * *' }, 'cron', /minute "99"/],
    ['an expression that never fires', { expression: '0 0 30 2 *' }, 'expression', /never fires/],
    ['a zone that is none', { timezone: 'Mars/Olympus' }, 'timezone', /IANA/],
    ['an offset for a zone', { timezone: '+05:00' }, 'timezone', /IANA/],
    ['an abbreviation for a zone', { timezone: 'EST' }, 'timezone', /daylight saving/],
    [
      'an unknown overlap policy',
      { overlap_policy: 'queue' },
      'overlap_policy',
      /skip, allow, cancel_previous, enqueue/,
    ],
    ['an unknown missed policy', { missed_policy: 'later' }, 'missed_policy', /skip, fire_once, fire_all/],
    ['an unknown missed policy inside', { missed_fires: { policy: 'later' } }, 'missed_fires.missed_policy'],
    ['a bound of nothing', { missed_policy: 'fire_all', max_catchup: 0 }, 'max_catchup', /1 to 1000/],
    ['a date alone', { start_at: '2040-09-01' }, 'start_at'],
    ['a limit of none', { limit: 0 }, 'limit'],
    ['enabled as a word', { enabled: 'yes' }, 'enabled'],
    ['a description that is no text', { description: 5 }, 'description'],
  ])('refuses %s', async (_, change, field, message = /./) => {
    const { body } = await refused(entry('a', change));
    expect(body.error).toMatchObject({ code: 'invalid_request', details: { field } });
    expect(body.error?.message).toMatch(message);
    expect((await server.ok(200, 'GET', CRON)).count).toBe(0);
  });
});

describe('GET /cron', () => {
  it('lists entries of all queues by name, a page at a time, and filters them', async () => {
    for (const [index, name] of ['d', 'a', 'c', 'b'].entries()) {
      await create(name, { options: { queue: `q-${index % 3}` }, enabled: index !== 2 });
    }
    const first = await server.ok(200, 'GET', `${CRON}?page=1&per_page=3`);
    expect(first).toMatchObject({ count: 4, pagination: { total: 4, page: 1, per_page: 3, has_more: true } });
    expect((first.crons as Json[]).map(({ name }) => name)).toEqual(['a', 'b', 'c']);
    expect(first.cron_jobs).toEqual(first.crons);
    const second = await server.ok(200, 'GET', `${CRON}?page=2&per_page=3`);
    expect((second.crons as Json[]).map(({ name }) => name)).toEqual(['d']);
    expect((await server.ok(200, 'GET', `${CRON}?enabled=false`)).crons).toEqual([
      expect.objectContaining({ name: 'c' }),
    ]);
    expect(await server.ok(200, 'GET', `${CRON}?enabled=true`)).toMatchObject({ count: 3 });
    expect(await server.call('GET', `${CRON}?enabled=maybe`)).toMatchObject({ status: 400 });
  });

  it('refuses a page that is too large for one answer, and says to ask for less', async () => {
    const job_template = { type: 'test.cron', args: ['x'.repeat(900_000)], options: { queue: 'q' } };
    for (let n = 0; n < 20; n++) await create(`large-${n}`, { job_template });
    expect(await server.call('GET', CRON)).toMatchObject({
      status: 422,
      body: { error: { code: 'unsupported', details: { max_bytes: 16 * 1024 * 1024 } } },
    });
    expect((await server.ok(200, 'GET', `${CRON}?limit=5`)).crons).toHaveLength(5);
  });

  it('answers an empty list on an empty server, and 404 for one entry', async () => {
    expect(await server.ok(200, 'GET', CRON)).toMatchObject({ crons: [], cron_jobs: [], count: 0 });
    expect(await server.call('GET', `${CRON}/a`)).toMatchObject({
      status: 404,
      body: { error: { code: 'not_found', details: { resource_type: 'cron', resource_id: 'a' } } },
    });
  });

  it('shows one entry under both names and flat', async () => {
    await create('a');
    const body = await server.ok(200, 'GET', `${CRON}/a`);
    expect(body.cron).toEqual(body.cron_job);
    const { cron: _, ...rest } = body.cron as Json;
    expect(body).toMatchObject(rest);
  });

  it('carries large templates in as many messages as it takes', async () => {
    for (let n = 0; n < 12; n++)
      await create(`big-${n}`, {
        options: { queue: 'big' },
        job_template: { type: 'x', args: ['y'.repeat(1_000_000)], options: { queue: 'big' } },
      });
    expect((await server.ok(200, 'GET', CRON)).crons).toHaveLength(12);
  });
});

describe('PATCH and PUT /cron/:name', () => {
  it('change what they name and leave the rest', async () => {
    await create('a', { timezone: 'Europe/Paris', description: 'x', options: { priority: 3 } });
    const body = await server.ok(200, 'PATCH', `${CRON}/a`, { expression: '@daily' });
    expect(body.cron).toMatchObject({
      expression: '@daily',
      timezone: 'Europe/Paris',
      description: 'x',
      options: { queue: 'a', priority: 3 },
    });
    expect(body).toMatchObject({ expression: '@daily', name: 'a' });
    await server.ok(200, 'PUT', `${CRON}/a`, { args: [1, 2], priority: 9, description: null, limit: 5 });
    expect(await read('a')).toMatchObject({
      expression: '@daily',
      args: [1, 2],
      options: { queue: 'a', priority: 9 },
      limit: 5,
    });
    expect((await read('a')).description).toBeUndefined();
  });

  it('change single options and members of the template, and take away what is null', async () => {
    await create('a', { options: { priority: 3, tags: ['x'], timeout_ms: 1000 } });
    await server.ok(200, 'PATCH', `${CRON}/a`, { options: { priority: 4, tags: null } });
    expect(await read('a')).toMatchObject({ queue: 'a', options: { queue: 'a', priority: 4, timeout_ms: 1000 } });
    expect(((await read('a')).options as Json).tags ?? null).toBeNull();
    await server.ok(200, 'PATCH', `${CRON}/a`, { job_template: { args: [5], options: { timeout_ms: 2000 } } });
    expect(await read('a')).toMatchObject({
      job_template: { type: 'test.cron', args: [5], options: { queue: 'a', priority: 4, timeout_ms: 2000 } },
    });
    // Posting it again replaces it.
    await server.ok(200, 'POST', CRON, entry('a'));
    expect(((await read('a')).options as Json).priority ?? null).toBeNull();
  });

  it('take back an entry as it was shown, with one of its spellings changed', async () => {
    await create('a', { options: { priority: 3 } });
    const shown = await read('a');
    expect(await server.ok(200, 'PUT', `${CRON}/a`, shown)).toMatchObject({
      updated_at: iso(T0),
      options: { queue: 'a', priority: 3 },
    });
    expect(await server.ok(200, 'PUT', `${CRON}/a`, { ...shown, schedule: '0 5 * * *' })).toMatchObject({
      expression: '0 5 * * *',
    });
  });

  it('refuse another name, a wrong value and an entry that does not exist', async () => {
    await create('a');
    expect(await server.call('PATCH', `${CRON}/a`, { name: 'b' })).toMatchObject({
      status: 400,
      body: { error: { details: { field: 'name' } } },
    });
    expect(await server.call('PATCH', `${CRON}/a`, { cron: '* *' })).toMatchObject({
      status: 400,
      body: { error: { details: { field: 'cron' } } },
    });
    expect(await server.call('PATCH', `${CRON}/b`, { enabled: false })).toMatchObject({ status: 404 });
    expect(await server.call('PUT', `${CRON}/b`, { expression: '@daily' })).toMatchObject({ status: 404 });
    expect(await server.call('PATCH', `${CRON}/a`, {})).toMatchObject({ status: 200 });
  });

  it('made at the same time are all carried out', async () => {
    await create('a');
    await Promise.all([
      server.ok(200, 'PATCH', `${CRON}/a`, { description: 'x' }),
      server.ok(200, 'PATCH', `${CRON}/a`, { timezone: 'Asia/Tokyo' }),
      server.ok(200, 'PATCH', `${CRON}/a`, { limit: 9 }),
    ]);
    expect(await read('a')).toMatchObject({ description: 'x', timezone: 'Asia/Tokyo', limit: 9 });
  });
});

describe('DELETE /cron/:name', () => {
  it('deletes the entry, and leaves its jobs', async () => {
    await create('a');
    await new TestQueue('a').jumpTo(minute(1));
    expect(await server.ok(200, 'DELETE', `${CRON}/a`)).toMatchObject({
      deleted: true,
      name: 'a',
      cron: { name: 'a', run_count: 1 },
    });
    expect(await server.call('DELETE', `${CRON}/a`)).toMatchObject({ status: 404 });
    expect(await server.call('GET', `${CRON}/a`)).toMatchObject({ status: 404 });
    expect(await server.ok(200, 'GET', CRON)).toMatchObject({ count: 0 });
    await new TestQueue('a').jumpTo(minute(2));
    await new TestQueue('a').evict();
    await new TestQueue('a').jumpTo(minute(3));
    expect(await ticksOf('a')).toEqual([minute(1)]);
  });

  it('lets the name be used again, from the beginning', async () => {
    await create('a');
    await new TestQueue('a').jumpTo(minute(1));
    await server.ok(200, 'DELETE', `${CRON}/a`);
    expect(await create('a')).toMatchObject({ run_count: 0, created_at: iso(minute(1)) });
  });
});

describe('the routes of the admin UI', () => {
  it('answer bare entries', async () => {
    await create('a');
    expect(await server.ok(200, 'GET', '/ojs/v1/crons')).toMatchObject({
      items: [{ id: 'a' }],
      pagination: { total: 1 },
    });
    expect(await server.ok(200, 'GET', '/ojs/v1/crons/a')).toMatchObject({
      id: 'a',
      cron: '* * * * *',
      next_fires: expect.any(Array),
    });
    expect(await server.ok(200, 'PATCH', '/ojs/v1/crons/a', { enabled: false })).toMatchObject({
      id: 'a',
      enabled: false,
    });
    expect(await server.ok(200, 'PUT', '/ojs/v1/crons/a', { enabled: true })).toMatchObject({ id: 'a', enabled: true });
    await server.ok(204, 'DELETE', '/ojs/v1/crons/a');
    expect(await server.call('GET', '/ojs/v1/crons/a')).toMatchObject({ status: 404 });
  });
});

describe('paths', () => {
  it('may be percent-encoded, and is not found when no entry can have it', async () => {
    await create('a.b');
    expect(await server.ok(200, 'GET', `${CRON}/a%2Eb`)).toMatchObject({ name: 'a.b' });
    expect(await server.call('GET', `${CRON}/A%20b`)).toMatchObject({
      status: 404,
      body: { error: { code: 'not_found' } },
    });
    expect(await server.call('DELETE', `${CRON}/no_such_entry`)).toMatchObject({ status: 404 });
    expect(await server.call('POST', `${CRON}/a.b`)).toMatchObject({ status: 405 });
  });

  it.each(['trigger', 'pause', 'resume'])('%s answers 404 for an unknown entry', async (action) => {
    expect(await server.call('POST', `${CRON}/nobody/${action}`)).toMatchObject({ status: 404 });
  });
});

it('cron support is announced in the manifest', async () => {
  expect(await server.ok(200, 'GET', '/ojs/manifest')).toMatchObject({
    capabilities: { cron: true },
    extensions: expect.arrayContaining(['cron-groups']),
  });
});
