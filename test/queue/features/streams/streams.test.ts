/** Output streams of jobs: what is shown, what is written and when, whose chunks count, and what readers get. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { until } from '../../../support/clock';
import { handler } from '../../../support/handlers';
import { freshName, steady, TestQueue } from '../../../support/queue';
import { type Json, server, TestServer, UNKNOWN_ID, V1 } from '../../../support/server';
import { StreamReader } from '../../../support/streams';
import { WorkerSocket } from '../../../support/worker-socket';

const KIB = 1024;
const MIB = KIB * KIB;

server.emptyBeforeEach();
let queue: string;
let object: TestQueue;
beforeEach(() => {
  queue = freshName('streams');
  object = new TestQueue(queue);
});

const path = (id: unknown, name = 'tokens') => `${V1}/jobs/${id}/streams/${name}`;
const write = (id: unknown, first: number, chunks: unknown[], rest: Json = {}, name?: string) =>
  server.ok(200, 'POST', path(id, name), { first, chunks, ...rest });
const sent = async (id: unknown, body: Json, name?: string) => {
  const answer = await server.call('POST', path(id, name), body);
  return { status: answer.status, ...answer.body.error };
};
const refused = (id: unknown, first: number, chunks: unknown[], rest: Json = {}, name?: string) =>
  sent(id, { first, chunks, ...rest }, name);
const asJson = { Accept: 'application/openjobspec+json' };
const page = (id: unknown, after = '0', name?: string) =>
  server.ok(200, 'GET', `${path(id, name)}?after=${after}`, undefined, asJson);
const follow = (id: unknown, headers: Record<string, string> = {}, rest = '') =>
  StreamReader.open(`/jobs/${id}/streams/tokens${rest}`, headers);
const texts = (reader: StreamReader) =>
  reader.messages.map(({ event, data }) => (event === 'chunk' ? data.chunk : `(${event} ${data.state ?? data.run})`));
const rows = () => object.rows<{ run: number; n: number; data: string }>('SELECT run, n, data FROM stream_chunks');

/** A job that runs. */
async function taken(options: Json = {}): Promise<string> {
  const id = await server.enqueue(queue, { options });
  await server.takeOne(queue);
  return id;
}

async function again(id: string): Promise<void> {
  await server.nack(id);
  await until(async () => (await server.take(queue)).length === 1, 'the next attempt');
}
const retried = { retry: steady(5, 1) };

describe('chunks of a stream', () => {
  it('are shown at once, and confirmed when they are written', async () => {
    const id = await taken();
    const reader = await follow(id);
    const written = write(id, 0, ['Hello', { n: 1 }]);
    await reader.get('chunk', 2);
    expect(await rows()).toEqual([]);
    expect(await page(id)).toMatchObject({ state: 'open', run: 1024, chunks: ['Hello', { n: 1 }], next: '1024.1' });
    expect(await written).toEqual({ job_id: id, name: 'tokens', run: 1024, next: 2 });
    expect(await rows()).toEqual([{ run: 1024, n: 0, data: '["Hello",{"n":1}]' }]);
    expect(reader.messages.map(({ id: place }) => place)).toEqual(['1024.0', '1024.1']);
    await write(id, 2, ['!']);
    await server.ack(id);
    await reader.over();
    expect(texts(reader)).toEqual(['Hello', { n: 1 }, '!', '(end completed)']);
    expect(await page(id)).toMatchObject({ state: 'completed', next: null });
  });

  it('cost a row a second: at most 62 for 1,000 writes in a minute, and as many to remove', async () => {
    const id = await taken();
    const ticks: (() => void)[] = [];
    const real = globalThis.setTimeout;
    const held = ((run: () => void, ms?: number) => (ms === 1000 ? ticks.push(run) : real(run, ms))) as never;
    vi.spyOn(globalThis, 'setTimeout').mockImplementation(held);
    const passSecond = () =>
      object.inside(() => {
        for (const tick of ticks.splice(0)) tick();
      });
    await object.startCounting();
    const writes: Promise<unknown>[] = [];
    for (let n = 0; n < 1000; n++) {
      const { job_id, name } = { job_id: id, name: 'tokens' };
      const wrote = object.api.writeStream({ job_id, name, execution: 0, first: n, chunks: ['"token "'] });
      writes.push(wrote);
      if (n % 17 === 16) {
        await until(() => ticks.length > 0, 'the next write');
        await passSecond();
        expect(await wrote).toMatchObject({ ok: true });
      }
    }
    await until(async () => (await page(id, '1024.998')).run !== null, 'the last chunk');
    await server.ack(id);
    await passSecond();
    await Promise.all(writes);
    vi.restoreAllMocks();
    const { written, alarms } = await object.counted();
    // One of them is the end of the job.
    expect(written - alarms).toBeLessThanOrEqual(62);
    expect(written - alarms).toBeGreaterThanOrEqual(59);
    expect((await page(id, '1024.998')).chunks).toEqual(['token ']);
  });

  it('of many jobs are written in turns, and leave memory then', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 9; n++) ids.push(await taken());
    await object.inside(({ q }) => Object.assign(q.store.sizes, { turnChanges: 2 }));
    const turns = await object.transactionsOf(() => Promise.all(ids.map((id) => write(id, 0, ['x']))));
    expect(turns).toBeGreaterThanOrEqual(5);
    expect(await rows()).toHaveLength(9);
    expect(await object.inside(({ q }) => Reflect.get(q.store.streams, 'chars'))).toBe(0);
  });

  it('are written with the record of a step, and with the end of the job', async () => {
    const id = await taken();
    void write(id, 0, ['a'], { step: 'answer' });
    await until(async () => (await page(id)).run !== null, 'the chunk');
    await server.ok(200, 'PUT', `${V1}/jobs/${id}/steps/answer`, { result: 1 });
    expect(await rows()).toHaveLength(1);
    void write(id, 0, ['b'], {}, 'log');
    await until(async () => (await page(id, '0', 'log')).run !== null, 'the chunk');
    await server.ack(id);
    await object.evict();
    expect(await page(id)).toMatchObject({ chunks: ['a'], next: null });
    expect(await page(id, '0', 'log')).toMatchObject({ chunks: ['b'], next: null });
    expect((await server.ok(200, 'GET', `${V1}/jobs/${id}/streams`)).streams).toEqual([
      { name: 'log', run: 1024, chunks: 1, bytes: 5 },
      { name: 'tokens', run: 1024, chunks: 1, bytes: 5, step: 'answer' },
    ]);
  });

  it('are passed over when they are sent again, and refused with the number that is missing', async () => {
    const id = await taken();
    await write(id, 0, ['a', 'b']);
    expect(await write(id, 1, ['b', 'c'])).toMatchObject({ next: 3 });
    expect(await refused(id, 4, ['e'])).toMatchObject({ status: 409, details: { next: 3 } });
    expect((await page(id)).chunks).toEqual(['a', 'b', 'c']);
  });

  it('that the object had only in memory are repeated under the same numbers, and no reader sees them twice', async () => {
    const id = await taken();
    await write(id, 0, ['a']);
    void write(id, 1, ['b']).catch(() => undefined);
    await until(async () => ((await page(id)).chunks as unknown[]).length === 2, 'b');
    const reader = await follow(id);
    await reader.get('chunk', 2);
    await object.die();
    expect(await refused(id, 2, ['c'])).toMatchObject({ status: 409, details: { next: 1 } });
    await write(id, 1, ['b', 'c']);
    const late = await follow(id, { 'Last-Event-ID': '1024.1' });
    await late.get('chunk', 1);
    await server.ack(id);
    for (const each of [reader, late]) await each.over();
    expect(texts(late)).toEqual(['c', '(end completed)']);
    expect(texts(reader)).toEqual(['a', 'b', 'c', '(end completed)']);
  });

  it('of an attempt that is over are refused, and no reader gets them', async () => {
    const id = await taken(retried);
    const first = { attempt: 1 };
    await write(id, 0, ['a'], first);
    const reader = await follow(id);
    await again(id);
    expect(await refused(id, 1, ['b'], first)).toMatchObject({ status: 409 });
    expect(await refused(UNKNOWN_ID, 0, ['b'])).toMatchObject({ status: 404 });
    await server.ack(id);
    await reader.over();
    expect(texts(reader)).toEqual(['a', '(end completed)']);
    expect(await refused(id, 1, ['b'], first)).toMatchObject({ status: 409 });
  });

  it('of a writer that executes again replace those before, and readers get a reset', async () => {
    const id = await taken(retried);
    await write(id, 0, ['a', 'b']);
    const reader = await follow(id);
    await reader.get('chunk', 2);
    await write(id, 0, ['A'], { execution: 1 });
    expect(await refused(id, 2, ['c'])).toMatchObject({ status: 409, details: { run: 1025 } });
    await again(id);
    await write(id, 0, ['x', 'y']);
    expect((await rows()).map(({ run }) => run)).toEqual([2048]);
    await server.ack(id);
    await reader.over();
    expect(texts(reader)).toEqual(['a', 'b', '(reset 1025)', 'A', '(reset 2048)', 'x', 'y', '(end completed)']);
    const late = await follow(id, {}, '?after=1024.1');
    await late.over();
    expect(texts(late)).toEqual(['(reset 2048)', 'x', 'y', '(end completed)']);
    expect(await page(id, '1024.1')).toMatchObject({ run: 2048, chunks: ['x', 'y'] });
  });

  it('have one writer, and bounds', async () => {
    const id = await taken(retried);
    await write(id, 0, ['a'], { step: 'one' });
    expect(await refused(id, 1, ['b'])).toMatchObject({ status: 409, details: { writer: 'one' } });
    await again(id);
    expect(await refused(id, 0, ['b'], { step: 'two' })).toMatchObject({ status: 409, details: { writer: 'one' } });
    const writes = Array.from({ length: 15 }, (_, n) => write(id, 0, ['x'], {}, `s${n}`));
    await Promise.all(writes);
    expect(await refused(id, 0, ['x'], {}, 's15')).toMatchObject({
      ...{ status: 413, type: 'stream_full' },
      details: { stream: 's15', limit: 'streams', max: 16 },
    });
    const large = 'x'.repeat(256 * KIB - 2);
    for (let n = 0; n < 39; n++) await write(id, n + 1, [large], {}, 's0');
    const left = await refused(id, 40, [large], {}, 's0');
    expect(left).toMatchObject({ status: 413, type: 'stream_full', details: { limit: 'bytes', max: 10 * MIB } });
    expect(await write(id, 40, ['y'], {}, 's0')).toMatchObject({ next: 41 });
    expect(await refused(id, 41, [`${large}x`], {}, 's0')).toMatchObject({ details: { field: 'chunks[0]' } });
    let after = '0';
    let count = 0;
    for (;;) {
      const { chunks, next } = await page(id, after, 's0');
      count += (chunks as unknown[]).length;
      if ((chunks as unknown[]).length === 0) break;
      after = next as string;
    }
    expect(count).toBe(41);
    await server.ack(id);
    const reader = await StreamReader.open(`/jobs/${id}/streams/s0`);
    await reader.over();
    expect(reader.of('chunk')).toHaveLength(41);
  });

  it('go with the job, and a job that has ended has no other streams', async () => {
    const id = await taken();
    await write(id, 0, ['a']);
    await server.ack(id);
    expect(await server.refusal('GET', path(id, 'other'))).toMatchObject({ status: 404 });
    await server.ok(200, 'POST', `${V1}/jobs/bulk/delete`, { job_ids: [id] });
    expect(await rows()).toEqual([]);
    expect(await server.refusal('GET', path(id))).toMatchObject({ status: 404 });
    const gone = await taken();
    await write(gone, 0, ['a']);
    await server.ok(200, 'DELETE', `${V1}/jobs/${gone}`);
    expect(await page(gone)).toMatchObject({ state: 'cancelled', chunks: ['a'] });
    await server.ok(200, 'POST', `${V1}/jobs/bulk/delete`, { job_ids: [gone] });
    expect(await rows()).toEqual([]);
    const brief = await taken({ retention: { completed: 0 } });
    void write(brief, 0, ['a']).catch(() => undefined);
    await until(async () => (await page(brief)).run !== null, 'the chunk');
    await server.ack(brief);
    expect(await rows()).toEqual([]);
  });

  it.each([
    [{ first: -1, chunks: [] }, 'first'],
    [{ chunks: [] }, 'first'],
    [{ first: 0 }, 'chunks'],
    [{ first: 0, chunks: 'text' }, 'chunks'],
    [{ first: 0, chunks: [], execution: 1024 }, 'execution'],
    [{ first: 0, chunks: [], step: '' }, 'step'],
    [{ first: 0, chunks: [], run: 1 }, 'run'],
  ])('are refused as %j', async (body, field) => {
    const id = await taken();
    expect(await sent(id, body)).toMatchObject({ status: 400, details: { field } });
    expect(await rows()).toEqual([]);
  });
});

describe('a reader', () => {
  it('waits for a stream of an open job, and comes back after any place', async () => {
    const id = await taken();
    expect(await page(id)).toEqual({ job_id: id, name: 'tokens', state: 'open', run: null, chunks: [], next: '0' });
    const reader = await follow(id);
    await write(id, 0, ['a', 'b', 'c']);
    await reader.get('chunk', 3);
    await reader.close();
    const late = await follow(id, { 'Last-Event-ID': '1024.0' });
    await late.get('chunk', 2);
    const lost = await follow(id, { 'Last-Event-ID': 'nonsense' });
    await lost.get('chunk', 3);
    await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
    for (const each of [late, lost]) await each.over();
    expect(texts(late)).toEqual(['b', 'c', '(end cancelled)']);
    expect(texts(lost)).toEqual(['(reset 1024)', 'a', 'b', 'c', '(end cancelled)']);
    expect(await server.refusal('GET', `${path(id)}?after=x`)).toMatchObject({ status: 400, field: 'after' });
  });

  it('reads what is too much to be sent', async () => {
    const id = await taken();
    const reader = await follow(id);
    const large = 'x'.repeat(200 * KIB);
    for (let n = 0; n < 30; n++) await write(id, n, [large]);
    await reader.get('chunk', 30);
    await server.ack(id);
    await reader.over();
    expect(reader.messages.map(({ id: place }) => place)).toEqual([
      ...Array.from({ length: 30 }, (_, n) => `1024.${n}`),
      '1024.29',
    ]);
  });
});

describe('a caller that may not see everything', () => {
  const variables = {
    API_KEYS: JSON.stringify([
      { key: 'admin', role: 'admin' },
      { key: 'viewer', role: 'viewer' },
    ]),
    TOKEN_SECRET: 't'.repeat(32),
  };
  const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });
  const chunks = ['text', { password: 'x', open: [{ password: 'y' }] }];
  const shown = { password: '[redacted]', open: [{ password: '[redacted]' }] };

  it.each([
    ['password', ['text', shown]],
    ['stream', ['[redacted]', '[redacted]']],
    ['stream.tokens', ['[redacted]', '[redacted]']],
    ['stream.other', chunks],
  ])('gets chunks by the rule %s', async (REDACT, expected) => {
    const id = await taken();
    await write(id, 0, chunks, { flush: true });
    await server.ack(id);
    const to = TestServer.with({ ...variables, REDACT });
    const { chunks: seen } = await to.ok(200, 'GET', path(id), undefined, { ...asJson, ...bearer('viewer') });
    expect(seen).toEqual(expected);
    const reader = await StreamReader.open(`/jobs/${id}/streams/tokens`, bearer('viewer'), to);
    await reader.over();
    expect(texts(reader)).toEqual([...expected, '(end completed)']);
    expect((await to.ok(200, 'GET', path(id), undefined, { ...asJson, ...bearer('admin') })).chunks).toEqual(chunks);
  });

  it('reads the streams of one job with a token, whole', async () => {
    const [id, other] = [await taken(), await taken()];
    for (const each of [id, other]) await write(each, 0, chunks, { flush: true });
    await server.ack(id);
    const to = TestServer.with(variables);
    const token = (await to.ok(201, 'POST', `${V1}/tokens`, { job: id, read: true }, bearer('admin'))).token as string;
    const reader = await StreamReader.open(`/jobs/${id}/streams/tokens?access_token=${token}`, {}, to);
    await reader.over();
    expect(texts(reader)).toEqual([...chunks, '(end completed)']);
    expect((await to.ok(200, 'GET', `${V1}/jobs/${id}/streams`, undefined, bearer(token))).streams).toHaveLength(1);
    for (const answer of [
      await to.call('GET', path(other), undefined, bearer(token)),
      await to.call('POST', path(id), { first: 2, chunks: ['x'] }, bearer(token)),
    ]) {
      expect([answer.status, answer.body.error?.code]).toEqual([403, 'token_scope']);
    }
  });
});

describe('an answer', () => {
  it('brings the streams of a call that carries nothing before its end', async () => {
    const streams = [
      { name: 'tokens', execution: 0, first: 0, chunks: ['a'] },
      { name: 'tokens', execution: 0, first: 1, chunks: ['b'] },
      { name: 'log', step: 'one', first: 0, chunks: [{ n: 1 }] },
    ];
    const id = await server.add('talk.do', [{ end: { result: 1, streams } }], { queue });
    await server.jobIn(id, 'completed');
    expect(await page(id)).toMatchObject({ state: 'completed', chunks: ['a', 'b'], next: null });
    expect(await page(id, '0', 'log')).toMatchObject({ chunks: [{ n: 1 }] });
    const wrong = [{ name: 'tokens', first: 1, chunks: ['b'] }];
    const retry = { max_attempts: 1 };
    const failing = await server.add('talk.do', [{ end: { result: 1, streams: wrong } }], { queue, retry });
    expect(await server.jobIn(failing, 'discarded')).toMatchObject({ error: { code: 'conflict' } });
  });
});

describe('a worker on a socket', () => {
  it('sends chunks in order without waiting for each, and hears what was refused', async () => {
    const socket = await WorkerSocket.open(queue);
    socket.ready(1);
    const id = await server.enqueue(queue, {});
    await socket.given(1);
    const reader = await follow(id);
    const chunk = (at: number, rest: Json = {}) =>
      socket.say({ type: 'stream', id: 100 + at, job_id: id, name: 'tokens', first: at, chunks: [`${at}`], ...rest });
    // More than may be under way otherwise.
    for (let at = 0; at < 250; at++) chunk(at);
    await reader.get('chunk', 250);
    await socket.get('streamed', 250);
    chunk(260);
    chunk(250, { job_id: UNKNOWN_ID });
    chunk(250, { color: 'red' });
    await socket.get('error', 3);
    const errors = socket.of('error');
    expect(errors.map(({ id: of, error }) => [of, (error as Json).status])).toEqual(
      expect.arrayContaining([
        [360, 409],
        [350, 404],
        [350, 400],
      ]),
    );
    await server.ack(id);
    await reader.over();
    expect(reader.of('chunk').map(({ data }) => data.chunk)).toEqual(Array.from({ length: 250 }, (_, n) => `${n}`));
    socket.close();
  });
});

describe('a pushed job', () => {
  it('writes streams on its open call', async () => {
    const gate = crypto.randomUUID();
    const say = (first: number, chunks: unknown[]) => ({ ask: { stream: { name: 'tokens', first, chunks } } });
    const order = { say: [say(0, ['a', 'b']), say(2, ['c'])], gate, end: { result: 1 } };
    const id = await server.add('talk.do', [order], { queue });
    await until(async () => (await server.call('GET', path(id), undefined, asJson)).body.run === 1024, 'chunks');
    const reader = await follow(id);
    await reader.get('chunk', 3);
    await until(async () => (await handler<Json[]>('TALK', `/replies?id=${id}`)).length === 2, 'two replies');
    expect(await handler<Json[]>('TALK', `/replies?id=${id}`)).toEqual([
      { value: { run: 1024, next: 2 } },
      { value: { run: 1024, next: 3 } },
    ]);
    await handler('TALK', `/open?gate=${gate}`);
    await reader.over();
    expect(texts(reader)).toEqual(['a', 'b', 'c', '(end completed)']);
  });
});
