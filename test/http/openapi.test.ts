/** The document of the API, as a server hands it out. */
import { describe, expect, it } from 'vitest';
import documented from '../../docs/reference/openapi.json';
import { ROUTES } from '../../src/http/routes';
import { differenceOf, differenceOfMessage } from '../support/described';
import { TestServer, V1 } from '../support/server';

interface Served {
  openapi: string;
  servers: unknown;
  paths: Record<string, Record<string, { operationId?: string; responses: unknown }>>;
}

async function fetched(headers: Record<string, string> = {}): Promise<Served> {
  // A server with keys, which gets none.
  const { send } = TestServer.with({ API_KEYS: 'k' });
  const response = await send(new Request(`http://localhost${V1}/openapi.json`, { headers }));
  expect([response.status, response.headers.get('Content-Type')]).toEqual([200, 'application/json']);
  return response.json();
}

describe('the document of the API', () => {
  it('is served without a key, and names every route', async () => {
    const { openapi, paths } = await fetched();
    expect(openapi).toBe('3.1.0');
    const named = ROUTES.map(({ method, path }) => {
      const { [method.toLowerCase()]: operation } = paths[path.replace(/:(\w+)/g, '{$1}').replace('*', '{path}')] ?? {};
      return operation && `${method} ${path}`;
    });
    expect(named).toEqual(ROUTES.map(({ method, path }) => `${method} ${path}`));
  });

  it('is the one in the documents, with its explanations', async () => {
    const served = await fetched();
    expect(served).toEqual(documented);
    expect(Object.keys(served.paths)).toEqual(Object.keys(documented.paths));
    const operation = served.paths[`${V1}/rate-limits/{key}`]?.get;
    expect(operation).toMatchObject({ operationId: 'rate-limits.show', responses: { 200: { description: 'OK' } } });
  });

  it('says where the server is that is a part of an application', async () => {
    expect((await fetched()).servers).toEqual([{ url: '/' }]);
    expect((await fetched({ 'X-Forwarded-Prefix': '/queue' })).servers).toEqual([{ url: '/queue' }]);
  });
});

describe('an answer', () => {
  const path = `${V1}/rate-limits/:key`.replace(':key', 'stripe');
  const limit = { key: 'stripe', active: 0, current_count: 0, window_resets_at: null, queues: [] };
  const whole = { ...limit, waiting: 0, waiting_count: 0 };
  const difference = (status: number, body: unknown) => differenceOf('GET', path, status, JSON.stringify(body));

  it('is held against the document in every test over HTTP', () => {
    expect(difference(200, whole)).toBeUndefined();
    expect(difference(200, { ...whole, more: 1 })).toContain('more');
    expect(difference(200, { ...whole, active: 'none' })).toContain('active');
    expect(difference(200, limit)).toContain('waiting');
    expect(difference(201, whole)).toBe(`GET ${path} does not promise 201`);
    expect(difference(404, { error: 'gone' })).toContain('error');
    expect(difference(409, {})).toBe(`GET ${path} does not promise 409`);
    expect(differenceOf('GET', `${V1}/nothing`, 200, '{}')).toBeUndefined();
  });
});

describe('a message', () => {
  const difference = (message: object) => differenceOfMessage(['worker-socket.open'], JSON.stringify(message));
  const time = '2026-11-20T10:11:25.704Z';
  const event = {
    specversion: '1.0',
    id: 'evt_1',
    source: 'ojs://tocsin/queues/mail',
    subject: 'mail',
    time,
    timestamp: time,
  };
  const ofWebhook = (data: object) =>
    differenceOfMessage(['webhooks.events'], JSON.stringify({ ...event, type: 'queue.push_resumed', data }));

  it('is held against the document of the messages in every test that is sent one', () => {
    expect(difference({ type: 'ping', n: 1 })).toBeUndefined();
    expect(difference({ type: 'ping', n: '1' })).toContain('/n');
    expect(difference({ type: 'paused', more: 1 })).toContain('more');
    expect(difference({ type: 'spoken' })).toContain('no message');
    expect(ofWebhook({ queue: 'mail', target: 'home' })).toBeUndefined();
    expect(ofWebhook({ queue: 'mail' })).toContain('target');
    expect(ofWebhook({ queue: 'mail', target: 'home', job_id: '1' })).toContain('job_id');
  });
});
