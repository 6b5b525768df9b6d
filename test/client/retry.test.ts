import { describe, expect, it } from 'vitest';
import { UnavailableError } from '../../src/client';
import { uuidv7 } from '../../src/producer/id';
import { errorAnswer, fakeQueue, jobsOf, type Script } from './fake-queue';

const cut: Script = () => {
  throw new TypeError('connection reset');
};
const ID = '0190a8c4-0000-7000-8000-000000000001';

/** Plays the scripts in turn, then accepts. */
const inTurn =
  (...scripts: Script[]): Script =>
  (request, index) =>
    scripts[index]?.(request, index);

describe('an enqueue that was refused before it took effect', () => {
  it.each([
    [429, 'rate_limited'],
    [503, 'unavailable'],
  ])('with %i is repeated after the time that the server names', async (status, code) => {
    const busy: Script = () => errorAnswer(status, code, {}, { 'Retry-After': '1.5' });
    const { client, requests, waits } = fakeQueue(inTurn(busy, busy));
    expect((await client.enqueue('a', [])).id).toBe('id-0');
    expect(requests).toHaveLength(3);
    // Retry-After, and half (random is 0.5) of 100 and 200 ms.
    expect(waits).toEqual([1550, 1600]);
  });

  it('gives up after the last try', async () => {
    const { client, requests } = fakeQueue(() => errorAnswer(429, 'QUEUE_FULL'), { retry: { attempts: 3 } });
    await expect(client.enqueue('a', [])).rejects.toMatchObject({ name: 'QueueFullError' });
    expect(requests).toHaveLength(3);
  });

  it('does not wait longer than allowed', async () => {
    const { client, waits } = fakeQueue(() => errorAnswer(429, 'rate_limited', {}, { 'Retry-After': '60' }));
    await expect(client.enqueue('a', [])).rejects.toMatchObject({ retryAfterMs: 60_000 });
    const never = { 'Retry-After': 'Fri, 31 Dec 9999 23:59:59 GMT' };
    const far = fakeQueue(() => errorAnswer(503, 'unavailable', {}, never)).client;
    await expect(far.enqueue('a', [])).rejects.toMatchObject({ retryAfterMs: 3_600_000 });
    expect(waits).toEqual([]);
  });
});

describe('an enqueue whose outcome is unknown', () => {
  it.each<[string, Script]>([
    ['the connection broke', cut],
    ['the server failed', () => errorAnswer(500, 'backend_error')],
    ['the server names no time to come back', () => errorAnswer(503, 'unavailable')],
    ['the answer is cut off', () => new Response('{"job":{"i', { status: 201 })],
  ])('because %s is not repeated, lest there be two jobs', async (_, script) => {
    const { client, requests } = fakeQueue(script);
    const error = await client.enqueue('a', []).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error).toMatchObject({ outcomeUnknown: true });
    expect(requests).toHaveLength(1);
  });

  it('is repeated under the same id with safeRetries', async () => {
    const { client, requests } = fakeQueue(inTurn(cut), { safeRetries: true });
    const job = await client.enqueue('a', []);
    const ids = requests.map((request) => request.body?.id);
    expect(ids).toEqual([job.id, job.id]);
    expect(job.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it('is answered with its job when the repetition is a duplicate', async () => {
    const duplicate: Script = () => errorAnswer(409, 'duplicate', { existing_job_id: ID });
    const { client, requests } = fakeQueue(inTurn(cut, duplicate));
    expect((await client.enqueue('a', [], { id: ID })).id).toBe(ID);
    expect(requests.map((request) => `${request.method} ${request.path}`)).toEqual([
      'POST /jobs',
      'POST /jobs',
      `GET /jobs/${ID}`,
    ]);
  });

  it('is still a duplicate when the existing job is of another type', async () => {
    const duplicate: Script = () => errorAnswer(409, 'duplicate', { existing_job_id: ID });
    const { client } = fakeQueue(inTurn(cut, duplicate));
    await expect(client.enqueue('other', [], { id: ID })).rejects.toMatchObject({ name: 'DuplicateJobError' });
  });

  it('as a batch that had succeeded gives every caller its job', async () => {
    const answer: Script = (request) => {
      const [first] = jobsOf(request.body);
      return errorAnswer(409, 'duplicate', { index: 0, existing_job_id: first?.id });
    };
    let random = 0;
    const options = { safeRetries: true, random: () => (random = (random + 0.137) % 1) };
    const { client } = fakeQueue(inTurn(cut, answer), options);
    const jobs = await Promise.all([client.enqueue('a', [1]), client.enqueue('a', [2])]);
    expect(new Set(jobs.map((job) => job.id)).size).toBe(2);
  });
});

it('a duplicate at the first try is an error that names the existing job', async () => {
  const { client, requests } = fakeQueue(() => errorAnswer(409, 'duplicate', { existing_job_id: ID }));
  await expect(client.enqueue('a', [], { id: ID })).rejects.toMatchObject({ existingJobId: ID });
  expect(requests).toHaveLength(1);
});

it('deployment settings that contradict each other are not tried again', async () => {
  const body = { error: { code: 'invalid_configuration', message: 'm', retryable: false } };
  const { client, requests } = fakeQueue(() => Response.json(body, { status: 500 }));
  await expect(client.get('x')).rejects.toMatchObject({ code: 'invalid_configuration' });
  expect(requests).toHaveLength(1);
});

it('a read is repeated after a failure of any kind', async () => {
  const { client, waits } = fakeQueue(inTurn(cut, () => errorAnswer(500, 'backend_error')));
  expect((await client.get('x')).id).toBe('x');
  expect(waits).toEqual([50, 100]);
});

it('a read of an unknown job is not repeated', async () => {
  const { client, requests } = fakeQueue(() => errorAnswer(404, 'not_found'));
  await expect(client.get('x')).rejects.toMatchObject({ name: 'NotFoundError' });
  expect(requests).toHaveLength(1);
});

describe('a cancel', () => {
  const cancelled: Script = () => errorAnswer(409, 'conflict', { current_state: 'cancelled' });

  it('is repeated, and finding the job cancelled then is success', async () => {
    const { client, requests } = fakeQueue(inTurn(cut, cancelled));
    expect((await client.cancel('x')).id).toBe('x');
    expect(requests.map((request) => request.method)).toEqual(['DELETE', 'DELETE', 'GET']);
  });

  it('of a job that was cancelled before is a conflict', async () => {
    const { client } = fakeQueue(inTurn(cancelled));
    await expect(client.cancel('x')).rejects.toMatchObject({ name: 'ConflictError' });
  });

  it('of a job that completed meanwhile is a conflict even when repeated', async () => {
    const completed: Script = () => errorAnswer(409, 'conflict', { current_state: 'completed' });
    const { client } = fakeQueue(inTurn(cut, completed));
    await expect(client.cancel('x')).rejects.toMatchObject({ name: 'ConflictError' });
  });
});

describe('ids chosen by the client', () => {
  it('are UUIDv7 that begin with their millisecond', () => {
    expect(uuidv7(0x0190_a8c4_1234, () => 0)).toBe('0190a8c4-1234-7000-8000-000000000000');
    expect(uuidv7(0xffff_ffff_ffff, () => 0.999999)).toBe('ffffffff-ffff-7fff-bfff-ffffffffffff');
  });
});
