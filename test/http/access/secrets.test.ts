/** Secret members of requests: nobody reads them again who may not, in whatever answer, event, log or entry. */
import { env } from 'cloudflare:workers';
import { describe, expect, it, vi } from 'vitest';
import document from '../../../docs/reference/openapi.json';
import { type Mask, maskedUrl, withMaskedUrls } from '../../../src/access/secrets';
import type { Env } from '../../../src/config';
import { createApp } from '../../../src/http/app';
import { ROUTES } from '../../../src/http/routes';
import { directory } from '../../support/directory';
import { freshName } from '../../support/queue';
import { type Json, server, TestServer, UNKNOWN_ID, V1 } from '../../support/server';

server.emptyBeforeEach();

const SENTINEL = 'SENTINEL4711';
const LIST = `${V1}/webhooks/subscriptions`;
const ROLES = ['viewer', 'operator', 'admin'] as const;
const app = createApp();

const as = (role: (typeof ROLES)[number]) =>
  new TestServer((request) => {
    const sent = new Request(request);
    sent.headers.set('Authorization', `Bearer ${role}`);
    const API_KEYS = JSON.stringify(ROLES.map((name) => ({ key: name, role: name })));
    return app.fetch(sent, { ...env, API_KEYS } as unknown as Env);
  });
const admin = as('admin');

/** Each way to write a secret of a subscription. */
const SUBSCRIPTIONS: Json[] = [
  { url: `https://hooks.example/services/${SENTINEL}` },
  { url: `https://chat.example/hook?token=${SENTINEL}` },
  { url: 'https://chat.example/', secret: `whsec-${SENTINEL}` },
  { url: 'https://events.example/', format: 'pagerduty', routing_key: SENTINEL },
  { url: 'https://chat.example/', format: { template: { token: SENTINEL, text: '{{type}}' } } },
];

/** What a GET of this path is about here; the rest names nothing. */
const pathOf = (route: string, id: string, queue: string) =>
  route
    .replace('/webhooks/subscriptions/:id', `/webhooks/subscriptions/${id}`)
    .replace('/queues/:name', `/queues/${queue}`)
    .replace(/:id|:\w*[iI]d\b/g, UNKNOWN_ID)
    .replace(/:\w+/g, queue)
    .replaceAll('*', '');

/** Streams do not end; the page and its scripts are files. */
const isAnswer = (path: string) => !/stream|\/events$|\/ws$|\/socket|\/ui\b|\/live/.test(path);

it.each(SUBSCRIPTIONS)('only an administrator reads the secret of %j', async (members) => {
  const written = ['log', 'info', 'warn', 'error'].map((name) => vi.spyOn(console, name as 'log'));
  const queue = freshName();
  await server.enqueue(queue);
  const made = await admin.ok(201, 'POST', LIST, { events: ['alert.*'], ...members });
  const id = made.id as string;
  await admin.ok(
    200,
    'PATCH',
    `${LIST}/${id}`,
    Object.fromEntries(Object.entries(members).filter(([name]) => name !== 'secret')),
  );
  await admin.ok(200, 'POST', `${LIST}/${id}/rotate-secret`, { secret: `whsec-${SENTINEL}` });
  await admin.ok(200, 'PUT', `${LIST}/${id}`, { active: false });
  const paths = ROUTES.filter(({ method, path }) => method === 'GET' && isAnswer(path));
  for (const role of ['viewer', 'operator'] as const) {
    for (const { path } of paths) {
      const answer = await as(role).send(new Request(`http://tocsin.test${pathOf(path, id, queue)}`));
      expect([role, path, (await answer.text()).includes(SENTINEL)]).toEqual([role, path, false]);
    }
  }
  // Nobody needs a secret to know what was changed.
  const audit = await admin.ok(200, 'GET', `${V1}/admin/audit`);
  expect(audit.total).toBe(4);
  expect(JSON.stringify(audit)).not.toContain(SENTINEL);
  expect(JSON.stringify(written.map(({ mock }) => mock.calls))).not.toContain(SENTINEL);
  vi.restoreAllMocks();
});

describe('the URL of a subscription', () => {
  const url = `https://hooks.example/services/${SENTINEL}`;

  it('is whole for an administrator, and its origin for everybody else', async () => {
    const { id } = await admin.ok(201, 'POST', LIST, { url, events: ['alert.*'] });
    const seen = ROLES.map(async (role) => (await as(role).ok(200, 'GET', `${LIST}/${id}`)).url);
    const origin = 'https://hooks.example/[redacted]';
    expect(await Promise.all(seen)).toEqual([origin, origin, url]);
  });

  it('is kept when a key that sees its origin only changes the rest, and is not overwritten by what that key saw', async () => {
    const template = { token: SENTINEL };
    const { id } = await admin.ok(201, 'POST', LIST, { url, events: ['alert.*'], format: { template } });
    const path = `${LIST}/${id}`;
    const operator = as('operator');
    const { url: shown, format } = await operator.ok(200, 'GET', path);
    for (const change of [{ url: shown }, { format }]) {
      expect(await operator.refusal('PATCH', path, { events: ['job.*'], ...change })).toMatchObject({
        status: 422,
        field: Object.keys(change)[0],
      });
    }
    await operator.ok(200, 'PATCH', path, { events: ['job.discarded'] });
    expect(await admin.ok(200, 'GET', path)).toMatchObject({ url, events: ['job.discarded'], format: { template } });
  });

  it('is masked in what messages say', () => {
    expect(maskedUrl('https://a.example')).toBe('https://a.example/');
    expect(maskedUrl('https://a.example:8443/?t=1')).toBe('https://a.example:8443/[redacted]');
    expect(maskedUrl('https://u:p@a.example/')).toBe('https://a.example/[redacted]');
    expect(maskedUrl('nonsense')).toBe('[redacted]');
    expect(withMaskedUrls('connect to https://a.example/x?t=1 failed')).toBe(
      'connect to https://a.example/[redacted] failed',
    );
  });
});

it('entries of the audit log that an earlier release wrote are shown without secrets', async () => {
  const actor = { name: null, role: 'admin', key_hint: null };
  const entry = { at: Date.now(), actor, target: 'wh', queue: null, job: null, filter: null, count: null };
  const more = { ...entry, operation_id: null, status: 201, request_id: 'r', reason: null };
  const change = { url: `https://a.example/${SENTINEL}`, routing_key: SENTINEL, events: ['alert.*'] };
  await directory().recordAudit({ ...more, action: 'webhook.create', change });
  await directory().recordAudit({ ...more, action: 'webhook.change', change: { text: SENTINEL, truncated: true } });
  const { items } = await as('viewer').ok(200, 'GET', `${V1}/admin/audit`);
  expect((items as Json[]).map((one) => one.change)).toEqual([
    { text: '[redacted]', truncated: true },
    { url: 'https://a.example/[redacted]', routing_key: '[redacted]', events: ['alert.*'] },
  ]);
});

describe('a contract', () => {
  const SECRET_NAMES = /secret|token|password|credential|^key$|_key$|^url$/;
  /** Named like a secret, and none: they are names that clients choose for what they send. */
  const PUBLIC = new Set(['idempotency_key']);

  type Bodied = { requestBody?: { content?: Record<string, { schema?: { $ref?: string; properties?: object } }> } };
  const { paths, components } = document as unknown as {
    paths: Record<string, Record<string, Bodied>>;
    components: { schemas: Record<string, { properties?: object }> };
  };

  const membersOf = ({ requestBody }: Bodied): string[] =>
    Object.values(requestBody?.content ?? {}).flatMap(({ schema }) => {
      const named = components.schemas[schema?.$ref?.split('/').at(-1) ?? ''];
      return Object.keys(schema?.properties ?? named?.properties ?? {});
    });

  it('marks every member of a body that is named like a secret', () => {
    const marks = new Map<string, Readonly<Record<string, Mask>>>(
      ROUTES.map(({ method, path, secrets }) => [`${method} ${path.replace(/:(\w+)/g, '{$1}')}`, secrets ?? {}]),
    );
    const found: string[] = [];
    const unmarked: string[] = [];
    for (const [path, operations] of Object.entries(paths)) {
      for (const [method, operation] of Object.entries(operations)) {
        const route = `${method.toUpperCase()} ${path}`;
        for (const name of membersOf(operation)) {
          if (!SECRET_NAMES.test(name) || PUBLIC.has(name)) continue;
          found.push(`${route} ${name}`);
          if (!Object.hasOwn(marks.get(route) ?? {}, name)) unmarked.push(`${route} ${name}`);
        }
      }
    }
    expect(unmarked).toEqual([]);
    expect(found).toContain('POST /ojs/v1/webhooks/subscriptions routing_key');
  });
});
