/** Webhooks and alert rules in code, put into effect beside those that operators make. */
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { applyDeclared } from '../../src/across/deployment';
import type { Env } from '../../src/config';
import type { Declared } from '../../src/declaration';
import { freshName } from '../support/queue';
import { type Json, server, V1 } from '../support/server';
import { Receiver, subscribe } from '../support/webhooks';

server.emptyBeforeEach();

const LIST = `${V1}/webhooks/subscriptions`;
const ALERTS = `${V1}/admin/alerts`;

const none = { webhooks: new Set<string>(), alerts: new Set<string>() };
const deploy = (change: Partial<Declared>, variables: Json = {}, again: Partial<typeof none> = {}) =>
  applyDeclared(
    { ...env, ...variables } as unknown as Env,
    { queues: {}, limits: {}, crons: {}, ...change },
    Date.now(),
    new Set(),
    { ...none, ...again },
  );
const webhooks = async () => (await server.ok(200, 'GET', LIST)).items as Json[];
const alerts = async () => (await server.ok(200, 'GET', ALERTS)).items as Json[];

const hook = (change: Json = {}): Json => ({ url: 'https://ops.example/hook', events: ['alert.*'], ...change });
const rule = (change: Json = {}): Json => ({ metric: 'depth', above: 0, ...change });

describe('webhooks and alert rules in code', () => {
  it('are made, and what they tell reaches the receiver in its form', async () => {
    const [receiver, other, queue] = [new Receiver(), new Receiver(), freshName('watched')];
    await subscribe(other, { events: ['alert.*'] });
    const format = { template: { said: '{{data.name}} in {{data.queue}}' } };
    await deploy(
      {
        webhooks: {
          ops: { url: { env: 'OPS_URL' }, events: ['job.discarded'], format, secret: { env: 'OPS_SECRET' } },
        },
        alerts: { 'too deep': rule({ queue, webhook: 'ops' }) },
      },
      { OPS_URL: receiver.url, OPS_SECRET: 'a secret of its own'.replaceAll(' ', '-') },
    );
    expect(await webhooks()).toContainEqual(
      expect.objectContaining({ declared: 'ops', format, events: ['job.discarded'] }),
    );
    const [made] = await alerts();
    expect(made).toMatchObject({ name: 'too deep', declared: 'too deep', queue, metric: 'depth', above: 0 });
    await server.enqueue(queue);
    const [arrival] = await receiver.received(1);
    expect(arrival?.event).toEqual({ said: `too deep in ${queue}` });
    expect(arrival?.headers['x-ojs-signature']).toMatch(/^sha256=/);
    expect(await other.arrivals()).toEqual([]);
  });

  it('follow the code, and end with it; those made over HTTP stay as they are', async () => {
    const own = await subscribe(new Receiver(), { events: ['queue.*'] });
    const ownRule = await server.ok(201, 'POST', ALERTS, { name: 'own', ...rule() });
    await deploy({ webhooks: { a: hook(), b: hook() }, alerts: { one: rule({ webhook: 'a' }), two: rule() } });
    const before = await webhooks();
    await deploy({
      webhooks: { a: hook({ url: 'https://ops.example/moved', format: 'slack' }) },
      alerts: { one: rule({ above: 7, webhook: 'a' }) },
    });
    const [first, second] = (await webhooks()).filter(({ id }) => id !== own.id);
    expect(first).toMatchObject({ declared: 'a', url: 'https://ops.example/moved', format: 'slack' });
    expect(first?.id).toBe(before.find(({ declared }) => declared === 'a')?.id);
    expect(second).toBeUndefined();
    expect((await alerts()).map(({ name, above }) => [name, above])).toEqual([
      ['own', 0],
      ['one', 7],
    ]);
    await deploy({ webhooks: { a: hook({ url: 'https://ops.example/moved' }) } });
    expect((await webhooks()).find(({ declared }) => declared === 'a')).not.toHaveProperty('format');
    await deploy({});
    expect(await webhooks()).toMatchObject([{ id: own.id, events: ['queue.*'] }]);
    expect(await alerts()).toMatchObject([{ id: ownRule.id, name: 'own' }]);
  });

  it('keep what an operator did: switched off, changed, deleted', async () => {
    const code = { off: hook(), changed: hook(), deleted: hook() };
    const rules = { off: rule(), changed: rule(), deleted: rule() };
    await deploy({ webhooks: code, alerts: rules });
    for (const [path, all] of [
      [LIST, await webhooks()],
      [ALERTS, await alerts()],
    ] as const) {
      const idOf = (name: string) => all.find(({ declared }) => declared === name)?.id;
      await server.ok(200, 'PATCH', `${path}/${idOf('off')}`, { active: false });
      const change = path === LIST ? { events: ['*'] } : { above: 99 };
      await server.ok(200, 'PATCH', `${path}/${idOf('changed')}`, change);
      await server.ok(204, 'DELETE', `${path}/${idOf('deleted')}`);
    }
    const next = hook({ url: 'https://ops.example/next' });
    const again: Partial<Declared> = {
      webhooks: { off: next, changed: next, deleted: next },
      alerts: { off: rule({ above: 1 }), changed: rule({ above: 1 }), deleted: rule({ above: 1 }) },
    };
    await deploy(again);
    expect((await webhooks()).map(({ declared, active, url, events }) => [declared, active, url, events])).toEqual([
      ['off', false, next.url, ['alert.*']],
      ['changed', true, 'https://ops.example/hook', ['*']],
    ]);
    expect((await alerts()).map(({ declared, active, above }) => [declared, active, above])).toEqual([
      ['off', false, 1],
      ['changed', true, 99],
    ]);
    const names = new Set(['changed', 'deleted']);
    await deploy(again, {}, { webhooks: names, alerts: names });
    expect((await webhooks()).map(({ declared, url }) => [declared, url])).toEqual([
      ['off', next.url],
      ['changed', next.url],
      ['deleted', next.url],
    ]);
    expect((await alerts()).map(({ above }) => above)).toEqual([1, 1, 1]);
  });

  it('hold up nothing else where one cannot be put into effect, and are tried again', async () => {
    const declared: Partial<Declared> = {
      queues: { mail: { concurrency: 3 } },
      webhooks: { slack: hook({ url: { env: 'SLACK_URL' }, format: 'slack' }), fine: hook() },
      alerts: { late: rule({ webhook: 'slack' }), deep: rule() },
    };
    const { declaration } = await deploy(declared);
    expect(declaration?.problems).toEqual([
      'webhooks.slack: url: the variable SLACK_URL is not set.',
      expect.stringMatching(/^alerts\.late: its webhook slack does not exist/),
    ]);
    expect((await webhooks()).map((one) => one.declared)).toEqual(['fine']);
    expect((await alerts()).map(({ name }) => name)).toEqual(['deep']);
    expect((await server.ok(200, 'GET', `${V1}/queues/mail/config`)).effective).toMatchObject({ concurrency: 3 });
    const set = await deploy(declared, { SLACK_URL: 'https://hooks.slack.com/services/x' });
    expect(set.declaration).not.toHaveProperty('problems');
    expect((await alerts()).map(({ name }) => name)).toEqual(['deep', 'late']);
  });

  it('are created once, also where two isolates apply them at once or the first was cut off', async () => {
    const declared = { webhooks: { a: hook() }, alerts: { one: rule({ webhook: 'a' }) } };
    await Promise.all([deploy(declared), deploy(declared)]);
    expect([(await webhooks()).length, (await alerts()).length]).toEqual([1, 1]);
  });

  it('have the secret that the code says, and an own one otherwise', async () => {
    const receiver = new Receiver();
    await deploy({ webhooks: { a: hook({ url: receiver.url, secret: 'first-secret-of-ops' }) } });
    const [{ id } = {}] = await webhooks();
    await deploy({ webhooks: { a: hook({ url: receiver.url, secret: 'other-secret-of-ops' }) } });
    expect((await webhooks())[0]).toMatchObject({ id, former_secret_until: expect.any(String) });
    expect(JSON.stringify(await server.ok(200, 'GET', `${V1}/admin/deployment`))).not.toContain('secret-of-ops');
  });
});
