import { describe, expect, it } from 'vitest';
import { TestQueue } from '../../support/queue';
import { type Json, server, UNKNOWN_ID, V1 } from '../../support/server';

server.emptyBeforeEach();

const result = (id: string, query = '') => server.call('GET', `${V1}/jobs/${id}/result${query}`);

describe('GET /jobs/:id/result', () => {
  it('gives result and time of a completed job', async () => {
    const id = await server.enqueue('r');
    await server.takeOne('r');
    const { completed_at } = await server.ack(id, { result: { sum: 3 } });
    const answer = await result(id);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ job_id: id, state: 'completed', result: { sum: 3 }, completed_at });
    expect(answer.headers.has('Retry-After')).toBe(false);
  });

  it('gives the error of a job that was discarded, and nothing but the state of a cancelled one', async () => {
    const failed = await server.enqueue('r', { options: { retry: { max_attempts: 1 } } });
    await server.takeOne('r');
    await server.failNow(failed);
    expect((await result(failed)).body).toMatchObject({
      state: 'discarded',
      result: null,
      error: { code: 'E', attempt: 1 },
      completed_at: expect.stringMatching(/Z$/),
    });
    const cancelled = await server.enqueue('r');
    await server.ok(200, 'DELETE', `${V1}/jobs/${cancelled}`);
    expect((await result(cancelled, '?wait=true')).body).toEqual({
      job_id: cancelled,
      state: 'cancelled',
      result: null,
      completed_at: null,
    });
  });

  it('says when to look again at a job that has not ended', async () => {
    const id = await server.enqueue('r');
    await server.takeOne('r');
    await server.failNow(id);
    const answer = await result(id);
    expect(answer).toMatchObject({ status: 200, body: { state: 'available', result: null, completed_at: null } });
    expect(answer.body).not.toHaveProperty('error');
    expect(Number(answer.headers.get('Retry-After'))).toBeGreaterThan(0);
  });

  it.each([
    ['an ack', 'completed', (id: string) => server.ack(id, { result: 42 })],
    ['a cancellation', 'cancelled', (id: string) => server.ok(200, 'DELETE', `${V1}/jobs/${id}`)],
    ['its last failure', 'discarded', (id: string) => server.failNow(id)],
  ])('waits, and answers as soon as the job is ended by %s', async (_, state, end) => {
    const id = await server.enqueue('r', { options: { retry: { max_attempts: 1 } } });
    await server.takeOne('r');
    const waiting = Promise.all([result(id, '?wait=true&timeout=30'), result(id, '?wait=1')]);
    await new TestQueue('r').waiting('ends', 2);
    await end(id);
    for (const answer of await waiting) {
      expect(answer).toMatchObject({ status: 200, body: { state, result: state === 'completed' ? 42 : null } });
    }
  });

  it('waits on through a failure that is followed by another attempt', async () => {
    const id = await server.enqueue('r');
    await server.takeOne('r');
    const waiting = result(id, '?wait=true');
    await new TestQueue('r').waiting('ends', 1);
    await server.failNow(id);
    await server.takeOne('r');
    await server.ack(id, { result: 'second' });
    expect((await waiting).body).toMatchObject({ state: 'completed', result: 'second' });
  });

  it('ends its wait when the job runs out of time by itself', async () => {
    const id = await server.enqueue('r', { options: { timeout_ms: 50, retry: { max_attempts: 1 } } });
    await server.takeOne('r');
    expect((await result(id, '?wait=true&timeout=5')).body).toMatchObject({
      state: 'discarded',
      error: { code: 'timeout' },
    });
  });

  it('answers 408 when the time is up, and writes nothing while it waits', async () => {
    const id = await server.enqueue('r');
    await server.takeOne('r');
    const rows = await new TestQueue('r').rowsWritten(async () => {
      expect(await result(id, '?wait=true&timeout=0.05')).toMatchObject({
        status: 408,
        body: { error: { code: 'timeout', retryable: true, details: { current_state: 'active' } } },
      });
    });
    expect(rows).toBe(0);
  });

  it('answers 410 when it saw the job, and nothing was kept of its end', async () => {
    await server.configure('gone', { retention: { completed: 0 } });
    const id = await server.enqueue('gone');
    await server.takeOne('gone');
    const waiting = result(id, '?wait=true');
    await new TestQueue('gone').waiting('ends', 1);
    await server.ack(id, { result: 1 });
    expect(await waiting).toMatchObject({ status: 410, body: { error: { code: 'result_pruned', retryable: false } } });
    expect(await server.refusal('GET', `/ojs/v1/jobs/${id}/result`)).toMatchObject({ status: 404, code: 'not_found' });
  });

  it('refuses what it cannot read, and clamps what is too much or too little', async () => {
    const id = await server.enqueue('r');
    expect(await server.refusal('GET', `/ojs/v1/jobs/${id}/result?wait=maybe`)).toMatchObject({
      status: 400,
      field: 'wait',
    });
    expect(await server.refusal('GET', `/ojs/v1/jobs/${id}/result?wait=true&timeout=soon`)).toMatchObject({
      status: 400,
      field: 'timeout',
    });
    expect(await server.refusal('GET', `/ojs/v1/jobs/${id}/result?wait=true&timeout=-5`)).toMatchObject({
      status: 408,
    });
    for (const unknown of [UNKNOWN_ID, 'x']) {
      expect(await server.refusal('GET', `/ojs/v1/jobs/${unknown}/result?wait=true`)).toMatchObject({
        status: 404,
        code: 'not_found',
      });
    }
    await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
    expect((await result(id, '?wait=true&timeout=99999')).status).toBe(200);
  });

  it('waits for a job whose id its producer chose', async () => {
    const id = '019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e31';
    await server.enqueue('r', { id });
    await server.takeOne('r');
    const waiting = result(id, '?wait=true');
    await new TestQueue('r').waiting('ends', 1);
    await server.ack(id, { result: 'mine' });
    expect((await waiting).body).toMatchObject({ job_id: id, result: 'mine' });
  });
});

describe('POST /jobs/results', () => {
  const results = (ids: unknown) => server.ok(200, 'POST', `${V1}/jobs/results`, { ids });

  it('gives those of many jobs in many queues, and names what it does not know', async () => {
    const done = await server.enqueue('r1');
    await server.takeOne('r1');
    await server.ack(done, { result: [1] });
    const waiting = await server.enqueue('r2');
    const chosen = await server.enqueue('r3', { id: '019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e41' });
    const body = await results([done, waiting, chosen, UNKNOWN_ID, 'x', done]);
    expect(Object.keys(body.results as Json).sort()).toEqual([done, waiting, chosen].sort());
    expect(body.results).toMatchObject({
      [done]: { state: 'completed', result: [1] },
      [waiting]: { state: 'available', result: null },
      [chosen]: { state: 'available' },
    });
    expect(body).toMatchObject({ missing: [UNKNOWN_ID, 'x'], omitted: [] });
  });

  it('leaves out what does not fit into one answer, to be asked for again', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 11; n++) {
      const id = await server.enqueue('big');
      await server.takeOne('big');
      await server.ack(id, { result: 'x'.repeat(1_000_000) });
      ids.push(id);
    }
    const first = await results(ids);
    const omitted = first.omitted as string[];
    expect(omitted.length).toBeGreaterThan(0);
    const second = await results(omitted);
    expect(second).toMatchObject({ omitted: [], missing: [] });
    expect(new Set([...Object.keys(first.results as Json), ...Object.keys(second.results as Json)])).toEqual(
      new Set(ids),
    );
  });

  it.each([
    ['no ids', undefined, 400],
    ['a text', 'x', 400],
    ['a number among them', [7], 400],
    ['more than a thousand', Array(1001).fill('x'), 413],
  ])('refuses %s', async (_, ids, status) => {
    expect(await server.refusal('POST', '/ojs/v1/jobs/results', { ids })).toMatchObject({
      status,
      field: expect.stringMatching(/^ids/),
    });
    expect(await server.events({ types: 'job.enqueued' })).toEqual([]);
  });
});
