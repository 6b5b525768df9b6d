/** A Worker that holds the queue: its own routes, handlers, declarations, and other Workers that enqueue there. */
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { until } from '../support/clock';
import { type Json, TestServer, V1 } from '../support/server';

type Rpc = {
  fetch(request: Request): Promise<Response>;
  enqueue(type: string, args: unknown[], options?: Json): Promise<Json>;
  enqueueMany(jobs: Json[]): Promise<Json[]>;
  get(id: string): Promise<Json>;
  cancel(id: string): Promise<Json>;
  count(query?: Json): Promise<number>;
};
const { INSIDE, INSIDE_RPC } = env as unknown as { INSIDE: Fetcher; INSIDE_RPC: Rpc };

const inside = new TestServer((request) => INSIDE.fetch(request) as unknown as Promise<Response>);
const KEY = { Authorization: 'Bearer secret' };
const as = (authorization: string) =>
  new TestServer((request) => {
    const sent = new Request(request);
    sent.headers.set('Authorization', authorization);
    return INSIDE.fetch(sent) as unknown as Promise<Response>;
  });
const keyed = as(KEY.Authorization);
/** What a call was refused with. */
const errorOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error) => error,
  );
const own = (path: string) => INSIDE.fetch(`http://localhost${path}`);

const deployment = () => keyed.ok(200, 'GET', `${V1}/admin/deployment`);

describe('what a Worker declares', () => {
  it('takes effect by a request to its own routes, and a look at it changes nothing', async () => {
    for (let looks = 0; looks < 2; looks++) expect(await deployment()).toMatchObject({ in_effect: false });
    expect((await own('/nowhere')).status).toBe(404);
    await until(async () => (await deployment()).in_effect === true, 'what is declared is in effect');
    const { crons, webhooks, alerts } = await deployment();
    expect(crons).toEqual([{ name: 'nightly', state: 'declared', enabled: true }]);
    expect(webhooks).toMatchObject([{ name: 'ops', state: 'declared', active: true }]);
    expect(alerts).toMatchObject([{ name: 'mail is late', state: 'declared', active: true }]);
    const [rule] = (await keyed.ok(200, 'GET', `${V1}/admin/alerts`)).items as Json[];
    expect(rule).toMatchObject({ declared: 'mail is late', above: 3600, subscription_id: (webhooks as Json[])[0]?.id });
    const reset = { reset_webhooks: ['ops'], reset_alerts: true };
    expect(await keyed.ok(200, 'POST', `${V1}/admin/deployment/apply`, reset)).toMatchObject({ in_effect: true });
    const refused = await keyed.refusal('POST', `${V1}/admin/deployment/apply`, { reset_webhooks: ['nobody'] });
    expect(refused).toMatchObject({ status: 400, field: 'reset_webhooks' });
  });
});

describe('a Worker that holds the queue', () => {
  it('serves its own paths, and those of the queue', async () => {
    expect((await own('/nowhere')).status).toBe(404);
    expect(await (await own('/nowhere')).text()).toBe('404 Not Found');
    await inside.ok(401, 'GET', `${V1}/jobs`);
    await keyed.ok(200, 'GET', `${V1}/jobs`);
  });

  it('enqueues without key, and runs its own handlers', async () => {
    const job = (await (await own('/hello/Ada')).json()) as Json;
    expect(await keyed.jobIn(job.id as string, 'completed')).toMatchObject({
      result: 'Hello, Ada!',
      tags: ['greeting'],
    });
  });

  it('makes tokens for pages, which need no key', async () => {
    const job = (await (await own('/hello/Ada')).json()) as Json;
    const token = await (await own(`/token/${job.id}`)).text();
    const read = (path: string) =>
      INSIDE.fetch(`http://localhost${V1}${path}`, { headers: { Authorization: `Bearer ${token}` } });
    const { job_id } = (await (await read(`/jobs/${job.id}/result`)).json()) as Json;
    expect(job_id).toBe(job.id);
    expect((await read('/jobs')).status).toBe(403);
  });

  it('gets many jobs in one call, and one that fails harms no other', async () => {
    await own('/calls');
    const jobs = Array.from({ length: 50 }, (_, i) => ({
      type: i === 7 ? 'greeting.fail' : 'greeting.write',
      args: [i],
      options: { queue: 'mail', max_attempts: 2 },
    }));
    const ids = await keyed.addAll(jobs);
    for (const [i, id] of ids.entries()) if (i !== 7) await keyed.jobIn(id, 'completed');
    expect(await keyed.jobIn(ids[7] as string, 'retryable')).toMatchObject({ error: { message: 'no greeting' } });
    expect(await (await own('/calls')).json()).toBe(1);
  });

  it('has the queue below any path of its own', async () => {
    const mounted = `/tocsin${V1}/jobs`;
    const answer = await keyed.call('POST', mounted, { type: 'greeting.write', args: ['x'] });
    expect(answer.status).toBe(201);
    const location = answer.headers.get('Location') as string;
    expect(location).toBe(`${mounted}/${answer.body.job?.id}`);
    expect((await keyed.ok(200, 'GET', location)).job).toMatchObject({ type: 'greeting.write' });
    expect((await own('/tocsin/elsewhere')).status).toBe(404);
    await inside.ok(401, 'GET', mounted);
  });

  it('logs a browser in below that path, and nowhere else', async () => {
    const session = `/tocsin${V1}/admin/session`;
    const Origin = 'http://localhost';
    const login = await inside.call('POST', session, { key: 'secret' }, { Origin });
    const given = login.headers.get('Set-Cookie') as string;
    expect(given).toBe('tocsin_key.tocsin=secret; Path=/tocsin/; HttpOnly; SameSite=Strict');
    const Cookie = given.split(';')[0] as string;
    await inside.ok(200, 'GET', session, undefined, { Cookie });
    await inside.ok(201, 'POST', `/tocsin${V1}/queues`, { name: 'x' }, { Cookie, Origin });
    await inside.ok(200, 'POST', `/tocsin${V1}/queues/x/pause`, undefined, { Cookie, Origin });
    await inside.ok(401, 'POST', `/tocsin${V1}/queues/x/pause`, undefined, { Cookie });
    expect((await inside.call('DELETE', session)).headers.get('Set-Cookie')).toMatch(
      /^tocsin_key\.tocsin=; .*Path=\/tocsin\//,
    );
  });

  it('hides the keys of limits that its code declares from keys that may not see them', async () => {
    const { limits } = await as('Bearer watching').ok(200, 'GET', `${V1}/admin/deployment`);
    expect(limits).toEqual([
      { key: expect.stringMatching(/^\[redacted:[0-9a-f]{12}\]$/), declared: { concurrency: 2 } },
    ]);
  });

  it('has what its code declares, and says what an operator changed', async () => {
    await keyed.ok(200, 'PUT', `${V1}/queues/mail/config`, { concurrency: 61 });
    await keyed.ok(200, 'POST', `${V1}/cron/nightly/pause`);
    const shown = await until(
      async () => await keyed.ok(200, 'GET', `${V1}/admin/deployment`),
      () => 'the deployment',
    );
    expect(shown).toMatchObject({
      in_effect: true,
      handlers: ['greeting.write', 'greeting.fail'],
      queues: [
        { name: 'mail', declared: { concurrency: 60 }, operator: { concurrency: 61 }, changed: ['concurrency'] },
      ],
      limits: [{ key: 'stripe', declared: { concurrency: 2 } }],
      crons: [{ name: 'nightly', state: 'declared', enabled: false }],
    });
    await keyed.ok(200, 'PATCH', `${V1}/cron/nightly`, { expression: '@hourly' });
    expect((await keyed.ok(200, 'GET', `${V1}/admin/deployment`)).crons).toMatchObject([{ state: 'changed' }]);
    const reset = { reset_crons: ['nightly'] };
    expect(await keyed.ok(200, 'POST', `${V1}/admin/deployment/apply`, reset)).toMatchObject({
      crons: [{ name: 'nightly', state: 'declared', enabled: false }],
    });
    expect(await keyed.refusal('POST', `${V1}/admin/deployment/apply`, { reset_crons: ['hourly'] })).toEqual({
      status: 400,
      code: 'invalid_request',
      field: 'reset_crons',
    });
  });
});

describe('a worker inside the Worker that holds the queue', () => {
  it('can be run once the library that runs workers is imported', async () => {
    const run = (how: string) => own(`/run/pulled/${how}`);
    const refused = await run('plain');
    expect([refused.status, await refused.text()]).toEqual([
      500,
      expect.stringContaining("add import 'tocsin/client'"),
    ]);
    const job = await INSIDE_RPC.enqueue('here.work', [], { queue: 'pulled' });
    expect((await run('library')).status).toBe(204);
    expect(await INSIDE_RPC.get(job.id as string)).toMatchObject({ state: 'completed' });
  });
});

describe('another Worker of the account', () => {
  it('enqueues and looks by RPC, without key', async () => {
    const job = await INSIDE_RPC.enqueue('greeting.write', ['Grace'], { delay: '1h', queue: 'rpc' });
    expect(await INSIDE_RPC.get(job.id as string)).toMatchObject({ state: 'scheduled', args: ['Grace'] });
    await INSIDE_RPC.enqueueMany([{ type: 'later.on', args: [], options: { queue: 'rpc' } }]);
    expect(await INSIDE_RPC.count({ queue: 'rpc' })).toBe(2);
    expect(await INSIDE_RPC.cancel(job.id as string)).toMatchObject({ state: 'cancelled' });
    expect(await errorOf(INSIDE_RPC.cancel(job.id as string))).toMatchObject({
      name: 'ConflictError',
      code: 'conflict',
    });
    expect(await errorOf(INSIDE_RPC.enqueue('Not a type', []))).toMatchObject({
      name: 'InvalidJobError',
      details: { field: 'type' },
    });
  });

  it('has the whole interface behind the same binding', async () => {
    const trusted = new TestServer((request) => INSIDE_RPC.fetch(request));
    await trusted.ok(200, 'GET', `${V1}/admin/queues`);
  });
});
