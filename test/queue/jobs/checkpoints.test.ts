import { describe, expect, it } from 'vitest';
import { until } from '../../support/clock';
import { Gate, runsOf } from '../../support/handlers';
import { TestQueue } from '../../support/queue';
import { type Json, server, UNKNOWN_ID, V1 } from '../../support/server';

server.emptyBeforeEach();

const save = (id: string, body: Json) => server.ok(200, 'PUT', `${V1}/jobs/${id}/checkpoint`, body);
const read = (id: string) => server.ok(200, 'GET', `${V1}/jobs/${id}/checkpoint`);
const stored = (queue: string) =>
  new TestQueue(queue).inside(({ sql }) => sql.exec<{ n: number }>('SELECT count(*) AS n FROM checkpoints').one().n);

describe('a checkpoint', () => {
  it('is numbered, read back and replaced', async () => {
    const id = await server.enqueue('c');
    expect(await save(id, { state: { page: 1 } })).toMatchObject({
      job_id: id,
      sequence: 1,
      created_at: expect.stringMatching(/Z$/),
      checkpoint: { state: { page: 1 }, sequence: 1 },
    });
    const second = await server.ok(200, 'POST', `${V1}/jobs/${id}/checkpoint`, { state: [2] });
    expect(second).toMatchObject({ sequence: 2 });
    expect(await read(id)).toEqual({ ...second, state: [2] });
  });

  it.each([{ a: 1 }, [1], 'text', 7, false, null])('may hold any JSON: %j', async (state) => {
    const id = await server.enqueue('c');
    await save(id, { state });
    expect(await read(id)).toMatchObject({ state, checkpoint: { state } });
  });

  it('can be saved in every state but the terminal ones', async () => {
    const scheduled = await server.enqueue('c', { options: { delay_until: '+PT1H' } });
    const pending = await server.enqueue('c', { options: { pending: true } });
    const active = await server.enqueue('c');
    await server.takeOne('c');
    const retryable = await server.enqueue('c');
    await server.takeOne('c');
    await server.nack(retryable, { error: 'again' });
    for (const id of [scheduled, pending, active, retryable])
      expect(await save(id, { state: 1 })).toMatchObject({ sequence: 1 });
    await server.ack(active);
    await server.ok(200, 'DELETE', `${V1}/jobs/${pending}`);
    for (const [id, state] of [
      [active, 'completed'],
      [pending, 'cancelled'],
    ]) {
      const answer = await server.call('PUT', `${V1}/jobs/${id}/checkpoint`, { state: 2 });
      expect(answer).toMatchObject({
        status: 409,
        body: { error: { code: 'conflict', details: { current_state: state } } },
      });
      expect(await read(id as string)).toMatchObject({ state: 1, sequence: 1 });
    }
  });

  it('is handed out with the job, again and again, and nowhere else', async () => {
    const id = await server.enqueue('c');
    expect(await server.takeOne('c')).not.toHaveProperty('checkpoint');
    await save(id, { state: { step: 2 }, step_index: 2 });
    await server.failNow(id);
    expect(await server.takeOne('c')).toMatchObject({
      id,
      attempt: 2,
      checkpoint: { state: { step: 2 }, sequence: 1 },
    });
    expect(await server.job(id)).not.toHaveProperty('checkpoint');
    await new TestQueue('c').evict();
    await server.failNow(id);
    expect(await server.takeOne('c')).toMatchObject({ attempt: 3, checkpoint: { state: { step: 2 } } });
  });

  it('survives the end of its job and a redrive', async () => {
    const id = await server.enqueue('c', { options: { retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } } });
    await server.takeOne('c');
    await save(id, { state: 'kept' });
    await server.failNow(id);
    expect(await read(id)).toMatchObject({ state: 'kept' });
    await server.ok(200, 'POST', `${V1}/dead-letter/${id}/retry`);
    expect(await server.takeOne('c')).toMatchObject({ id, attempt: 1, checkpoint: { state: 'kept', sequence: 1 } });
  });

  it('is handed to a handler Worker with the job', async () => {
    const gate = new Gate('PLAIN');
    const [order] = gate.args as [Json];
    const options = { timeout_ms: 20_000, retry: { initial_interval_ms: 0, max_attempts: 2, jitter: false } };
    const args = [{ ...order, status: 500 }];
    const body = await server.ok(201, 'POST', `${V1}/jobs`, {
      type: 'bare.step',
      args,
      options: { queue: 'pushed', ...options },
    });
    const id = body.id as string;
    await gate.waiting(1);
    await save(id, { state: { done: ['a'] } });
    await gate.open();
    await server.jobIn(id, 'discarded');
    const [first, second] = await until(async () => {
      const runs = await runsOf('PLAIN', id);
      return runs.length === 2 && runs;
    }, 'two deliveries');
    expect(first?.body).not.toHaveProperty('checkpoint');
    expect(second?.body).toMatchObject({ id, attempt: 2, checkpoint: { state: { done: ['a'] }, sequence: 1 } });
  });

  it('is deleted on request, as often as one likes, and starts again at 1', async () => {
    const id = await server.enqueue('c');
    await save(id, { state: 1 });
    await save(id, { state: 2 });
    for (let n = 0; n < 2; n++) {
      expect(await server.ok(200, 'DELETE', `${V1}/jobs/${id}/checkpoint`)).toEqual({ deleted: true, job_id: id });
    }
    expect(await server.refusal('GET', `/ojs/v1/jobs/${id}/checkpoint`)).toMatchObject({
      status: 404,
      code: 'not_found',
    });
    expect(await save(id, { state: 3 })).toMatchObject({ sequence: 1 });
  });

  it('goes with its job', async () => {
    await server.configure('short', { retention: { completed: '1s', cancelled: '1s' } });
    const completed = await server.enqueue('short');
    await server.takeOne('short');
    await save(completed, { state: 1 });
    const cancelled = await server.enqueue('short');
    await save(cancelled, { state: 2 });
    await server.ack(completed);
    await server.ok(200, 'DELETE', `${V1}/jobs/${cancelled}`);
    expect(await read(completed)).toMatchObject({ state: 1 });
    expect(await stored('short')).toBe(2);
    await until(async () => {
      await new TestQueue('short').alarm();
      return (await stored('short')) === 0;
    }, 'the checkpoints to be removed');
    expect(await server.refusal('GET', `/ojs/v1/jobs/${completed}/checkpoint`)).toMatchObject({ status: 404 });
  });

  it('goes at once where ended jobs are not kept', async () => {
    await server.configure('none', { retention: { completed: 0 } });
    const id = await server.enqueue('none');
    await server.takeOne('none');
    await save(id, { state: 1 });
    await server.ack(id);
    expect(await stored('none')).toBe(0);
  });

  it('may have 1 MiB and not a byte more', async () => {
    const id = await server.enqueue('c');
    const full = 'x'.repeat(1_048_576 - 2);
    expect(await save(id, { state: full })).toMatchObject({ sequence: 1 });
    expect(await server.refusal('PUT', `/ojs/v1/jobs/${id}/checkpoint`, { state: `${full}x` })).toEqual({
      status: 413,
      code: 'payload_too_large',
      field: 'state',
    });
    expect((await server.takeOne('c')).checkpoint).toEqual({ state: full, sequence: 1 });
  });

  it('of many jobs does not make a fetch too large', async () => {
    const full = 'x'.repeat(1_000_000);
    for (let n = 0; n < 12; n++) await save(await server.enqueue('heavy', { args: [n] }), { state: full });
    const seen: unknown[] = [];
    for (let calls = 0; calls < 4; calls++) {
      seen.push(...(await server.take('heavy', { count: 100 })).map(({ args }) => (args as unknown[])[0]));
    }
    expect(seen).toEqual([...Array(12).keys()]);
  });

  it('costs one row', async () => {
    const id = await server.enqueue('c');
    await save(id, { state: 1 });
    expect(await new TestQueue('c').rowsWritten(() => save(id, { state: 2 }))).toBe(1);
    expect(await new TestQueue('c').rowsWritten(() => read(id))).toBe(0);
  });
});

describe('a checkpoint report', () => {
  it('about an attempt that is over, or by another worker, is refused and changes nothing', async () => {
    const id = await server.enqueue('c');
    await server.takeOne('c', { worker_id: 'w1' });
    await save(id, { state: 'good', worker_id: 'w1', attempt: 1 });
    const foreign = [{ worker_id: 'w2' }, { attempt: 2 }];
    for (const name of foreign) {
      expect(await server.refusal('PUT', `/ojs/v1/jobs/${id}/checkpoint`, { state: 'bad', ...name })).toMatchObject({
        status: 409,
      });
      expect(await server.refusal('DELETE', `/ojs/v1/jobs/${id}/checkpoint`, name)).toMatchObject({ status: 409 });
    }
    await server.failNow(id);
    expect(await server.refusal('PUT', `/ojs/v1/jobs/${id}/checkpoint`, { state: 'late', attempt: 1 })).toMatchObject({
      status: 409,
    });
    expect(await read(id)).toMatchObject({ state: 'good', sequence: 1 });
  });

  it('that says nothing usable names the field', async () => {
    const id = await server.enqueue('c');
    const cases: [Json, string][] = [
      [{}, 'state'],
      [{ state: 1, step_index: -1 }, 'step_index'],
      [{ state: 1, step_index: 'two' }, 'step_index'],
      [{ state: 1, metadata: 'm' }, 'metadata'],
      [{ state: 1, job_id: UNKNOWN_ID }, 'job_id'],
    ];
    for (const [body, field] of cases) {
      expect(await server.refusal('PUT', `/ojs/v1/jobs/${id}/checkpoint`, body)).toEqual({
        status: 400,
        code: 'invalid_request',
        field,
      });
    }
    expect(await server.refusal('PUT', `/ojs/v1/jobs/${id}/checkpoint`)).toMatchObject({
      status: 400,
      code: 'invalid_payload',
    });
    expect(await server.refusal('GET', `/ojs/v1/jobs/${id}/checkpoint`)).toMatchObject({ status: 404 });
  });

  it('about a job that does not exist is 404', async () => {
    for (const id of [UNKNOWN_ID, 'x']) {
      expect(await server.refusal('PUT', `/ojs/v1/jobs/${id}/checkpoint`, { state: 1 })).toMatchObject({ status: 404 });
      for (const path of [`/jobs/${id}/checkpoint`, `/checkpoints/${id}`, `/checkpoints/${id}/resume`]) {
        expect(await server.refusal('GET', V1 + path)).toMatchObject({ status: 404 });
      }
      expect(await server.refusal('DELETE', `/ojs/v1/jobs/${id}/checkpoint`)).toMatchObject({ status: 404 });
    }
  });
});
