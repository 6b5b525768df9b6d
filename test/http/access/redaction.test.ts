/** What a key without `data:reveal` is shown, in every answer that holds a payload. */
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import type { Env } from '../../../src/config';
import { createApp } from '../../../src/http/app';
import { freshName } from '../../support/queue';
import { type Json, server, TestServer, V1 } from '../../support/server';
import { StreamReader } from '../../support/streams';

server.emptyBeforeEach();

const SECRET = 's3cr3t';
const API_KEYS = JSON.stringify([
  { key: 'viewer', role: 'viewer' },
  { key: 'admin', role: 'admin' },
  { key: 'operator', role: 'operator' },
]);
const REDACT = 'password, card.* x_token';
const app = createApp();
const variables = { ...env, API_KEYS, REDACT } as unknown as Env;

/** The deployment as somebody sees it who has this key. */
const as = (key: string) =>
  new TestServer((request) => {
    const sent = new Request(request);
    sent.headers.set('Authorization', `Bearer ${key}`);
    return app.fetch(sent, variables);
  });
const [viewer, operator, admin] = [as('viewer'), as('operator'), as('admin')];

const payload = () => ({ open: 'seen', password: SECRET, card: { number: SECRET }, list: [{ password: SECRET }] });
/** A job whose failure makes it a dead letter. */
const DEAD = { options: { retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } } };
const HIDDEN = {
  open: 'seen',
  password: '[redacted]',
  card: { number: '[redacted]' },
  list: [{ password: '[redacted]' }],
};

/** Every answer about a job in which its payload may be. */
const pathsAbout = (id: string, queue: string) => [
  `/jobs/${id}`,
  `/jobs?queue=${queue}`,
  `/admin/jobs/${id}`,
  `/admin/jobs/${id}?timeline=true`,
  `/admin/jobs?queue=${queue}`,
  `/admin/jobs?queue=${queue}&q=seen`,
  `/admin/jobs?queue=${queue}&arguments=true`,
  `/admin/failures?queue=${queue}`,
  `/jobs/${id}/result`,
  `/jobs/${id}/progress`,
  `/jobs/${id}/checkpoint`,
  `/checkpoints/${id}`,
  `/checkpoints/${id}/resume`,
  `/jobs/${id}/steps`,
  `/jobs/${id}/log`,
  `/jobs/${id}/history`,
  `/jobs/${id}/retries`,
  `/events?queue=${queue}`,
  `/dead-letter?queue=${queue}`,
  `/dead-letter/${id}`,
  `/admin/dead-letter?queue=${queue}`,
  '/cron',
  '/crons',
  '/cron/nightly',
];

/** Asks for all of them; whoever may not ask is told 404 or 409 where there is nothing. */
async function textsOf(from: TestServer, paths: string[]): Promise<string[]> {
  return await Promise.all(paths.map(async (path) => JSON.stringify((await from.call('GET', V1 + path)).body)));
}

describe('a key without data:reveal', () => {
  it('is shown no secret of a job that runs, of one that ended, of a dead letter, or of a schedule', async () => {
    const queue = freshName();
    const change = { args: [payload()], meta: payload(), x_token: SECRET, x_other: { password: SECRET, open: 'seen' } };
    const [id, failing] = [await server.enqueue(queue, change), await server.enqueue(queue, { ...change, ...DEAD })];
    await server.ok(201, 'POST', `${V1}/cron`, {
      ...{ name: 'nightly', cron: '0 3 * * *' },
      job_template: { type: 'a', args: [payload()], meta: payload(), options: { queue } },
    });
    await server.take(queue, { count: 2 });
    await server.ok(200, 'POST', `${V1}/workers/progress`, { job_id: id, percentage: 5, data: payload() });
    await server.ok(200, 'PUT', `${V1}/jobs/${id}/checkpoint`, { state: payload() });
    await server.ok(200, 'PUT', `${V1}/jobs/${id}/steps/one`, { result: payload() });
    await server.ok(200, 'POST', `${V1}/jobs/${id}/log`, { lines: [{ message: 'm', fields: payload() }] });

    const running = pathsAbout(id, queue);
    const see = async (paths: string[]) => {
      const [hidden, whole] = [await textsOf(viewer, paths), await textsOf(admin, paths)];
      for (const [place, text] of hidden.entries())
        expect([paths[place], text]).not.toEqual([paths[place], expect.stringContaining(SECRET)]);
      return whole.filter((text) => text.includes(SECRET)).length;
    };
    // Nothing is hidden from whoever may see everything: else this test would see no difference.
    expect(await see(running)).toBeGreaterThanOrEqual(12);
    expect((await viewer.ok(200, 'GET', `${V1}/jobs/${id}`)).job).toMatchObject({
      args: [HIDDEN],
      meta: HIDDEN,
      x_token: '[redacted]',
      x_other: { password: '[redacted]', open: 'seen' },
      progress_data: HIDDEN,
    });

    await server.ack(id, { result: payload() });
    const error = { code: 'E', message: 'm', retryable: false, details: payload() };
    await server.nack(failing, { error });
    expect(await see(pathsAbout(id, queue))).toBeGreaterThanOrEqual(6);
    expect(await see(pathsAbout(failing, queue))).toBeGreaterThanOrEqual(6);
    expect(await viewer.ok(200, 'GET', `${V1}/jobs/${id}/result`)).toMatchObject({ result: HIDDEN });
    const results = await operator.ok(200, 'POST', `${V1}/jobs/results`, { ids: [id] });
    expect(results).toMatchObject({ results: { [id]: { result: HIDDEN } } });
    expect((await viewer.ok(200, 'GET', `${V1}/jobs/${failing}`)).job).toMatchObject({
      error: { code: 'E', message: 'm', details: HIDDEN },
    });
    // What comes of its own writes is redacted as well.
    const retried = await operator.ok(200, 'POST', `${V1}/dead-letter/${failing}/retry`);
    expect(retried.job).toMatchObject({ args: [HIDDEN] });
  });

  it('is shown none in streams and over the WebSocket', async () => {
    const queue = freshName();
    const id = await server.enqueue(queue);
    const Authorization = 'Bearer viewer';
    const open = (path: string, from: TestServer) => StreamReader.open(path, {}, from);
    const streams = [
      await open(`/jobs/${id}/events`, viewer),
      await open(`/jobs/${id}/progress/stream`, viewer),
      await open(`/jobs/${id}/events`, admin),
    ];
    const upgrade = new Request(`http://localhost${V1}/ws`, { headers: { Upgrade: 'websocket', Authorization } });
    const socket = (await viewer.send(upgrade)).webSocket as WebSocket;
    const told: string[] = [];
    const heard = new Promise<void>((resolve) => {
      socket.addEventListener('message', ({ data }) => {
        told.push(data as string);
        if ((data as string).includes('job.completed')) resolve();
      });
    });
    socket.accept();
    const subscribed = new Promise<void>((resolve) =>
      socket.addEventListener('message', () => resolve(), { once: true }),
    );
    socket.send(JSON.stringify({ action: 'subscribe', channel: `job:${id}` }));
    await subscribed;
    await server.take(queue);
    await server.ok(200, 'POST', `${V1}/workers/progress`, { job_id: id, percentage: 5, data: payload() });
    await server.ack(id);
    await heard;
    socket.close();
    for (const stream of streams) await stream.over();
    const [events = '', progress = '', whole = ''] = streams.map(({ messages }) => JSON.stringify(messages));
    expect(whole).toContain(SECRET);
    for (const text of [events, progress, told.join()]) {
      expect(text).toContain('[redacted]');
      expect(text).toContain('seen');
      expect(text).not.toContain(SECRET);
    }
  });

  it('is notified of a batch of its own what it may see of it', async () => {
    const batch = { jobs: [1, 2].map(() => ({ type: 'a.b', args: [payload()], queue: freshName() })) };
    const { jobs } = await operator.ok(201, 'POST', `${V1}/jobs/batch`, batch);
    expect(jobs?.map(({ args }) => args)).toEqual([[HIDDEN], [HIDDEN]]);
    const told = await admin.ok(201, 'POST', `${V1}/jobs/batch`, batch);
    expect(told.jobs?.map(({ args }) => args)).toEqual([[payload()], [payload()]]);
  });

  it('gets all of a job that it fetches to run, and of the steps that it has recorded', async () => {
    const queue = freshName();
    await server.enqueue(queue, { args: [payload()], meta: payload() });
    const job = await operator.takeOne(queue);
    expect(job).toMatchObject({ args: [payload()], meta: payload() });
    const step = `${V1}/jobs/${job.id}/steps/one`;
    await operator.ok(200, 'PUT', step, { result: payload() });
    expect(await operator.ok(200, 'PUT', step, { result: 1 })).toMatchObject({ result: payload() });
    const waiting = operator.take(queue, { wait_ms: 2_000 });
    await server.enqueue(queue, { args: [payload()] });
    expect((await waiting)[0]).toMatchObject({ args: [payload()] });
  });

  it('is configured so', async () => {
    const redacts = async (from: TestServer) => (await from.ok(200, 'GET', `${V1}/admin/session`)).redacts;
    expect(await redacts(viewer)).toBe(true);
    expect(await redacts(admin)).toBe(false);
  });
});

describe('the rules of a deployment', () => {
  it('must be rules; a running attempt can still be ended', async () => {
    const queue = freshName();
    const id = await server.enqueue(queue);
    await server.take(queue);
    const broken = TestServer.with({ REDACT: 'pass*' });
    const refused = await broken.call('GET', `${V1}/jobs/${id}`);
    expect(refused).toMatchObject({ status: 500, body: { error: { details: { variable: 'REDACT' } } } });
    await broken.ack(id);
  });

  it('hide nothing where no key is asked for', async () => {
    const open = TestServer.with({ REDACT });
    const id = await server.enqueue(freshName(), { args: [payload()] });
    expect(((await open.job(id)).args as Json[])[0]).toEqual(payload());
  });
});

it('the placeholder for hidden values is never written into a job by an edit', async () => {
  const queue = freshName('redacted');
  const { job } = await admin.ok(201, 'POST', `${V1}/jobs`, { type: 'a.b', args: [payload()], options: { queue } });
  await operator.ok(200, 'DELETE', `${V1}/jobs/${job?.id}`);
  const shown = await operator.ok(200, 'GET', `${V1}/admin/jobs/${job?.id}`);
  expect(shown.args).toEqual([HIDDEN]);
  for (const verb of ['retry', 'clone']) {
    const path = `${V1}/admin/jobs/${job?.id}/${verb}`;
    expect(await operator.refusal('POST', path, { args: shown.args })).toMatchObject({ status: 422, field: 'args' });
  }
  expect(await admin.ok(200, 'GET', `${V1}/admin/jobs/${job?.id}`)).toMatchObject({
    args: [payload()],
    state: 'cancelled',
  });
  await operator.ok(200, 'POST', `${V1}/admin/jobs/${job?.id}/retry`, { priority: 3 });
});
