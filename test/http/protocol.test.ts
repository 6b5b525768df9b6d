import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { type Env, usableConfig } from '../../src/config';
import { server, TestServer, V1 } from '../support/server';

server.emptyBeforeEach();

const KEYS = JSON.stringify([
  { key: 'reader', scopes: ['data:read'] },
  { key: 'writer', scopes: ['data:read', 'data:write'] },
  { key: 'operator', scopes: ['admin:read', 'admin:write'] },
]);
const guarded = TestServer.with({ API_KEYS: KEYS });

describe('every answer', () => {
  it('keeps a printable request id and replaces any other', async () => {
    const id = async (value: string) =>
      (await server.call('GET', '/health', undefined, { 'X-Request-ID': value })).headers.get('X-Request-ID');
    expect(await id('my-request/1')).toBe('my-request/1');
    expect(await id('two words')).toMatch(/^req_[0-9a-f-]{36}$/);
    expect(await id('x'.repeat(129))).toMatch(/^req_/);
  });

  it('speaks version 1.0 to every client of major version 1', async () => {
    for (const version of ['1', '1.0', '1.7']) {
      await server.ok(200, 'GET', '/ojs/manifest', undefined, { 'OJS-Version': version });
    }
    for (const version of ['2.0', '0.9', 'latest']) {
      const answer = await server.call('GET', '/ojs/manifest', undefined, { 'OJS-Version': version });
      expect(answer).toMatchObject({ status: 422, body: { error: { code: 'unsupported' } } });
    }
  });

  it('can be read by a page of any origin where keys are configured', async () => {
    const { headers } = await guarded.call('GET', `${V1}/jobs/x`, undefined, { Origin: 'https://app.example' });
    expect(headers.get('Access-Control-Allow-Origin')).toBe('*');
    expect(headers.get('Access-Control-Expose-Headers')).toContain('X-Request-ID');
  });

  it('to a preflight needs no key', async () => {
    const { status, headers } = await guarded.call('OPTIONS', `${V1}/jobs`, undefined, {
      Origin: 'https://app.example',
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'authorization',
    });
    expect(status).toBe(204);
    expect(headers.get('Access-Control-Allow-Methods')).toContain('POST');
    expect(headers.get('Access-Control-Allow-Headers')).toBe('authorization');
    expect(headers.get('Content-Type')).toBeNull();
  });
});

describe('a path', () => {
  it('that no route has is 404, with a hint', async () => {
    const answer = await server.call('GET', '/ojs/v2/jobs');
    expect(answer).toMatchObject({ status: 404, body: { error: { code: 'not_found', hint: expect.any(String) } } });
    expect(answer.body.error?.details).toEqual({ resource_type: 'route', resource_id: '/ojs/v2/jobs' });
  });

  it('with another method is 405 and says which are allowed', async () => {
    const answer = await server.call('PATCH', `${V1}/queues/mail/config`);
    expect(answer).toMatchObject({ status: 405, body: { error: { code: 'method_not_allowed' } } });
    expect(answer.headers.get('Allow')).toBe('GET, HEAD, PUT');
    expect((await server.call('GET', `${V1}/workers/fetch`)).headers.get('Allow')).toBe('POST');
    expect((await server.call('PUT', '/health')).headers.get('Allow')).toBe('GET, HEAD');
  });

  it('answers HEAD like GET without a body', async () => {
    expect(await server.call('HEAD', '/ojs/manifest')).toMatchObject({ status: 200 });
  });
});

describe('the probes', () => {
  it.each(['/health', '/ready', '/ojs/v1/health', '/v1/health'])('answer on %s', async (path) => {
    expect(await server.ok(200, 'GET', path)).toMatchObject({
      status: 'ok',
      version: expect.any(String),
      uptime_seconds: expect.any(Number),
      backend: { type: 'durable-objects', status: 'ok' },
      queues: { total: expect.any(Number), paused: expect.any(Number) },
    });
  });

  it('answer without a key and with settings that contradict each other', async () => {
    for (const variables of [{ API_KEYS: KEYS }, { API_KEYS: '[' }, { DEFAULT_BACKOFF_BASE: '15s' }]) {
      await TestServer.with(variables).ok(200, 'GET', 'https://queue.example/health');
    }
  });

  it('have aliases for the command line tool', async () => {
    expect(await server.ok(200, 'GET', '/v1/queues')).toHaveProperty('queues');
    expect(await server.ok(200, 'GET', '/v1/dead-letter')).toHaveProperty('jobs');
    expect(await server.ok(200, 'GET', '/v1/workers')).toHaveProperty('items');
  });

  it('manifest says what is there', async () => {
    expect(await server.ok(200, 'GET', '/ojs/manifest')).toMatchObject({ specversion: '1.0', protocols: ['http'] });
  });
});

describe('without any key configured', () => {
  const open = TestServer.with({ API_KEYS: '' });
  const job = { type: 'a', args: [] };

  it('a deployment is closed, whatever host a proxy names', async () => {
    for (const value of [undefined, '', 'false']) {
      const deployed = TestServer.with({ API_KEYS: '', ALLOW_LOCALHOST: value });
      for (const origin of ['http://localhost', 'http://127.0.0.1:8787', 'https://queue.example']) {
        const answer = await deployed.call('GET', `${origin}${V1}/queues`);
        expect(answer).toMatchObject({ status: 401, body: { error: { code: 'unauthorized' } } });
        await deployed.ok(200, 'GET', `${origin}/health`);
      }
    }
  });

  it('pages of other origins may not call, and can read nothing', async () => {
    for (const origin of ['https://evil.example', 'http://localhost:3000', 'https://localhost', 'null']) {
      for (const [method, path] of [
        ['POST', `${V1}/jobs`],
        ['GET', `${V1}/queues`],
        ['GET', '/health'],
        ['OPTIONS', `${V1}/jobs`],
      ] as const) {
        const answer = await open.call(method, path, method === 'POST' ? job : undefined, { Origin: origin });
        expect(answer).toMatchObject({ status: 403, body: { error: { code: 'forbidden', details: { origin } } } });
        expect(answer.headers.get('Access-Control-Allow-Origin')).toBeNull();
        expect(answer.headers.get('Vary')).toBe('Origin');
      }
    }
    expect(await server.queues()).toEqual([]);
  });

  it('its own pages may, and those that are named', async () => {
    const named = TestServer.with({ API_KEYS: '', ALLOWED_ORIGINS: 'https://app.example, http://localhost:3000' });
    for (const origin of ['http://localhost', 'https://app.example', 'http://localhost:3000']) {
      const headers = { Origin: origin };
      expect((await named.call('POST', `${V1}/jobs`, job, headers)).status).toBe(201);
      expect((await named.call('OPTIONS', `${V1}/jobs`, undefined, headers)).status).toBe(204);
      const answer = await named.call('GET', `${V1}/queues`, undefined, headers);
      expect(answer.headers.get('Access-Control-Allow-Origin')).toBe(origin);
    }
    expect((await named.call('GET', `${V1}/queues`, undefined, { Origin: 'https://evil.example' })).status).toBe(403);
    const wrong = await TestServer.with({ ALLOWED_ORIGINS: 'app.example' }).call('GET', `${V1}/queues`);
    expect(wrong).toMatchObject({ status: 500, body: { error: { details: { variable: 'ALLOWED_ORIGINS' } } } });
  });

  it('only loopback hosts are served', async () => {
    for (const origin of ['http://localhost:8787', 'http://127.0.0.1', 'http://[::1]:1']) {
      await open.ok(200, 'GET', `${origin}${V1}/queues`);
    }
    for (const origin of ['https://queue.example', 'http://127.0.0.1.example', 'http://localhost.example']) {
      const headers = { 'X-Forwarded-Host': 'localhost' };
      const answer = await open.call('GET', `${origin}${V1}/queues`, undefined, headers);
      expect(answer).toMatchObject({ status: 401, body: { error: { hint: expect.stringContaining('API_KEYS') } } });
    }
  });
});

describe('with keys', () => {
  const as = async (key: string | undefined, method: string, path: string, body?: unknown) => {
    const headers: Record<string, string> = key === undefined ? {} : { Authorization: `Bearer ${key}` };
    return (await guarded.call(method, path, body, headers)).status;
  };
  const job = { type: 'a', args: [] };

  it('a request without one, or with a wrong one, is 401 even on a loopback host', async () => {
    expect(await as(undefined, 'GET', `${V1}/queues`)).toBe(401);
    expect(await as('reade', 'GET', `${V1}/queues`)).toBe(401);
    expect(await as('reader ', 'GET', `${V1}/queues`)).not.toBe(500);
    expect(await as(undefined, 'GET', '/no/such/route')).toBe(401);
  });

  it('a key may do what its scopes say and nothing else', async () => {
    expect(await as('reader', 'GET', `${V1}/queues`)).toBe(200);
    expect(await as('reader', 'POST', `${V1}/jobs`, job)).toBe(403);
    expect(await as('writer', 'POST', `${V1}/jobs`, job)).toBe(201);
    expect(await as('writer', 'GET', `${V1}/admin/jobs/x`)).toBe(403);
    expect(await as('operator', 'GET', `${V1}/admin/jobs/x`)).toBe(404);
    expect(await as('operator', 'POST', `${V1}/admin/retry/preview`, {})).toBe(200);
    expect(await as('operator', 'GET', `${V1}/queues`)).toBe(403);
    expect(await as('operator', 'POST', `${V1}/admin/reset`)).toBe(403);
  });

  it('a browser may give its key in the query or, for its own origin, in a cookie', async () => {
    const status = async (method: string, path: string, headers: Record<string, string>, body?: unknown) =>
      (await guarded.call(method, path, body, headers)).status;
    const Cookie = 'tocsin_key=writer';
    expect(await status('GET', `${V1}/queues?access_token=reader`, {})).toBe(200);
    expect(await status('GET', `${V1}/queues`, { Cookie })).toBe(200);
    expect(await status('POST', `${V1}/jobs`, { Cookie, Origin: 'http://localhost' }, job)).toBe(201);
    expect(await status('POST', `${V1}/jobs`, { Cookie, Origin: 'https://evil.example' }, job)).toBe(401);
  });
});

describe('test hooks', () => {
  it('are not there unless they are switched on', async () => {
    const off = TestServer.with({ TEST_HOOKS: undefined });
    expect(await off.call('POST', `${V1}/admin/reset`)).toMatchObject({ status: 404 });
  });

  it('empty everything before they answer', async () => {
    const on = TestServer.with({ TEST_HOOKS: 'true' });
    const id = await server.enqueue('emptied');
    await on.ok(200, 'POST', `${V1}/admin/reset`);
    expect(await server.call('GET', `${V1}/jobs/${id}`)).toMatchObject({ status: 404 });
    expect(await server.ok(200, 'GET', `${V1}/queues`)).toMatchObject({ queues: [] });
  });
});

describe('settings that contradict each other', () => {
  it('refuse every enqueue by name, and nothing is written', async () => {
    const broken = TestServer.with({ DEFAULT_BACKOFF_BASE: '15s' });
    const body = { type: 'a', args: [], options: { queue: 'unconfigured' } };
    const answer = await broken.call('POST', `${V1}/jobs`, body);
    expect(answer).toMatchObject({ status: 500, body: { error: { code: 'invalid_configuration', retryable: false } } });
    expect(answer.body.error?.details?.missing).toEqual(['DEFAULT_BACKOFF_EXPONENT', 'DEFAULT_BACKOFF_JITTER']);
    expect(await server.ok(200, 'GET', `${V1}/queues/unconfigured/stats`)).toMatchObject({ available: 0 });
  });
});

describe('settings that are wrong', () => {
  it.each([
    ['DEFAULT_RETRY_LIMIT', '25x'],
    ['HANDLERS', { 'a.*': 'NOWHERE' }],
  ])('%s keep jobs where they are, and let attempts that run come to their end', async (variable, value) => {
    const broken = TestServer.with({ [variable]: value });
    const running = await server.enqueue('misconfigured');
    const failing = await server.enqueue('misconfigured');
    expect(await server.takeIds('misconfigured', { count: 2, worker_id: 'w' })).toEqual([running, failing]);
    const waiting = await server.enqueue('misconfigured');

    for (const [method, path, body] of [
      ['POST', '/workers/fetch', { queues: ['misconfigured'] }],
      ['POST', `/jobs/${waiting}/cancel`, {}],
      ['PATCH', `/jobs/${waiting}`, { priority: 1 }],
      ['GET', `/jobs/${waiting}`, undefined],
    ] as const) {
      const answer = await broken.call(method, V1 + path, body);
      expect(answer).toMatchObject({ status: 500, body: { error: { code: 'invalid_configuration' } } });
      expect(answer.body.error?.details?.variable).toBe(variable);
    }
    expect(await server.job(waiting)).toMatchObject({ state: 'available', attempt: 0, priority: 0 });

    await broken.heartbeat('w', { active_jobs: [running] });
    await broken.ok(200, 'PUT', `${V1}/jobs/${running}/progress`, { progress: 0.5 });
    await broken.ok(200, 'PUT', `${V1}/jobs/${running}/checkpoint`, { state: 1 });
    expect(await broken.ack(running)).toMatchObject({ job: { state: 'completed' } });
    expect(await broken.nack(failing)).toMatchObject({ job: { state: 'retryable' } });
  });

  it('hand out no job from the queue itself, whose attempts end under what can be read', () => {
    const configOf = (variables: Record<string, unknown>) => usableConfig({ ...env, ...variables } as unknown as Env);
    expect(configOf({}).targets.length).toBeGreaterThan(0);
    expect(configOf({ DEFAULT_RETRY_LIMIT: 'many' })).toEqual({ retryVariables: {}, targets: [] });
    expect(configOf({ DEFAULT_RETRY_LIMIT: '9', HANDLERS: 7 })).toMatchObject({
      retryVariables: { DEFAULT_RETRY_LIMIT: '9' },
      targets: [],
    });
  });
});

describe('a defect', () => {
  it('answers 500 with the request id and nothing of the inside', async () => {
    const directory = { getByName: () => ({ list: () => Promise.reject(new Error('secret table name')) }) };
    const answer = await TestServer.with({ DIRECTORY: directory }).call('GET', `${V1}/queues`);
    expect(answer).toMatchObject({ status: 500, body: { error: { code: 'backend_error', retryable: true } } });
    expect(JSON.stringify(answer.body)).not.toContain('secret');
  });

  it('that is an overload answers 503 with Retry-After', async () => {
    const overload = Object.assign(new Error('Durable Object is overloaded.'), { overloaded: true });
    const directory = { getByName: () => ({ list: () => Promise.reject(overload) }) };
    const answer = await TestServer.with({ DIRECTORY: directory }).call('GET', `${V1}/queues`);
    expect(answer).toMatchObject({ status: 503, body: { error: { code: 'unavailable', retryable: true } } });
    expect(Number(answer.headers.get('Retry-After'))).toBeGreaterThan(0);
  });
});

it('the Worker itself answers like the application', async () => {
  expect((await server.send(new Request('http://localhost/health'))).status).toBe(200);
});
