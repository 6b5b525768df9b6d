/** Workers that pull with a key with bounds: two parties have jobs in one queue, and neither touches the other's. */
import { describe, expect, it } from 'vitest';
import { TocsinClient } from '../../../src/client';
import { until } from '../../support/clock';
import { type Json, TestServer, UNKNOWN_ID, V1 } from '../../support/server';

const server = TestServer.with({
  API_KEYS: JSON.stringify([
    { key: 'root' },
    { key: 'queues', role: 'operator', queues: ['acme-*'] },
    { key: 'types', role: 'operator', types: ['acme.*'] },
    { key: 'groups', role: 'operator', groups: ['acme'] },
    { key: 'all', role: 'operator', queues: ['acme-mail'], types: ['acme.*'], groups: ['acme'] },
  ]),
});

const call = (key: string, method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  server.call(method, path, body, { Authorization: `Bearer ${key}`, ...headers });

/** What an answer says beside the id that the request brought. */
const said = (body: unknown, id: string) => JSON.stringify(body).replaceAll(id, '');

describe('a worker whose key has bounds', () => {
  const WORK = 'work-for-all';
  const add = async (party: string, queue = WORK) =>
    (await call('root', 'POST', `${V1}/jobs`, { type: `${party}.work`, args: [party], options: { queue } })).body
      .id as string;
  const fetch = (key: string, body: Json, worker_id = 'w') =>
    call(key, 'POST', `${V1}/workers/fetch`, { queues: [WORK], worker_id, count: 10, ...body });
  const idsIn = (answer: Awaited<ReturnType<typeof fetch>>) => (answer.body.jobs ?? []).map(({ id }) => id);
  const refused = async (answer: ReturnType<typeof fetch>) => {
    const { status, body } = await answer;
    return [status, body.error?.code, body.error?.details?.field];
  };

  it('fetches jobs of its types only, and must name them', async () => {
    const [own, theirs] = [await add('acme'), await add('zeta')];
    expect(await refused(fetch('types', {}))).toEqual([403, 'outside_key', 'types']);
    expect(await refused(fetch('types', { types: ['zeta.work'] }))).toEqual([403, 'outside_key', 'types']);
    const got = await fetch('types', { types: ['zeta.work', 'acme.work'] });
    expect([got.status, idsIn(got)]).toEqual([200, [own]]);
    const handler = { type: '*', max_attempts: 3 };
    expect(await refused(fetch('types', { types: ['acme.work'], handlers: [handler] }))).toEqual([
      ...[403, 'outside_key', 'handlers'],
    ]);
    expect(await refused(fetch('types', { queues: undefined, pool: 'any' }))).toEqual([403, 'outside_key', 'pool']);
    expect(idsIn(await fetch('root', { types: ['zeta.work'] }, 'root-worker'))).toEqual([theirs]);
  });

  it('fetches from its queues only', async () => {
    const own = await add('acme', 'acme-work');
    await add('zeta', 'zeta-work');
    expect(await refused(fetch('queues', { queues: ['acme-work', 'zeta-work'] }))).toEqual([
      ...[403, 'outside_key', 'queues'],
    ]);
    expect(idsIn(await fetch('queues', { queues: ['acme-work'] }))).toEqual([own]);
    for (const key of ['groups', 'all']) {
      expect(await refused(fetch(key, { queues: ['acme-mail'] }))).toEqual([403, 'outside_key', undefined]);
    }
  });

  it('runs as one of the client library', async () => {
    const [own, theirs] = [await add('acme'), await add('zeta')];
    const fetch = async (url: string | URL | Request, init?: RequestInit) => await server.send(new Request(url, init));
    const client = new TocsinClient({ url: 'http://localhost', key: 'types', fetch });
    const stop = new AbortController();
    const errors: unknown[] = [];
    const onError = (error: unknown) => void errors.push(error);
    const running = client
      .worker('runs', { queues: [WORK] })
      .run({ 'acme.work': () => 'done' }, { signal: stop.signal, waitMs: 50, onError, log: () => undefined });
    const stateOf = async (id: string) => (await call('root', 'GET', `${V1}/jobs/${id}`)).body.state;
    await until(async () => (await stateOf(own)) === 'completed', 'the job to be completed');
    stop.abort();
    await running;
    expect([errors, await stateOf(theirs)]).toEqual([[], 'available']);
    await call('root', 'DELETE', `${V1}/jobs/${theirs}`);
  });

  it('has no socket if it is in API_KEYS, whose bounds its queue does not know', async () => {
    const upgrade = { Upgrade: 'websocket', 'Sec-WebSocket-Protocol': 'tocsin.worker.v1' };
    const path = `${V1}/workers/socket?queue=acme-work&worker_id=w&types=acme.work`;
    for (const key of ['queues', 'types', 'groups']) {
      expect(await refused(call(key, 'GET', path, undefined, upgrade))).toEqual([403, 'outside_key', undefined]);
    }
  });

  it("reports of its jobs, and another's is an unknown one", async () => {
    const [own, theirs] = [await add('acme'), await add('zeta')];
    await fetch('types', { types: ['acme.work'] });
    await fetch('root', { types: ['zeta.work'] });
    const path = `${V1}/workers`;
    for (const [verb, body] of Object.entries({
      ack: {},
      nack: { error: { message: 'x' } },
      progress: { progress: 1 },
    })) {
      const [of, unknown] = await Promise.all(
        [theirs, UNKNOWN_ID].map(async (job_id) => {
          const { status, body: answer } = await call('types', 'POST', `${path}/${verb}`, { job_id, ...body });
          const { request_id: _, ...error } = answer.error ?? { request_id: '' };
          return said([status, error], job_id);
        }),
      );
      expect([verb, of]).toEqual([verb, unknown]);
      expect(of).toContain('404');
    }
    const reports = [theirs, UNKNOWN_ID, own].map((job_id) => ({ action: 'ack', job_id }));
    const told = await call('types', 'POST', `${path}/report`, { reports, worker_id: 'w' });
    expect(told.body.items).toMatchObject([
      { job_id: theirs, error: { code: 'not_found' } },
      { job_id: UNKNOWN_ID, error: { code: 'not_found' } },
      { job_id: own, status: 'done' },
    ]);
    const more = [{ action: 'ack', job_id: theirs }];
    const fetched = await fetch('types', { types: ['acme.work'], reports: more });
    expect(fetched.body).toMatchObject({ jobs: [], reports: { succeeded: 0 } });
    expect((await call('root', 'GET', `${V1}/jobs/${theirs}`)).body.state).toBe('active');
  });

  it("keeps its leases, and touches no other worker's, nor what is known of a worker of its name", async () => {
    const [own, theirs] = [await add('acme'), await add('zeta')];
    await fetch('types', { types: ['acme.work'] });
    await fetch('root', { types: ['zeta.work'] });
    const beat = (key: string, body: Json) =>
      call(key, 'POST', `${V1}/workers/heartbeat`, { worker_id: 'w', queues: [WORK], ...body });
    await beat('root', { active_jobs: [], hostname: 'root-host' });
    expect(await refused(beat('types', {}))).toEqual([403, 'outside_key', 'active_jobs']);
    expect(await refused(beat('queues', { active_jobs: [] }))).toEqual([403, 'outside_key', 'queues']);
    const { status, body } = await beat('types', { active_jobs: [own, theirs, UNKNOWN_ID], state: 'stopped' });
    expect([status, body]).toEqual([
      200,
      expect.objectContaining({ state: 'running', jobs_extended: [own], jobs_lost: [theirs, UNKNOWN_ID] }),
    ]);
    const { body: worker } = await call('root', 'GET', `${V1}/admin/workers/w`);
    expect(worker).toMatchObject({ hostname: 'root-host', reported_state: 'running' });
  });
});
