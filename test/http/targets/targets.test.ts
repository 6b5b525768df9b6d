/** Handler Workers as the queues see them, and trying one now that was stopped. */

import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Env, readConfig } from '../../../src/config';
import { liveClient } from '../../client/live-client';
import { counting } from '../../support/calls';
import { clock, until } from '../../support/clock';
import { forgetMany, listMany } from '../../support/directory';
import { handler } from '../../support/handlers';
import { freshName } from '../../support/queue';
import { type Json, server, TestServer, UNKNOWN_ID, V1 } from '../../support/server';

clock.restoreAfterEach();

const calls = async () => (await handler<{ calls: number }>('DOWN', '/calls')).calls;

/** Has a queue stop the Worker that is not running; the job that waits. */
async function stopIn(queue: string): Promise<string> {
  const id = await server.add('down.order', [], { queue });
  await until(
    async () => (await server.events({ queue, types: 'queue.push_suspended' })).length > 0,
    'the target to be stopped',
  );
  return id;
}

const target = (name: string, query = '') => server.ok(200, 'GET', `${V1}/targets/${name}${query}`);

describe('targets', () => {
  server.emptyBeforeEach();
  beforeEach(async () => {
    await handler('DOWN', '/down');
  });

  it('are listed with their patterns, before any queue has met them', async () => {
    const body = await server.ok(200, 'GET', `${V1}/targets`);
    const items = body.items as Json[];
    expect(items.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['WORK', 'PLAIN', 'RAW', 'FICKLE', 'DEPLOYED', 'DOWN']),
    );
    expect(new Set(items.map(({ name }) => name)).size).toBe(items.length);
    expect(items.find(({ name }) => name === 'WORK')).toEqual({
      name: 'WORK',
      patterns: ['work.*', 'handled/*', 'owned/work.*'],
      state: 'up',
      queue_states: { up: 0, paused: 0, stopped: 0 },
    });
    expect(items.find(({ name }) => name === 'PLAIN')?.patterns).toEqual(
      expect.arrayContaining(['plain.*', 'bare.*', 'patient.*', 'wide.*']),
    );
    expect(body).toMatchObject({ total: items.length, queues_asked: 0, next_cursor: null });
  });

  it('tell what they announced, and which queue sees them in which state', async () => {
    const [works, stops] = [freshName('works'), freshName('stops')];
    await server.jobIn(await server.add('work.do', [{}], { queue: works }), 'completed');
    await stopIn(stops);
    expect(await target('WORK')).toMatchObject({
      state: 'up',
      types: [
        ...[
          'work.approve',
          'work.child',
          'work.do',
          'work.family',
          'work.large',
          'work.narrow',
          'work.pair',
          'work.patient',
          'work.race',
          'work.steps',
          'work.talk',
          'work.tries',
          'work.undone',
          'work.undone.undo',
        ],
      ],
      queue_states: { up: 2, paused: 0, stopped: 0 },
      queues: [
        { queue: stops, state: 'up' },
        { queue: works, state: 'up', asked_at: expect.any(String) },
      ],
    });
    const down = await target('DOWN');
    expect(down).toMatchObject({
      state: 'stopped',
      last_error: 'The handler Worker is not running.',
      queue_states: { up: 1, paused: 0, stopped: 1 },
    });
    const seen = (down.queues as Json[]).find(({ queue }) => queue === stops) as Json;
    expect(Date.parse(seen.next_try_at as string) - Date.parse(seen.last_tried_at as string)).toBe(60_000);
    expect(Date.parse(seen.since as string)).toBeLessThan(Date.parse(seen.last_tried_at as string));
    expect(await target('DOWN', `?queue=${works}`)).toMatchObject({ state: 'up', queues_asked: 1 });
    expect(await server.ok(200, 'GET', `${V1}/admin/targets/DOWN`)).toMatchObject({ state: 'stopped' });
  });

  it('that are not there are not found', async () => {
    for (const [method, path] of [
      ['GET', 'targets/NOBODY'],
      ['POST', 'targets/NOBODY/resume'],
      ['POST', 'admin/targets/NOBODY/resume'],
    ] as const) {
      expect(await server.refusal(method, `${V1}/${path}`)).toEqual({ status: 404, code: 'not_found' });
    }
    expect(await server.refusal('GET', `${V1}/targets?queue=No%20Queue`)).toMatchObject({ status: 400 });
    expect(await server.refusal('GET', `${V1}/targets?cursor=${UNKNOWN_ID}`)).toMatchObject({ status: 400 });
  });

  it('that are stopped are tried at once in all queues that stopped them, and get their jobs', async () => {
    const queues = [freshName('back'), freshName('back')];
    const ids = [await stopIn(queues[0] as string), await stopIn(queues[1] as string)];
    await server.jobIn(await server.add('work.do', [{}], { queue: freshName('other') }), 'completed');
    const before = await calls();
    expect(await server.ok(200, 'POST', `${V1}/targets/DOWN/resume`)).toMatchObject({
      name: 'DOWN',
      queues_asked: 3,
      tried: 2,
      resumed: 0,
      queues: [
        { queue: queues[0], state: 'stopped', last_error: 'The handler Worker is not running.' },
        { queue: queues[1], state: 'stopped' },
      ],
    });
    expect(await calls()).toBe(before + 2);
    await handler('DOWN', '/up');
    expect(await server.ok(200, 'POST', `${V1}/admin/targets/DOWN/resume`)).toMatchObject({ tried: 2, resumed: 2 });
    for (const id of ids) expect(await server.jobIn(id, 'completed')).toMatchObject({ attempt: 1 });
    expect(await target('DOWN')).toMatchObject({ state: 'up', queue_states: { up: 3 } });
    expect(await server.ok(200, 'POST', `${V1}/targets/DOWN/resume`)).toMatchObject({ tried: 0, resumed: 0 });
  });

  it('are tried in the queues that the request names, and not in others', async () => {
    const [first, second] = [freshName('named'), freshName('named')];
    await stopIn(first);
    await stopIn(second);
    const before = await calls();
    const path = `${V1}/targets/DOWN/resume?queue=${second}`;
    expect(await server.ok(200, 'POST', path)).toMatchObject({ queues_asked: 1, tried: 1 });
    expect(await calls()).toBe(before + 1);
  });

  it('are resumed only with the scope of operators', async () => {
    const keys = JSON.stringify([{ key: 'reader', scopes: ['data:read', 'data:write', 'admin:read'] }]);
    const guarded = TestServer.with({ API_KEYS: keys });
    const auth = { Authorization: 'Bearer reader' };
    expect((await guarded.call('GET', `${V1}/targets`, undefined, auth)).status).toBe(200);
    const refused = await guarded.call('POST', `${V1}/targets/DOWN/resume`, undefined, auth);
    expect(refused).toMatchObject({ status: 403, body: { error: { details: { required_scope: 'admin:write' } } } });
  });

  it('are read in a limited number of queues at once, with a cursor for the rest; to resume in more, they must be named', async () => {
    await listMany(250);
    try {
      const counted = counting();
      const first = await counted.server.ok(200, 'GET', `${V1}/targets`);
      expect(first).toMatchObject({ queues_asked: 200, next_cursor: expect.any(String) });
      expect(counted.take()).toHaveLength(201);
      const second = await server.ok(200, 'GET', `${V1}/targets?cursor=${first.next_cursor}`);
      expect(second).toMatchObject({ queues_asked: 50, next_cursor: null });
      expect(await server.refusal('POST', `${V1}/targets/DOWN/resume`)).toMatchObject({ status: 422 });
    } finally {
      await forgetMany();
    }
  });

  it('are notified of although a queue cannot be asked', async () => {
    const [works, broken] = [freshName('asked'), freshName('broken')];
    for (const queue of [works, broken]) await server.add('test.job', [], { queue });
    const partly = counting((call) => call === `${broken}.targets`).server;
    expect(await partly.ok(200, 'GET', `${V1}/targets`)).toMatchObject({ queues_asked: 2, unreachable: [broken] });
  });

  it('can be listed, read and resumed through the client', async () => {
    const queue = freshName('client');
    const id = await stopIn(queue);
    const { targets, jobs } = liveClient();
    expect((await jobs.get(id)).waitingFor).toMatchObject({ reason: 'handler_down', until: expect.any(String) });
    expect((await targets.list()).find(({ name }) => name === 'DOWN')).toMatchObject({ state: 'stopped' });
    expect((await targets.get('DOWN', { queues: [queue] })).queues).toMatchObject([
      { queue, state: 'stopped', nextTryAt: expect.any(String), lastError: expect.any(String) },
    ]);
    await handler('DOWN', '/up');
    expect(await targets.resume('DOWN')).toMatchObject({ tried: 1, resumed: 1 });
    await server.jobIn(id, 'completed');
    await expect(targets.resume('NOBODY')).rejects.toMatchObject({ name: 'NotFoundError' });
  });
});

/** A new queue in an object that is configured as on a developer's machine. */
async function developing(): Promise<string> {
  const queue = freshName('dev');
  await server.configure(queue, { concurrency: 10 });
  await runInDurableObject(env.QUEUES.getByName(queue), (instance) => {
    const { life } = instance as unknown as { life: { env: object; opened: unknown; open(): unknown } };
    life.env = { ...life.env, MAX_HANDLER_PAUSE_MS: undefined };
    life.opened = life.open();
  });
  return queue;
}

describe('on a developer’s machine', () => {
  it('a handler that comes back is found again within two seconds', async () => {
    await handler('DOWN', '/down');
    const queue = await developing();
    const id = await stopIn(queue);
    const { next_try_at, last_tried_at } = ((await target('DOWN', `?queue=${queue}`)).queues as Json[])[0] as Json;
    expect(Date.parse(next_try_at as string) - Date.parse(last_tried_at as string)).toBe(1_000);
    await handler('DOWN', '/up');
    await server.jobIn(id, 'completed', 2_000);
  });

  it('a handler that failed when it was asked is asked again at once, so a new type is found', async () => {
    const queue = await developing();
    const announce = (type: string, status = 200) =>
      handler('FICKLE', `/announce?status=${status}`, JSON.stringify({ types: [{ type }], payload: 'batch' }));
    await announce('fickle.known');
    await server.jobIn(await server.add('fickle.known', [], { queue }), 'completed');
    await announce('fickle.known', 500);
    const id = await server.add('fickle.new', [], { queue });
    const waits = await until(async () => {
      const found = (await server.job(id)).waiting_for as Json | undefined;
      return found?.until !== undefined && found;
    }, 'the handler to have been asked');
    expect(waits).toMatchObject({ reason: 'no_handler' });
    expect(Date.parse(waits.until as string)).toBeLessThanOrEqual(Date.now() + 1_000);
    await announce('fickle.new');
    await server.jobIn(id, 'completed', 2_000);
  });

  it('is where requests need no key, unless a variable says how long a handler is not changed', () => {
    const read = (variables: Json) => readConfig({ ...(env as unknown as Env), ...variables } as Env).longestPauseMs;
    const asDeveloper = { MAX_HANDLER_PAUSE_MS: undefined, ALLOW_LOCALHOST: 'true' };
    expect(read(asDeveloper)).toBe(1_000);
    expect(read({ ...asDeveloper, API_KEYS: 'secret' })).toBeUndefined();
    expect(read({ ...asDeveloper, ALLOW_LOCALHOST: undefined })).toBeUndefined();
    expect(read({ MAX_HANDLER_PAUSE_MS: '5000' })).toBe(5_000);
    for (const wrong of ['99', '60001', '1.5', 'soon']) {
      expect(() => read({ MAX_HANDLER_PAUSE_MS: wrong }), wrong).toThrow('MAX_HANDLER_PAUSE_MS');
    }
  });
});
