/** Tags of jobs and the keys that they count under, where the rules of the deployment name them. */
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import type { Env } from '../../../src/config';
import { createApp } from '../../../src/http/app';
import { freshName } from '../../support/queue';
import { type Json, server, TestServer, V1 } from '../../support/server';
import { StreamReader } from '../../support/streams';

server.emptyBeforeEach();

const TAG = 'patient-4711';
const KEY = 'account:4711';
const NAMES = new RegExp(`${TAG}|${KEY}`);
const API_KEYS = JSON.stringify([
  { key: 'viewer', role: 'viewer' },
  { key: 'operator', role: 'operator' },
  { key: 'admin', role: 'admin' },
]);
const app = createApp();

/** The deployment with these rules, as somebody sees it who has this key. */
const as = (key: string, more: Json = {}) => {
  const variables = { ...env, API_KEYS, REDACT: 'tags rate_limit.key', ...more } as unknown as Env;
  return new TestServer((request) => {
    const sent = new Request(request);
    sent.headers.set('Authorization', `Bearer ${key}`);
    return app.fetch(sent, variables);
  });
};
const [viewer, operator, admin] = [as('viewer'), as('operator'), as('admin')];

const LIMITED = {
  tags: [TAG, 'nightly'],
  group: KEY,
  rate_limit: { key: KEY, concurrency: 1, rate: 9, period: 'PT1M' },
};
const pseudonym = expect.stringMatching(/^\[redacted:[0-9a-f]{12}\]$/);

const tagsOf = ({ job }: Json) => (job as { tags: string[] }).tags;

/** Texts of these answers, of which none may name what is hidden; how many of them do for whoever sees everything. */
async function see(paths: string[]): Promise<number> {
  const texts = (from: TestServer) =>
    Promise.all(paths.map(async (path) => JSON.stringify((await from.call('GET', V1 + path)).body)));
  for (const [place, text] of (await texts(viewer)).entries())
    expect([paths[place], text]).not.toEqual([paths[place], expect.stringMatching(NAMES)]);
  return (await texts(admin)).filter((text) => NAMES.test(text)).length;
}

describe('tags and keys of limits that the rules name', () => {
  it('are hidden in every answer about jobs, schedules, workflows and limits', async () => {
    const queue = freshName();
    const options = { queue, ...LIMITED };
    const dead = { retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } };
    const [failing, waiting] = [
      await server.enqueue(queue, { options: { ...options, ...dead } }),
      await server.enqueue(queue, { options }),
    ];
    await server.take(queue);
    await server.nack(failing, { error: { code: 'E', message: 'm', retryable: false } });
    await server.take(queue);
    const last = await server.enqueue(queue, { options });
    const template = { type: 'a', args: [], options };
    await server.ok(201, 'POST', `${V1}/cron`, { name: 'nightly', cron: '0 3 * * *', job_template: template });
    const { id: flow } = await server.ok(201, 'POST', `${V1}/workflows`, {
      name: 'flow',
      steps: [{ id: 'one', type: 'a', args: [], options: { ...options, queue: freshName() } }],
    });
    const about = [failing, waiting, last].flatMap((id) => [
      ...[`/jobs/${id}`, `/admin/jobs/${id}`, `/admin/jobs/${id}?timeline=true`, `/jobs/${id}/history`],
    ]);
    const seen = await see([
      ...about,
      ...[`/jobs?queue=${queue}`, `/admin/jobs?queue=${queue}`, `/admin/jobs?queue=${queue}&q=nightly`],
      ...[`/dead-letter?queue=${queue}`, `/dead-letter/${failing}`, `/admin/dead-letter?queue=${queue}`],
      ...[`/admin/failures?queue=${queue}`, '/cron', '/crons', '/cron/nightly', '/workflows', `/workflows/${flow}`],
      ...['/rate-limits', `/rate-limits?queue=${queue}`, '/rate-limits?per_page=1', '/rate-limits?limit=1'],
      ...[
        `/queues/${queue}`,
        `/queues/${queue}/groups`,
        `/queues/${queue}/stats`,
        `/admin/queues/${queue}?include=recent`,
        '/unique-jobs',
      ],
      ...[`/events?queue=${queue}`, '/admin/stats', '/metrics', '/admin/deployment', '/admin/audit'],
    ]);
    expect(seen).toBeGreaterThanOrEqual(18);
    expect((await viewer.ok(200, 'GET', `${V1}/jobs/${last}`)).job).toMatchObject({
      tags: [pseudonym, pseudonym],
      rate_limit: { key: pseudonym, concurrency: 1, rate: 9 },
    });
  });

  it('are distinguished by pseudonyms, which differ under other keys of the deployment', async () => {
    const queue = freshName();
    const ids = await Promise.all(
      [TAG, TAG, 'patient-4712'].map((tag) => server.enqueue(queue, { options: { queue, tags: [tag] } })),
    );
    const tagsFor = (from: TestServer) =>
      Promise.all(ids.map(async (id) => tagsOf(await from.ok(200, 'GET', `${V1}/jobs/${id}`))[0]));
    const [one, same, other] = await tagsFor(viewer);
    expect(same).toBe(one);
    expect(other).not.toBe(one);
    const rotated = JSON.stringify([
      { key: 'viewer', role: 'viewer' },
      { key: 'another', role: 'admin' },
    ]);
    expect((await tagsFor(as('viewer', { API_KEYS: rotated })))[0]).not.toBe(one);
    expect(await tagsFor(admin)).toEqual([TAG, TAG, 'patient-4712']);
  });

  it('are not named by what a job waits for', async () => {
    const queue = freshName();
    const options = { queue, ...LIMITED };
    const add = () => server.enqueue(queue, { options });
    const [, second] = [await add(), await add()];
    await server.take(queue);
    const why = async (id: string) =>
      ((await viewer.ok(200, 'GET', `${V1}/jobs/${id}`)).job as { waiting_for: { key: string; detail: string } })
        .waiting_for;
    const full = await why(second);
    expect(full).toMatchObject({ reason: 'key_limit', key: pseudonym });
    expect(full.detail).toBe(`It counts under the key ${full.key}, whose limit is reached: 1 of 1 jobs run.`);
    await server.ok(200, 'PUT', `${V1}/rate-limits/${KEY}`, { concurrency: 0 });
    const stopped = await why(second);
    expect(stopped.detail).toBe(
      `An operator has stopped the key ${full.key}. DELETE /rate-limits/${full.key}/override to resume.`,
    );
    const { job } = await admin.ok(200, 'GET', `${V1}/jobs/${second}`);
    expect(job?.waiting_for).toMatchObject({
      key: KEY,
      detail: expect.stringContaining(`/rate-limits/${KEY}/override`),
    });
  });

  it('are not named by what a job of a group waits for, however long the name of the group', async () => {
    const queue = freshName();
    await server.configure(queue, { groups: { order: 'strict' } });
    const group = `"${'患'.repeat(200)}`;
    const add = () => server.enqueue(queue, { options: { queue, group } });
    const [first, second] = [await add(), await add()];
    await server.take(queue);
    const { waiting_for: why } = (await viewer.ok(200, 'GET', `${V1}/jobs/${second}`)).job as Json & {
      waiting_for: Json;
    };
    expect(why).toMatchObject({ reason: 'group', group: pseudonym, job_id: first });
    expect(why.detail).toBe(
      `An earlier job of the group "${why.group}", ${first}, runs. One job of a group runs at a time here, in the order of enqueue.`,
    );
    expect((await admin.ok(200, 'GET', `${V1}/jobs/${second}`)).job).toMatchObject({ waiting_for: { group } });
  });

  it('are in no stream of events', async () => {
    const queue = freshName();
    const id = await server.enqueue(queue, { options: { queue, ...LIMITED } });
    const streams = [await StreamReader.open(`/jobs/${id}/events`, {}, viewer)];
    await server.take(queue);
    await server.ack(id);
    for (const stream of streams) {
      await stream.over();
      expect(JSON.stringify(stream.messages)).toContain(id);
      expect(JSON.stringify(stream.messages)).not.toMatch(NAMES);
    }
  });

  it('can still be worked with: a pseudonym names its key, and the audit log shows the key to keys that may see it', async () => {
    const queue = freshName();
    await server.enqueue(queue, { options: { queue, ...LIMITED } });
    const { items = [] } = await operator.ok(200, 'GET', `${V1}/rate-limits`);
    const shown = String((items as Json[])[0]?.key);
    expect(shown).toEqual(pseudonym);
    const path = `${V1}/rate-limits/${encodeURIComponent(shown)}`;
    expect(await operator.ok(200, 'GET', path)).toMatchObject({ key: shown, waiting: 0 });
    expect(await operator.ok(200, 'PUT', path, { concurrency: 0 })).toMatchObject({ key: shown });
    expect(await admin.ok(200, 'GET', `${V1}/rate-limits/${KEY}`)).toMatchObject({ override: { concurrency: 0 } });
    await operator.ok(204, 'DELETE', `${path}/override`);
    expect((await admin.ok(200, 'GET', `${V1}/rate-limits/${KEY}`)).override).toBeUndefined();
    const body = { filter: { queue, tag: TAG }, confirm: true };
    await operator.ok(200, 'POST', `${V1}/admin/jobs/bulk/cancel`, body);
    const entries = async (from: TestServer) => (await from.ok(200, 'GET', `${V1}/admin/audit`)).items as Json[];
    const targets = (all: Json[]) => all.map(({ action, target }) => [action, target]);
    expect(targets(await entries(admin))).toEqual(
      expect.arrayContaining([
        ['limit.override', KEY],
        ['limit.restore', KEY],
      ]),
    );
    expect(targets(await entries(viewer))).toEqual(
      expect.arrayContaining([
        ['limit.override', shown],
        ['limit.restore', shown],
      ]),
    );
    expect(JSON.stringify(await entries(viewer))).not.toMatch(NAMES);
    expect(JSON.stringify(await entries(admin))).toContain(TAG);
    const unknown = `${V1}/rate-limits/${encodeURIComponent('[redacted:000000000000]')}`;
    expect(await operator.refusal('PUT', unknown, { concurrency: 1 })).toMatchObject({ status: 404 });
    // Whoever is shown keys as they are has no use for pseudonyms.
    expect(await admin.refusal('GET', path)).toMatchObject({ status: 400, field: 'key' });
  });

  it('are not written as they are shown', async () => {
    const queue = freshName();
    const id = await server.enqueue(queue, { options: { queue, ...LIMITED, delay_until: '+PT1H' } });
    const template = { type: 'a', args: [], options: { queue, ...LIMITED } };
    await server.ok(201, 'POST', `${V1}/cron`, { name: 'nightly', cron: '0 3 * * *', job_template: template });
    const { job } = await operator.ok(200, 'GET', `${V1}/jobs/${id}`);
    const schedule = await operator.ok(200, 'GET', `${V1}/cron/nightly`);
    for (const [method, path, body] of [
      ['PATCH', `/jobs/${id}`, { tags: job?.tags }],
      ['POST', `/admin/jobs/${id}/clone`, { options: { tags: job?.tags } }],
      ['PATCH', '/cron/nightly', { job_template: schedule.job_template ?? (schedule.cron as Json).job_template }],
    ] as const) {
      expect(await operator.refusal(method, V1 + path, body)).toMatchObject({ status: 422 });
    }
    await operator.ok(200, 'PATCH', `${V1}/jobs/${id}`, { tags: ['new'] });
    expect((await admin.ok(200, 'GET', `${V1}/jobs/${id}`)).job?.tags).toEqual(['new']);
  });

  it('are shown where no rule names them, though another fits their last name', async () => {
    const queue = freshName();
    const id = await server.enqueue(queue, { options: { queue, ...LIMITED }, args: [{ key: 'k' }] });
    const { job } = await as('viewer', { REDACT: 'key *' }).ok(200, 'GET', `${V1}/jobs/${id}`);
    expect(job).toMatchObject({ tags: LIMITED.tags, rate_limit: { key: KEY }, args: ['[redacted]'] });
  });
});
