/** What the code of a deployment declares, put into effect beside what operators do. */
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { applyDeclared } from '../../src/across/deployment';
import type { Env } from '../../src/config';
import type { Declared } from '../../src/declaration';
import { directoryObject } from '../../src/rpc/stubs';
import { clock } from '../support/clock';
import { type Json, server, V1 } from '../support/server';

server.emptyBeforeEach();
clock.startAtT0();

const deploy = (change: Partial<Declared>, again?: string[]) =>
  applyDeclared(env as unknown as Env, { queues: {}, limits: {}, crons: {}, ...change }, Date.now(), new Set(again));

const settings = async (queue: string) => await server.ok(200, 'GET', `${V1}/queues/${queue}/config`);
const cron = async (name: string): Promise<Json | undefined> =>
  (await server.call('GET', `${V1}/cron/${name}`)).body.cron as Json | undefined;

describe('settings of queues', () => {
  it('hold in queues that are there and in those to come, below what an operator sets', async () => {
    await server.enqueue('mail');
    await server.ok(200, 'PUT', `${V1}/queues/mail/config`, { visibility_timeout: 60 });
    await deploy({
      queues: {
        mail: { concurrency: 3, visibility_timeout_ms: 5_000 },
        later: { concurrency: 4 },
      },
    });
    expect(await settings('mail')).toMatchObject({
      config: { visibility_timeout: 60 },
      declared: { concurrency: 3, visibility_timeout: 5 },
      effective: { concurrency: 3, visibility_timeout: 60 },
    });
    expect(await settings('later')).toMatchObject({
      config: {},
      declared: { concurrency: 4 },
      effective: { concurrency: 4 },
    });
    await server.enqueue('later');
    expect(await settings('later')).toMatchObject({ effective: { concurrency: 4 } });
    expect((await settings('other')).declared).toBeUndefined();
  });

  it('follow the next deploy, and end with the declaration', async () => {
    await server.enqueue('mail');
    await deploy({ queues: { mail: { concurrency: 3 } } });
    await deploy({ queues: { mail: { concurrency: 5 } } });
    expect(await settings('mail')).toMatchObject({ effective: { concurrency: 5 } });
    await server.ok(200, 'PUT', `${V1}/queues/_default/config`, { concurrency: 7 });
    expect(await settings('mail')).toMatchObject({ effective: { concurrency: 5 } });
    await deploy({});
    expect(await settings('mail')).toMatchObject({ effective: { concurrency: 7 } });
    expect((await settings('mail')).declared).toBeUndefined();
  });

  it('cost one question when nothing has changed', async () => {
    const declared: Declared = { queues: { mail: { concurrency: 3 } }, limits: {}, crons: {} };
    const first = await deploy(declared);
    const asked: string[] = [];
    const watched = new Proxy(directoryObject(env as unknown as Env), {
      get(directory, verb) {
        asked.push(String(verb));
        return Reflect.get(directory, verb);
      },
    });
    const here = { DIRECTORY: { getByName: () => watched } } as unknown as Env;
    expect(await applyDeclared(here, declared, Date.now() + 1000)).toEqual(first);
    expect(asked).toEqual(['declaration']);
  });
});

describe('a deploy that is cut off', () => {
  it('leaves nothing behind when the code before is deployed again', async () => {
    await server.enqueue('mail');
    const first: Declared = { queues: { mail: { concurrency: 3 } }, limits: {}, crons: {} };
    await deploy(first);
    const lost = { getByName: () => ({ cron: () => Promise.reject(new Error('lost')) }) };
    const here = { ...env, QUEUES: lost } as unknown as Env;
    const nightly = { expression: '@daily', job_template: { type: 'a.b', args: [] } };
    const next: Declared = { queues: { mail: { concurrency: 5 } }, limits: {}, crons: { nightly } };
    await directoryObject(env as unknown as Env).placeCron('nightly', 'default');
    await expect(applyDeclared(here, next, Date.now())).rejects.toThrow('lost');
    expect(await settings('mail')).toMatchObject({ effective: { concurrency: 5 } });
    await deploy(first);
    expect(await settings('mail')).toMatchObject({ effective: { concurrency: 3 } });
  });
});

describe('limits of keys', () => {
  const limited = { options: { rate_limit: { key: 'stripe', concurrency: 10 } } };

  it('stand in the place of what jobs say, and a later deploy lets jobs start that waited', async () => {
    await deploy({ limits: { stripe: { concurrency: 0 } } });
    await server.enqueue('pay', limited);
    await server.enqueue('pay', limited);
    await server.enqueue('pay', limited);
    expect(await server.take('pay', { count: 10 })).toEqual([]);
    await deploy({ limits: { stripe: { concurrency: 2 } } });
    expect(await server.take('pay', { count: 10 })).toHaveLength(2);
    await deploy({});
    expect(await server.take('pay', { count: 10 })).toHaveLength(1);
  });

  it('give way to an operator, and come back when the override ends', async () => {
    await deploy({ limits: { stripe: { concurrency: 1 } } });
    for (let i = 0; i < 4; i++) await server.enqueue('pay', limited);
    await server.ok(200, 'PUT', `${V1}/rate-limits/stripe/override`, { concurrency: 0 });
    expect(await server.take('pay', { count: 10 })).toEqual([]);
    await server.ok(204, 'DELETE', `${V1}/rate-limits/stripe/override`);
    expect(await server.take('pay', { count: 10 })).toHaveLength(1);
  });
});

describe('schedules', () => {
  const nightly = (change: Json = {}): Json => ({
    expression: '0 2 * * *',
    job_template: { type: 'report.build', args: [], options: { queue: 'reports' } },
    ...change,
  });

  it('are made, changed and removed with the code', async () => {
    await deploy({ crons: { nightly: nightly(), weekly: nightly({ expression: '@weekly' }) } });
    expect(await cron('nightly')).toMatchObject({ expression: '0 2 * * *', group: 'deployment' });
    await deploy({ crons: { nightly: nightly({ expression: '0 3 * * *' }) } });
    expect(await cron('nightly')).toMatchObject({ expression: '0 3 * * *' });
    expect(await cron('weekly')).toBeUndefined();
  });

  it('keep what an operator did: paused, changed, deleted', async () => {
    await deploy({ crons: { paused: nightly(), changed: nightly(), deleted: nightly() } });
    await server.ok(200, 'POST', `${V1}/cron/paused/pause`);
    await server.ok(200, 'PATCH', `${V1}/cron/changed`, { expression: '@hourly' });
    await server.ok(200, 'DELETE', `${V1}/cron/deleted`);
    const next = nightly({ expression: '0 4 * * *' });
    await deploy({ crons: { paused: next, changed: next, deleted: next } });
    expect(await cron('paused')).toMatchObject({ enabled: false, expression: '0 4 * * *' });
    expect(await cron('changed')).toMatchObject({ expression: '@hourly' });
    expect(await cron('deleted')).toBeUndefined();
    await deploy({ crons: { paused: next, changed: next, deleted: next } }, ['changed', 'deleted']);
    expect(await cron('changed')).toMatchObject({ expression: '0 4 * * *' });
    expect(await cron('deleted')).toMatchObject({ expression: '0 4 * * *' });
    await server.ok(200, 'PATCH', `${V1}/cron/changed`, { expression: '@hourly' });
    await deploy({});
    expect(await cron('changed')).toMatchObject({ expression: '@hourly' });
    expect(await cron('deleted')).toBeUndefined();
  });

  it('leave an entry of the same name alone, unless it says the same', async () => {
    await server.ok(201, 'POST', `${V1}/cron`, { name: 'other', ...nightly({ expression: '@daily' }) });
    await server.ok(201, 'POST', `${V1}/cron`, { name: 'same', ...nightly() });
    await deploy({ crons: { other: nightly(), same: nightly() } });
    expect(await cron('other')).toMatchObject({ expression: '@daily' });
    expect(await cron('same')).toMatchObject({ group: 'deployment' });
    await deploy({});
    expect(await cron('other')).toMatchObject({ expression: '@daily' });
    expect(await cron('same')).toBeUndefined();
  });

  it('that are wrong change nothing, and are named', async () => {
    await deploy({ crons: { nightly: nightly() } });
    const wrong = deploy({
      queues: { mail: { concurrency: 3 } },
      crons: { nightly: nightly({ expression: 'often' }) },
    });
    await expect(wrong).rejects.toMatchObject({
      data: { code: 'invalid_configuration', message: expect.stringMatching(/^crons\.nightly: expression/) },
    });
    expect(await cron('nightly')).toMatchObject({ expression: '0 2 * * *' });
    expect((await settings('mail')).declared).toBeUndefined();
  });

  it('that were cut off are made by the next try', async () => {
    const lost = new Proxy(env as unknown as Env, {
      get: (target, name) =>
        name === 'QUEUES'
          ? {
              getByName: () => ({
                putCron: () => Promise.reject(new Error('lost')),
                cron: () => Promise.reject(new Error('lost')),
              }),
            }
          : Reflect.get(target, name),
    });
    await expect(
      applyDeclared(lost, { queues: {}, limits: {}, crons: { nightly: nightly() } }, Date.now()),
    ).rejects.toThrow('lost');
    expect(await cron('nightly')).toBeUndefined();
    await deploy({ crons: { nightly: nightly() } });
    expect(await cron('nightly')).toMatchObject({ expression: '0 2 * * *' });
  });
});
