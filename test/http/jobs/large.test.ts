/** Requests near the largest body: a message between objects holds 32 MiB, and one "€" doubles what a text takes there. */

import { beforeEach, describe, expect, it } from 'vitest';
import { freshName } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

server.emptyBeforeEach();

let queue: string;
beforeEach(() => {
  queue = freshName('large');
});

const text = `${'x'.repeat(940_000)}€`;
/** Longer when it is stored. */
const numbers = `[${Array(4000).fill('1E20')}]`;
/** 17 jobs of which just as many bytes are stored as each may have. */
const request = (queues: number, options: Json) => {
  const jobs = Array.from({ length: 17 }, (_, n) => {
    return `{"type":"test.echo","args":[${n},"${text}",${numbers}],"options":{"queue":"${queue}${n % queues}"}}`;
  });
  return `{"jobs":[${jobs}],${JSON.stringify(options).slice(1)}`;
};
const total = async () => (await server.ok(200, 'GET', `${V1}/jobs/count`)).count;
const argsOf = (job: unknown) => (job as { args: unknown[] }).args;

describe('a request of 16 MiB with multi-byte text', () => {
  it.each([
    ['a batch', '/jobs/batch', 1, { x: 1 }],
    ['a batch over queues', '/jobs/batch', 2, { x: 1 }],
    ['a bulk', '/jobs/bulk', 1, { atomicity: 'partial' }],
    ['an atomic bulk', '/jobs/bulk', 1, { atomicity: 'atomic' }],
  ])('%s is stored and answered whole, and again under its key', async (_, path, queues, options) => {
    const body = request(queues, options);
    const headers = { 'Idempotency-Key': 'large' };
    const ids: unknown[][] = [];
    for (const replayed of [null, 'true']) {
      const answer = await server.call('POST', V1 + path, body, headers);
      expect(answer.status, JSON.stringify(answer.body.error)).toBe(201);
      expect(answer.headers.get('Idempotency-Replayed')).toBe(replayed);
      const told = answer.body.jobs ?? (answer.body.items as { job: Json }[]).map(({ job }) => job);
      expect(told.every((job, n) => argsOf(job)[0] === n && argsOf(job)[1] === text)).toBe(true);
      ids.push(told.map(({ id }) => id));
    }
    expect(ids[1]).toEqual(ids[0]);
    expect(argsOf(await server.job(ids[0]?.[16])).slice(0, 2)).toEqual([16, text]);
    expect(await total()).toBe(17);
  });

  it('of which more would have to be stored than it brings is refused, and nothing is', async () => {
    const args = `[${'1E20,'.repeat(45_000)}1]`;
    const body = `{"jobs":[${Array(60).fill(`{"type":"a","args":${args}}`).join()}]}`;
    for (const path of ['/jobs/batch', '/jobs/bulk']) {
      const refusal = { status: 413, code: 'payload_too_large', field: 'jobs' };
      expect(await server.refusal('POST', V1 + path, body)).toEqual(refusal);
    }
    expect(await total()).toBe(0);
  });
});

describe('entries that stand for large jobs', () => {
  const unique = { keys: ['type', 'queue'], on_conflict: 'ignore' };
  const entry = (n: number, args: unknown[]) => ({ type: `test.t${n}`, args, options: { queue, unique } });
  const entries = (args: unknown[]) => Array.from({ length: 10 }, (_, n) => entry(n, args));
  const send = (path: string, args: unknown[]) => server.call('POST', V1 + path, { jobs: entries(args) });

  it('are all returned when they are the same, and as many as one answer holds when not', async () => {
    expect((await send('/jobs/batch', [text])).status).toBe(201);
    const again = await send('/jobs/batch', [text]);
    expect(again).toMatchObject({ status: 201, body: { enqueued: 0, deduplicated: 10 } });
    expect(again.body.jobs?.every((job) => argsOf(job)[0] === text)).toBe(true);

    expect(await send('/jobs/batch', [])).toMatchObject({
      status: 413,
      body: { error: { code: 'payload_too_large' } },
    });
    const bulk = await send('/jobs/bulk', []);
    expect(bulk).toMatchObject({ status: 207, body: { succeeded: 8, failed: 2 } });
    expect(bulk.body.items?.map(({ status }) => status)).toEqual([
      ...Array(8).fill('duplicate'),
      ...Array(2).fill('failed'),
    ]);
    expect(await total()).toBe(10);
  });
});

it('an answer given again has the times of the first request', async () => {
  const body = { type: 'a', args: [], options: { queue, delay_until: '+PT1H', expires_at: '+PT2H' } };
  const send = async () => (await server.call('POST', `${V1}/jobs`, body, { 'Idempotency-Key': 'k' })).body;
  const first = await send();
  expect(await send()).toEqual(first);
});

it('a job that keeps the schedule of the one it replaces is answered with that schedule', async () => {
  const unique = { keys: ['type', 'queue'], on_conflict: 'replace_except_schedule' };
  const at = '2040-01-01T00:00:00.000Z';
  await server.enqueue(queue, { options: { unique, delay_until: at } });
  const { job } = await server.ok(201, 'POST', `${V1}/jobs`, {
    type: 'test.echo',
    args: [2],
    options: { queue, unique },
  });
  expect(job).toMatchObject({ args: [2], state: 'scheduled', scheduled_at: at });
  expect(await server.job(job?.id)).toEqual({ ...job, waiting_for: expect.objectContaining({ reason: 'delayed' }) });
});

it('entries of one batch that stand for each other have the body of the first', async () => {
  const unique = { keys: ['type', 'queue'], on_conflict: 'ignore' };
  const entry = (n: number) => ({ type: 'test.echo', args: [n], options: { queue, unique } });
  const { jobs: told } = await server.ok(201, 'POST', `${V1}/jobs/batch`, { jobs: [entry(1), entry(2), entry(3)] });
  expect(told?.map(argsOf)).toEqual([[1], [1], [1]]);
});
