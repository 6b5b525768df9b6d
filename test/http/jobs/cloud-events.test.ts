import { describe, expect, it } from 'vitest';
import { handler } from '../../support/handlers';
import { type Json, server, V1 } from '../../support/server';
import type { Arrival } from '../../support/workers/internet';

const STRUCTURED = { 'Content-Type': 'application/cloudevents+json; charset=utf-8' };
const BATCHED = { 'Content-Type': 'application/cloudevents-batch+json' };
const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

const event = (change: Json = {}): Json => ({
  specversion: '1.0',
  id: 'A234-1234-1234',
  source: '/mycontext/4',
  type: 'com.github.push',
  ...change,
});

const binary = (change: Record<string, string> = {}): Record<string, string> => ({
  'ce-specversion': '1.0',
  'ce-id': 'A234-1234-1234',
  'ce-source': '/mycontext/4',
  'ce-type': 'com.github.push',
  ...change,
});

const send = (body: unknown, headers: Record<string, string> = STRUCTURED, path = '/jobs') =>
  server.call('POST', `${V1}${path}`, body, headers);

async function job(body: unknown, headers: Record<string, string> = STRUCTURED): Promise<Json> {
  const answer = await send(body, headers);
  expect(answer, JSON.stringify(answer.body)).toMatchObject({ status: 201 });
  return server.job(answer.body.id as string);
}

async function refused(body: unknown, headers: Record<string, string> = STRUCTURED, path = '/jobs'): Promise<Json> {
  const { status, body: answer } = await send(body, headers, path);
  return { status, field: answer.error?.details?.field, message: answer.error?.message };
}

describe('a CloudEvent as a JSON object', () => {
  it('becomes a job: its data the argument, its attributes in meta', async () => {
    const data = { ref: 'refs/heads/main', commits: [1, 2] };
    const attributes = { subject: 'main', time: '2018-04-05T17:31:00.5+01:00', dataschema: 'https://a.example/s' };
    const made = await job(event({ data, ...attributes, datacontenttype: 'application/json', myext: 7, flag: false }));
    expect(made).toMatchObject({ type: 'com.github.push', queue: 'default', state: 'available', args: [data] });
    expect(made.meta).toEqual({
      ce_id: 'A234-1234-1234',
      ce_source: '/mycontext/4',
      ce_subject: 'main',
      ce_time: '2018-04-05T17:31:00.5+01:00',
      ce_dataschema: 'https://a.example/s',
      ce_datacontenttype: 'application/json',
      ce_myext: 7,
      ce_flag: false,
    });
  });

  it('has no argument without data, and keeps data that is null or text', async () => {
    expect((await job(event())).args).toEqual([]);
    expect((await job(event({ data: null }))).args).toEqual([null]);
    expect((await job(event({ data: 'text', datacontenttype: 'text/plain', subject: null }))).args).toEqual(['text']);
  });

  it('names its queue, delay and priority in attributes', async () => {
    const before = Date.now();
    const made = await job(event({ tocsinqueue: 'pushes', tocsindelay: 'PT1H', tocsinpriority: -5 }));
    expect(made).toMatchObject({ queue: 'pushes', priority: -5, state: 'scheduled' });
    expect(Date.parse(made.scheduled_at as string)).toBeGreaterThanOrEqual(before + 3_600_000);
    expect(Object.keys(made.meta as Json)).toEqual(['ce_id', 'ce_source']);
  });

  it('carries its trace, which precedes that of the request', async () => {
    const other = '00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-00';
    const headers = { ...STRUCTURED, traceparent: other };
    const trace = { traceparent: TRACE, tracestate: 'a=1' };
    expect((await job(event(trace), headers)).meta).toMatchObject(trace);
    expect((await job(event(), headers)).meta).toMatchObject({ traceparent: other });
  });

  it('is enqueued once under an Idempotency-Key', async () => {
    const headers = { ...STRUCTURED, 'Idempotency-Key': crypto.randomUUID() };
    const [first, second] = [await send(event(), headers), await send(event(), headers)];
    expect(second.headers.get('Idempotency-Replayed')).toBe('true');
    expect(second.body.id).toBe(first.body.id);
  });

  it.each<[string, Json]>([
    ['specversion', { specversion: undefined }],
    ['specversion', { specversion: '0.3' }],
    ['id', { id: undefined }],
    ['id', { id: '' }],
    ['id', { id: 7 }],
    ['source', { source: undefined }],
    ['type', { type: undefined }],
    ['type', { type: 'com.example.OrderPlaced' }],
    ['type', { type: 'com.example.2fa' }],
    ['type', { type: `a.${'b'.repeat(255)}` }],
    ['subject', { subject: '' }],
    ['subject', { subject: 7.5 }],
    ['time', { time: 'yesterday' }],
    ['time', { time: '2018-04-05' }],
    ['data_base64', { data_base64: 'aGk=' }],
    ['My-Ext', { 'My-Ext': 'a' }],
    ['ext', { ext: { a: 1 } }],
    ['ext', { ext: [1] }],
    ['tocsinqueue', { tocsinqueue: 'Mail' }],
    ['tocsinqueue', { tocsinqueue: 7 }],
    ['tocsindelay', { tocsindelay: 'soon' }],
    ['tocsindelay', { tocsindelay: 60 }],
    ['tocsinpriority', { tocsinpriority: 101 }],
    ['tocsinpriority', { tocsinpriority: '1e2' }],
    ['tocsinretries', { tocsinretries: 3 }],
    ['traceparent', { traceparent: '00-1-2-3' }],
    ['tracestate', { traceparent: TRACE, tracestate: 7 }],
  ])('is refused for its %s: %j', async (field, change) => {
    const answer = await refused(event(change));
    expect(answer).toMatchObject({ status: 400, field });
    expect(answer.message).toContain(field);
  });

  it('says why its type cannot be that of a job', async () => {
    expect((await refused(event({ type: 'com.example.OrderPlaced' }))).message).toBe(
      'type "com.example.OrderPlaced" cannot be the type of a job, which must be lower-case words joined by dots ' +
        '(letters, digits, "_" and "-", each word starting with a letter), at most 255 characters.',
    );
  });

  it.each([['[]'], ['7'], [''], ['{'], ['null']])('is not the body %s', async (body) => {
    expect(await refused(body)).toMatchObject({ status: 400 });
  });

  it('is refused where meta would become too large', async () => {
    const many = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`ext${n}`, 'x'.repeat(8000)]));
    expect(await refused(event(many))).toMatchObject({ status: 413, field: 'meta' });
  });
});

describe('a CloudEvent in headers', () => {
  it('becomes the same job, with the body as its argument', async () => {
    const headers = binary({
      'Content-Type': 'application/json',
      'ce-subject': 'Euro%20%E2%82%AC 100%',
      'CE-Myext': 'a',
      'ce-tocsinqueue': 'pushes',
      'ce-tocsinpriority': '7',
      'ce-traceparent': TRACE,
    });
    expect(await job('[1,{"a":null}]', headers)).toMatchObject({
      type: 'com.github.push',
      queue: 'pushes',
      priority: 7,
      args: [[1, { a: null }]],
      meta: {
        ce_id: 'A234-1234-1234',
        ce_source: '/mycontext/4',
        ce_subject: 'Euro € 100%',
        ce_myext: 'a',
        ce_datacontenttype: 'application/json',
        traceparent: TRACE,
      },
    });
    expect((await job('{"a":1}', binary({ 'Content-Type': 'application/vnd.a+json' }))).args).toEqual([{ a: 1 }]);
    expect((await job('', binary())).args).toEqual([]);
  });

  it.each<[string, string, Record<string, string>]>([
    ['Content-Type', 'text', { 'Content-Type': 'text/plain' }],
    ['ce-subject', '', { 'ce-subject': '%ff' }],
    ['ce-data', '', { 'ce-data': 'a' }],
    ['specversion', '', { 'ce-specversion': '1.1' }],
    ['type', '', { 'ce-type': 'Push' }],
    ['my-ext', '', { 'ce-my-ext': 'a' }],
  ])('is refused for its %s', async (field, body, headers) => {
    expect(await refused(body, binary(headers))).toMatchObject({ status: 400, field });
  });

  it('needs all of its attributes', async () => {
    expect(await refused('{}', { 'ce-id': '1' })).toMatchObject({ status: 400, field: 'specversion' });
  });
});

describe('CloudEvents as a JSON array', () => {
  it.each(['/jobs', '/jobs/batch'])('become a batch, at %s', async (path) => {
    const answer = await send([event({ data: 1 }), event({ id: 'b', data: 2, tocsinqueue: 'other' })], BATCHED, path);
    expect(answer).toMatchObject({
      status: 201,
      body: {
        enqueued: 2,
        jobs: [
          { args: [1], queue: 'default', meta: { ce_id: 'A234-1234-1234' } },
          { args: [2], queue: 'other', meta: { ce_id: 'b' } },
        ],
      },
    });
  });

  it('are refused as a whole for one of them, by its place', async () => {
    const queue = 'events-none';
    const events = [event({ tocsinqueue: queue }), event({ tocsinqueue: queue, type: 'Push' })];
    const { status, body } = await send(events, BATCHED);
    expect({ status, details: body.error?.details }).toEqual({ status: 400, details: { field: '[1].type', index: 1 } });
    expect((await send([7], BATCHED)).body.error?.details).toEqual({ field: '[0]', index: 0 });
    expect((await server.call('GET', `${V1}/jobs/count?queue=${queue}`)).body).toEqual({ count: 0 });
  });

  it('are one to a thousand', async () => {
    expect(await refused([], BATCHED)).toMatchObject({ status: 400, field: 'events' });
    expect(await refused(Array(1001).fill(event()), BATCHED)).toMatchObject({ status: 413, field: 'events' });
    expect(await refused({ events: [event()] }, BATCHED)).toMatchObject({ status: 400 });
  });
});

describe('a form of CloudEvents that is not taken', () => {
  it('is named', async () => {
    expect(await refused('<x/>', { 'Content-Type': 'application/cloudevents+xml' })).toMatchObject({
      status: 400,
      field: 'Content-Type',
    });
    for (const headers of [STRUCTURED, binary()]) {
      expect(await refused(event(), headers, '/jobs/batch')).toMatchObject({ status: 400, field: 'Content-Type' });
    }
    expect(await refused(event(), STRUCTURED, '/jobs/bulk')).toMatchObject({ status: 400, field: 'Content-Type' });
  });
});

describe('an event on its way', () => {
  it('reaches the handler of its type', async () => {
    const made = await job(event({ type: 'web.order', data: { body: 'ok' } }));
    await server.jobIn(made.id as string, 'completed');
    const [call] = await handler<Arrival[]>('INTERNET', `/arrivals?about=${made.id}`);
    expect(JSON.parse((call as Arrival).body).job).toMatchObject({
      args: [{ body: 'ok' }],
      meta: { ce_id: 'A234-1234-1234' },
    });
  });
});
