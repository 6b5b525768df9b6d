/** Members that clients of other queues know by a second name: read by either, shown by both. */
import { beforeEach, expect, it } from 'vitest';
import { namesOf, SECOND_NAMES } from '../../src/ojs/names';
import { clock, SECOND, T0 } from '../support/clock';
import { freshName } from '../support/queue';
import { type Json, server, V1 } from '../support/server';

const admin = (method: string, path: string, body?: Json) => server.call(method, `${V1}/admin${path}`, body);

beforeEach(() => clock.set(T0));

it('the time of a maintenance has two names, of which our own wins', async () => {
  const spans = [
    { duration: 'PT60S' },
    { estimated_duration: 'PT60S' },
    { duration: 'PT60S', estimated_duration: 'PT5S' },
  ];
  for (const span of spans) {
    const { body } = await admin('POST', '/maintenance', { enabled: true, ...span });
    const ends = new Date(T0 + 60 * SECOND).toISOString();
    expect(body).toMatchObject({ enabled: true, maintenance: true, ends_at: ends, estimated_end: ends });
  }
  const { body } = await admin('POST', '/maintenance', { enabled: false });
  expect(body).toMatchObject({ maintenance: false, enabled_at: null, estimated_end: null });
});

it.each([
  ['POST', '/admin/maintenance', { enabled: true, estimated_duration: 'soon' }, 'estimated_duration'],
  ['POST', '/schemas', { job_type: 'a.b', version: 1, args_schema: 'text' }, 'args_schema'],
  ['POST', '/schemas', { job_type: 'a.b', version: 1, schema: 5, args_schema: {} }, 'schema'],
  [
    'POST',
    '/webhooks/subscriptions',
    { url: 'https://a.example', events: ['job.*'], filter: { job_types: 5 } },
    'filter.job_types',
  ],
])('%s %s %j is refused under the name that was given', async (method, path, body, field) => {
  const { status, body: answer } = await server.call(method, V1 + path, body);
  expect([status, answer.error?.details?.field]).toEqual([400, field]);
});

it('a schema is registered under the second names, and shown with both', async () => {
  const type = freshName();
  const schema = { type: 'array', maxItems: 1 };
  const { status } = await server.call('POST', `${V1}/schemas`, { job_type: type, version: 1, args_schema: schema });
  const { body } = await server.call('GET', `${V1}/schemas/${type}`);
  expect([status, body.schema]).toEqual([201, expect.objectContaining({ type, job_type: type, schema })]);
});

it('deliveries are asked for by either name of their subscription', async () => {
  const path = `${V1}/webhooks/deliveries?`;
  for (const name of namesOf('DeliveryQuery', 'subscription')) {
    expect((await server.call('GET', `${path}${name}=none`)).status).not.toBe(200);
  }
});

it('no second name stands for another one, and none is a member of its own', () => {
  for (const names of Object.values<Record<string, string>>(SECOND_NAMES)) {
    for (const first of Object.values(names)) expect(Object.keys(names)).not.toContain(first);
  }
});
