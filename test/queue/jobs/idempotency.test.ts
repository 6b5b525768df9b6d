/** Idempotency keys: the same request gets the same answer and does nothing more, whatever became of its jobs. */

import { beforeEach, describe, expect, it } from 'vitest';
import { clock } from '../../support/clock';
import { freshName, TestQueue } from '../../support/queue';
import { type Answer, type Json, server } from '../../support/server';

server.emptyBeforeEach();
clock.restoreAfterEach();

let queue: string;
beforeEach(() => {
  queue = freshName('keys');
});

const post = (path: string, body: unknown, key: string) =>
  server.call('POST', `/ojs/v1${path}`, body, { 'Idempotency-Key': key });
const job = (change: Json = {}, options: Json = {}) => ({
  type: 'test.echo',
  args: [],
  ...change,
  options: { queue, ...options },
});
const total = async () => (await server.ok(200, 'GET', '/ojs/v1/jobs/count')).count;
const answerOf = ({ status, body }: Answer) => ({ status, body });

/** Requests of every kind that take a key. */
const requests = (): [name: string, path: string, body: Json, jobs: number][] => [
  ['a job', '/jobs', job({ args: [{ a: 1, b: [2] }] }, { delay_until: '+PT1H', tags: ['x'] }), 1],
  ['a job with an id', '/jobs', job({ id: '01962222-bbbb-7ccc-8ddd-eeeeeeee0010' }), 1],
  ['a unique job', '/jobs', job({}, { unique: { keys: ['type', 'queue'] } }), 1],
  ['a job unique across queues', '/jobs', job({}, { unique: { keys: ['type', 'args'] } }), 1],
  ['a batch', '/jobs/batch', { jobs: [job(), job({ args: [2] })] }, 2],
  ['a batch over queues', '/jobs/batch', { jobs: [job(), job({}, { queue: `${queue}-b` })] }, 2],
  ['a bulk', '/jobs/bulk', { jobs: [job(), job({}, { queue: `${queue}-b` })] }, 2],
  ['a bulk of unique jobs', '/jobs/bulk', { jobs: [job({}, { unique: {} }), job()] }, 2],
  ['an atomic bulk', '/jobs/bulk', { jobs: [job(), job({}, { queue: `${queue}-b` })], atomicity: 'atomic' }, 2],
];

describe.each([
  'a job',
  'a job with an id',
  'a unique job',
  'a job unique across queues',
  'a batch',
  'a batch over queues',
  'a bulk',
  'a bulk of unique jobs',
  'an atomic bulk',
])('%s', (name) => {
  const request = () => requests().find(([candidate]) => candidate === name) as [string, string, Json, number];

  it('sent again gets the first answer, even when its jobs have moved on', async () => {
    const [, path, body, jobs] = request();
    const first = await post(path, body, 'k1');
    expect(first.status, JSON.stringify(first.body)).toBe(201);
    expect(first.headers.get('Idempotency-Replayed')).toBeNull();
    await server.ok(200, 'POST', '/ojs/v1/jobs/bulk/cancel', { filter: { state: ['available', 'scheduled'] } });
    const again = await post(path, JSON.parse(JSON.stringify(body)), 'k1');
    expect(answerOf(again)).toEqual(answerOf(first));
    expect(again.headers.get('Idempotency-Replayed')).toBe('true');
    expect(await total()).toBe(jobs);
  });

  it('sent many times at once enqueues once', async () => {
    const [, path, body, jobs] = request();
    const answers = await Promise.all(Array.from({ length: 6 }, () => post(path, body, 'k2')));
    expect(await total()).toBe(jobs);
    if (name === 'a job unique across queues' || name === 'a job with an id' || name.includes('unique')) return;
    for (const answer of answers) expect(answerOf(answer)).toEqual(answerOf(answers[0] as Answer));
  });

  it('under the key of another request is refused, and enqueues nothing', async () => {
    const [, path, body, jobs] = request();
    await post(path, body, 'k3');
    const other = path === '/jobs' ? { ...body, args: [9] } : { jobs: [...(body.jobs as Json[]), job()] };
    const refused = await post(path, other, 'k3');
    expect(refused.status, JSON.stringify(refused.body)).toBe(409);
    expect(refused.body.error).toMatchObject({
      code: 'conflict',
      retryable: false,
      details: { idempotency_key: 'k3' },
    });
    expect(await total()).toBe(jobs);
  });
});

it('the order of members does not make another request', async () => {
  const first = await post('/jobs', { type: 'a.b', args: [{ x: 1, y: 2 }], options: { queue } }, 'k');
  const again = await post('/jobs', { options: { queue }, args: [{ y: 2, x: 1 }], type: 'a.b' }, 'k');
  expect(again.body.id).toBe(first.body.id);
});

it('a refused request is not remembered', async () => {
  const id = '01962222-bbbb-7ccc-8ddd-eeeeeeee0011';
  await server.ok(201, 'POST', '/ojs/v1/jobs', job({ id }));
  expect((await post('/jobs', job({ id }), 'k')).status).toBe(409);
  expect((await post('/jobs', job({ type: 'Bad' }), 'k')).status).toBe(400);
  expect((await post('/jobs', job(), 'k')).status).toBe(201);
});

it('the body names a key too, and the header wins', async () => {
  const body = { jobs: [job()], idempotency_key: 'in-body' };
  const first = await server.call('POST', '/ojs/v1/jobs/bulk', body);
  expect(answerOf(await server.call('POST', '/ojs/v1/jobs/bulk', body))).toEqual(answerOf(first));
  const other = await post('/jobs/bulk', body, 'in-header');
  expect(other.headers.get('Idempotency-Replayed')).toBeNull();
  expect(await total()).toBe(2);
});

it('idempotency keys have 1 to 256 characters, and are refused where they have no meaning', async () => {
  for (const [letter, path] of [
    ['a', '/jobs'],
    ['b', '/jobs/batch'],
    ['c', '/jobs/bulk'],
  ] as const) {
    const body = path === '/jobs' ? job() : { jobs: [job()] };
    expect((await post(path, body, letter.repeat(257))).body.error?.details?.field).toBe('Idempotency-Key');
    expect((await post(path, body, letter.repeat(256))).status).toBe(201);
  }
  expect((await post(`/queues/${queue}/pause`, {}, 'k')).status).toBe(422);
});

it('an answer is remembered by an object that dies, for a day, and then forgotten by its alarm, in one row', async () => {
  const inside = new TestQueue(queue);
  const first = await post('/jobs', job({ args: ['x'.repeat(900_000)] }), 'k');
  // What was decided about the job is remembered, not what was sent.
  expect(await inside.rows('SELECT count(*) AS n, sum(length(data)) < 1000 AS small FROM inbox')).toEqual([
    { n: 1, small: 1 },
  ]);
  await inside.evict();
  expect((await post('/jobs', job({ args: ['x'.repeat(900_000)] }), 'k')).body.id).toBe(first.body.id);
  await server.ok(200, 'DELETE', `/ojs/v1/jobs/${first.body.id}`);
  clock.advance(24 * 3_600_000 + 1);
  expect((await post('/jobs', job({ args: ['x'.repeat(900_000)] }), 'k')).body.id).not.toBe(first.body.id);
  clock.advance(26 * 3_600_000);
  expect(await inside.armedAt()).not.toBeNull();
  await inside.startCounting();
  await inside.alarm();
  const { written, alarms } = await inside.counted();
  expect(written - alarms).toBe(1);
  expect(await inside.rows('SELECT key FROM inbox')).toEqual([]);
});
