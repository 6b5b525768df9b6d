/** Schemas over HTTP: registering, reading, deleting, in both dialects; and what they do to the jobs of producers. */
import { describe, expect, it } from 'vitest';
import { clock, iso, MINUTE, T0 } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { type Json, server } from '../../support/server';

server.emptyBeforeEach();
clock.startAtT0();

const ADMIN = '/ojs/v1/admin/schemas';
const SDK = '/ojs/v1/schemas';
const INVOICE = {
  type: 'object',
  required: ['amount'],
  properties: { amount: { type: 'integer' } },
};
const register = (version: string | number = 1, schema: Json = INVOICE, type = 'invoice.make') =>
  server.ok(201, 'PUT', `${ADMIN}/${type}/${version}`, { schema });
const job = (args: unknown[], options: Json = {}, rest: Json = {}) => ({
  type: 'invoice.make',
  args,
  options,
  ...rest,
});
const enqueue = (body: Json) => server.call('POST', '/ojs/v1/jobs', body);
const strict = (queue = '_default') => server.ok(200, 'PUT', `/ojs/v1/queues/${queue}/config`, { schemas: 'strict' });
const misfit = (path: string) => ({
  status: 400,
  body: { error: { code: 'schema_validation', details: { errors: [{ path }] } } },
});

describe('schemas', () => {
  it('are registered by type and version, read one by one and in lists, and deleted', async () => {
    expect(await register(2)).toEqual({
      uri: 'urn:ojs:schema:invoice.make:2',
      type: 'invoice.make',
      job_type: 'invoice.make',
      version: 2,
      schema: INVOICE,
      created_at: iso(T0),
    });
    await register('1.0');
    await register(1, INVOICE, 'other.type');
    expect(await server.ok(200, 'GET', `${ADMIN}/invoice.make`)).toMatchObject({ version: 2 });
    expect(await server.ok(200, 'GET', `${ADMIN}/invoice.make/1.0`)).toMatchObject({ version: '1.0' });
    expect(await server.ok(200, 'GET', `${ADMIN}/invoice.make/versions`)).toEqual({
      type: 'invoice.make',
      versions: [
        { version: 2, created_at: iso(T0), is_latest: true },
        { version: '1.0', created_at: iso(T0), is_latest: false },
      ],
    });
    const { schemas, total } = await server.ok(200, 'GET', `${ADMIN}?per_page=2&page=2`);
    expect([total, (schemas as Json[]).map(({ type }) => type)]).toEqual([3, ['other.type']]);
    expect(await server.ok(200, 'DELETE', `${ADMIN}/invoice.make/2`)).toMatchObject({ deleted: true });
    expect(await server.ok(200, 'GET', `${ADMIN}/invoice.make`)).toMatchObject({ version: '1.0' });
    for (const path of ['invoice.make/2', 'no.type', 'no.type/1', 'no.type/versions']) {
      expect((await server.call('GET', `${ADMIN}/${path}`)).status).toBe(404);
    }
    expect((await server.call('DELETE', `${ADMIN}/invoice.make/2`)).status).toBe(404);
  });

  it('are registered and read by URI, as the SDKs do', async () => {
    const uri = 'urn:shop:invoice';
    const body = { uri, type: 'invoice.make', version: '1.0.0', schema: INVOICE };
    const { schema } = await server.ok(201, 'POST', SDK, body);
    expect(schema).toMatchObject({ uri, type: 'invoice.make', version: '1.0.0', schema: INVOICE });
    expect((await server.ok(200, 'GET', `${SDK}/${encodeURIComponent(uri)}`)).schema).toEqual(schema);
    expect((await server.ok(200, 'GET', `${SDK}/invoice.make`)).schema).toEqual(schema);
    expect(await server.ok(200, 'GET', SDK)).toMatchObject({ schemas: [schema], pagination: { total: 1 } });
    expect((await server.call('POST', SDK, { ...body, version: '2.0.0' })).status).toBe(409);
    expect(await server.ok(200, 'DELETE', `${SDK}/${encodeURIComponent(uri)}`)).toMatchObject({ removed: 1 });
    expect((await server.call('GET', `${SDK}/${encodeURIComponent(uri)}`)).status).toBe(404);
  });

  it('are never replaced', async () => {
    await register(1);
    expect(await server.call('PUT', `${ADMIN}/invoice.make/1`, { schema: { type: 'array' } })).toMatchObject({
      status: 409,
    });
    expect((await server.ok(200, 'GET', `${ADMIN}/invoice.make/1`)).schema).toEqual(INVOICE);
  });

  it.each([
    ['invoice.make/1', {}, 'schema'],
    ['invoice.make/1', { schema: {} }, 'schema'],
    ['invoice.make/1', { schema: { type: 'thing' } }, 'schema/type'],
    ['Invoice/1', { schema: INVOICE }, 'type'],
    ['invoice.make/~x', { schema: INVOICE }, 'version'],
    ['invoice.make/1', { schema: INVOICE, uri: '' }, 'uri'],
  ])('refuse %s %j', async (path, body, field) => {
    const { status, body: answer } = await server.call('PUT', `${ADMIN}/${path}`, body);
    expect([status, answer.error?.details?.field]).toEqual([400, field]);
    expect((await server.ok(200, 'GET', ADMIN)).total).toBe(0);
  });
});

describe('a job that does not fit', () => {
  it('is accepted with a warning, and says so in the header too', async () => {
    await register();
    const { status, body, headers } = await enqueue(job([{ amount: 'much' }]));
    expect(status).toBe(201);
    expect(body.warnings).toEqual([expect.stringContaining('args[0].amount')]);
    expect(headers.get('Warning')).toContain('schema of invoice.make');
    expect((await enqueue(job([{ amount: 1 }]))).body).not.toHaveProperty('warnings');
  });

  it('is refused where the queue is strict, from the registration on, and nothing is written', async () => {
    await server.add('invoice.make', [{}], { queue: 'bills' });
    await strict('bills');
    await register();
    expect(await enqueue(job([{}], { queue: 'bills' }))).toMatchObject(misfit('args[0]'));
    expect(await enqueue(job([{ amount: 1 }], { queue: 'bills' }))).toMatchObject({ status: 201 });
    expect(await enqueue(job([{}], { queue: 'fresh' }))).toMatchObject({ status: 201 });
    expect(await server.jobs('bills')).toHaveLength(2);
  });

  it('creates no queue where all queues are strict', async () => {
    await strict();
    await register();
    expect(await enqueue(job([{}], { queue: 'fresh' }))).toMatchObject(misfit('args[0]'));
    expect(await server.queues()).toEqual([]);
  });

  it('is not looked at where the queue has it off, nor when the schema is gone', async () => {
    await register();
    await server.configure('loose', { schemas: 'off' });
    expect((await enqueue(job([{}], { queue: 'loose' }))).body).not.toHaveProperty('warnings');
    await strict('bills');
    await server.ok(200, 'DELETE', `${ADMIN}/invoice.make/1`);
    expect((await enqueue(job([{}], { queue: 'bills' }))).status).toBe(201);
  });

  it('is judged by the version that it names', async () => {
    await strict();
    await register(1, { type: 'object', required: ['old'] });
    await register(2);
    expect((await enqueue(job([{ old: 1 }], {}, { version: 1 }))).status).toBe(201);
    expect(await enqueue(job([{ old: 1 }]))).toMatchObject(misfit('args[0]'));
    expect(await enqueue(job([{ amount: 1 }], {}, { version: 3 }))).toMatchObject(misfit('version'));
  });

  it('is found by every Worker, also one that has not received the change: the queue has', async () => {
    await strict();
    const queue = new TestQueue('bills');
    await server.add('invoice.make', [{}], { queue: 'bills' });
    await register();
    const stale = await queue.api.enqueue([
      { type: 'invoice.make', priority: 0, body: '{"type":"invoice.make","args":[],"meta":{}}' },
    ]);
    expect(stale).toMatchObject({ ok: false, error: { status: 503, type: 'schemas_changed' } });
    await queue.evict();
    expect(await enqueue(job([{}], { queue: 'bills' }))).toMatchObject(misfit('args[0]'));
  });
});

describe('many jobs', () => {
  const good = job([{ amount: 1 }], { queue: 'a' });
  const bad = job([{ amount: null }], { queue: 'b' });

  it('of a batch are refused together, naming the entry, over several queues', async () => {
    await strict();
    await register();
    const { status, body } = await server.call('POST', '/ojs/v1/jobs/batch', { jobs: [good, bad] });
    expect([status, body.error?.code, body.error?.details?.index]).toEqual([400, 'schema_validation', 1]);
    expect(await server.queues()).toEqual([]);
  });

  it('of a partial bulk are refused one by one', async () => {
    await strict();
    await register();
    const { status, body } = await server.call('POST', '/ojs/v1/jobs/bulk', { jobs: [good, bad, bad] });
    expect([status, body.succeeded, body.failed]).toEqual([207, 1, 2]);
    expect(body.items?.[1]).toMatchObject({ status: 'failed', error: { code: 'schema_validation' } });
  });

  it('are warned of where that is all', async () => {
    await register();
    for (const [path, status] of [
      ['/ojs/v1/jobs/batch', 201],
      ['/ojs/v1/jobs/bulk', 201],
    ] as const) {
      const { warnings } = await server.ok(status, 'POST', path, { jobs: [good, bad] });
      expect(warnings).toEqual([expect.stringContaining('args[0].amount')]);
    }
  });

  it('sent again under their key get the first answer, whatever the schemas say by now', async () => {
    await strict();
    const headers = { 'Idempotency-Key': 'once' };
    const first = await server.call('POST', '/ojs/v1/jobs', bad, headers);
    await register();
    const again = await server.call('POST', '/ojs/v1/jobs', bad, headers);
    expect([again.status, again.body.id]).toEqual([201, first.body.id]);
  });
});

describe('what enqueues later', () => {
  it('is validated when it is saved: a schedule', async () => {
    await register();
    const cron = { name: 'nightly', expression: '@daily', job_template: job([{}], { queue: 'a' }) };
    expect((await server.ok(201, 'POST', '/ojs/v1/cron', cron)).warnings).toHaveLength(1);
    await strict('a');
    expect(await server.call('POST', '/ojs/v1/cron', { ...cron, description: 'x' })).toMatchObject(misfit('args[0]'));
    expect((await server.call('PATCH', '/ojs/v1/cron/nightly', { description: 'x' })).status).toBe(400);
    clock.advance(MINUTE);
    await server.ok(201, 'POST', '/ojs/v1/cron/nightly/trigger');
  });

  it('is validated when it is saved: the steps of a workflow, before any of them exists', async () => {
    await register();
    const workflow = { type: 'chain', steps: [job([{ amount: 1 }], { queue: 'a' }), job([{}], { queue: 'b' })] };
    expect((await server.ok(201, 'POST', '/ojs/v1/workflows', workflow)).warnings).toHaveLength(1);
    await strict();
    const { status, body } = await server.call('POST', '/ojs/v1/workflows', workflow);
    expect([status, body.error?.details]).toEqual([
      400,
      expect.objectContaining({ field: 'steps[1].args[0]', index: 1 }),
    ]);
  });
});
