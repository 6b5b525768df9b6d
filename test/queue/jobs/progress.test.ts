import { describe, expect, it } from 'vitest';
import { clock } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { type Json, server, UNKNOWN_ID, V1 } from '../../support/server';

server.emptyBeforeEach();
clock.restoreAfterEach();

const report = (id: string, body: Json) => server.ok(200, 'PUT', `${V1}/jobs/${id}/progress`, body);
const read = (id: string) => server.call('GET', `${V1}/jobs/${id}/progress`);

describe('progress', () => {
  it('is answered, read back and shown in the envelope', async () => {
    const id = await server.enqueue('p');
    await server.takeOne('p', { worker_id: 'w1' });
    const body = { progress: 0.25, message: 'a quarter', data: { rows: 10 } };
    const answer = await report(id, body);
    expect(answer).toMatchObject({ job_id: id, state: 'active', ...body, updated_at: expect.stringMatching(/Z$/) });
    const { headers, body: stored } = await read(id);
    expect(stored).toEqual(answer);
    expect(headers.get('X-OJS-Progress')).toBe('0.25');
    expect(await server.ok(200, 'GET', `${V1}/jobs/${id}`)).toMatchObject({
      progress: 0.25,
      job: { progress: 0.25, progress_data: { rows: 10 } },
    });
  });

  it('may be reported in percent without naming the job in the path', async () => {
    const id = await server.enqueue('p');
    await server.takeOne('p');
    const answer = await server.ok(200, 'POST', `${V1}/workers/progress`, { job_id: id, percentage: 40 });
    expect(answer).toMatchObject({ job_id: id, progress: 0.4 });
  });

  it('is null until the first report, and has no header then', async () => {
    const id = await server.enqueue('p');
    const { headers, body } = await read(id);
    expect(body).toEqual({
      job_id: id,
      state: 'available',
      cancelled: false,
      progress: null,
      message: null,
      data: null,
      updated_at: null,
    });
    expect(headers.has('X-OJS-Progress')).toBe(false);
    expect(await server.job(id)).not.toHaveProperty('progress');
  });

  it.each([
    { progress: 3 },
    { progress: -0.1 },
    { progress: 1e300 },
    { progress: 'half' },
    { percentage: 300 },
    { percentage: -1 },
  ])('beside its range is refused, and changes nothing: %j', async (wrong) => {
    const id = await server.enqueue('p');
    const job = await server.takeOne('p', { worker_id: 'w1' });
    await report(id, { progress: 0.25 });
    const field = Object.keys(wrong)[0] as string;
    for (const path of [`/jobs/${id}/progress`, '/workers/progress']) {
      const { status, body } = await server.call('POST', V1 + path, { job_id: id, ...wrong });
      expect([status, body.error?.details?.field]).toEqual([400, field]);
      expect(body.error?.message).toMatch(/must be a number from 0 to 1(00)?[.;]/);
    }
    const reports = [{ action: 'progress', job_id: id, attempt: job.attempt, ...wrong }];
    const told = await server.ok(207, 'POST', `${V1}/workers/report`, { worker_id: 'w1', reports });
    expect(told.items).toMatchObject([{ job_id: id, error: { status: 400, details: { field } } }]);
    expect((await read(id)).body).toMatchObject({ progress: 0.25 });
  });

  it('may be off its range by a rounding', async () => {
    const id = await server.enqueue('p');
    await server.takeOne('p');
    expect((await report(id, { progress: -1e-17 })).progress).toBe(0);
    expect((await report(id, { progress: 1 + Number.EPSILON })).progress).toBe(1);
  });

  it('stays between 0 and 1 and never falls within an attempt, but starts again in the next', async () => {
    const id = await server.enqueue('p');
    await server.takeOne('p');
    const reported = async (progress: number) => (await report(id, { progress })).progress;
    expect(await reported(0)).toBe(0);
    expect(await reported(0.6)).toBe(0.6);
    expect(await reported(0.2)).toBe(0.6);
    expect(await reported(1)).toBe(1);
    await server.failNow(id);
    expect((await read(id)).body).toMatchObject({ progress: 1 });
    await server.takeOne('p');
    expect(await reported(0.1)).toBe(0.1);
  });

  it('is 1 for a completed job, with what was said last', async () => {
    const id = await server.enqueue('p');
    await server.takeOne('p');
    await report(id, { progress: 0.5, message: 'halfway', data: { rows: 5 } });
    await server.ack(id);
    expect((await read(id)).body).toMatchObject({
      state: 'completed',
      progress: 1,
      message: 'halfway',
      data: { rows: 5 },
    });
    expect(await server.job(id)).toMatchObject({ progress: 1, progress_data: { rows: 5 } });
  });

  it('is 1 for a completed job that never said anything, but not shown in its envelope', async () => {
    const id = await server.enqueue('p');
    await server.takeOne('p');
    await server.ack(id);
    expect((await read(id)).body).toMatchObject({
      progress: 1,
      message: null,
      updated_at: expect.stringMatching(/Z$/),
    });
    expect(await server.job(id)).not.toHaveProperty('progress');
  });

  it('is ignored for a job that does not run', async () => {
    const waiting = await server.enqueue('p');
    expect(await report(waiting, { progress: 0.5, checkpoint: { at: 1 } })).toMatchObject({
      state: 'available',
      cancelled: false,
      progress: null,
    });
    expect(await server.call('GET', `${V1}/jobs/${waiting}/checkpoint`)).toMatchObject({ status: 404 });
    await server.ok(200, 'DELETE', `${V1}/jobs/${waiting}`);
    expect(await report(waiting, { progress: 0.5 })).toMatchObject({ state: 'cancelled', progress: null });
  });

  it('extends the lease, also when the object loses its memory', async () => {
    const id = await server.enqueue('lease');
    await server.takeOne('lease', { visibility_timeout_ms: 10_000 });
    clock.advance(8_000);
    await report(id, { progress: 0.1 });
    await new TestQueue('lease').evict();
    clock.advance(8_000);
    expect(await server.job(id)).toMatchObject({ state: 'active', attempt: 1 });
    clock.advance(3_000);
    expect(await server.job(id)).toMatchObject({ state: 'available', errors: [{ code: 'visibility_timeout' }] });
  });

  it('saves a checkpoint with it', async () => {
    const id = await server.enqueue('p');
    await server.takeOne('p');
    expect(await report(id, { progress: 0.5, checkpoint: { page: 3 } })).toMatchObject({ checkpoint: { sequence: 1 } });
    expect(await server.ok(200, 'GET', `${V1}/jobs/${id}/checkpoint`)).toMatchObject({
      state: { page: 3 },
      sequence: 1,
    });
  });

  it('is reported in an event, counted to 100', async () => {
    const id = await server.enqueue('p');
    await server.takeOne('p');
    await report(id, { progress: 0.125, message: 'on the way' });
    expect(await server.events({ types: 'job.progress' })).toMatchObject([
      { subject: id, data: { job_id: id, queue: 'p', attempt: 1, progress: 12.5, message: 'on the way' } },
    ]);
  });

  it('costs one row for each report, and nothing where no one reports', async () => {
    // The first one begins a chunk of the archive, which the others join.
    const first = await server.enqueue('rows');
    await server.takeOne('rows');
    await server.ack(first);
    const silent = await server.enqueue('rows');
    await server.takeOne('rows');
    const plain = await new TestQueue('rows').rowsWritten(() => server.ack(silent));
    const id = await server.enqueue('rows');
    await server.takeOne('rows');
    await report(id, { progress: 0.1 });
    expect(await new TestQueue('rows').rowsWritten(() => report(id, { progress: 0.2 }))).toBe(1);
    // One row more: the report is deleted, what it said moves into the archive.
    expect(await new TestQueue('rows').rowsWritten(() => server.ack(id))).toBe(plain + 1);
  });
});

describe('a progress report', () => {
  it('about an attempt that is over, or by another worker, is refused and changes nothing', async () => {
    const id = await server.enqueue('p');
    await server.takeOne('p', { worker_id: 'w1' });
    for (const name of [{ worker_id: 'w2' }, { attempt: 2 }, { delivery_id: `del_${id}_9` }]) {
      expect(await server.refusal('PUT', `/ojs/v1/jobs/${id}/progress`, { progress: 0.5, ...name })).toEqual({
        status: 409,
        code: 'conflict',
      });
    }
    expect((await read(id)).body).toMatchObject({ progress: null });
    expect(await report(id, { progress: 0.5, worker_id: 'w1', attempt: 1 })).toMatchObject({ progress: 0.5 });
  });

  it('that says nothing usable names the field', async () => {
    const id = await server.enqueue('p');
    await server.takeOne('p');
    const cases: [Json, string][] = [
      [{}, 'progress'],
      [{ progress: '50%' }, 'progress'],
      [{ percentage: [1] }, 'percentage'],
      [{ progress: 0.5, message: 7 }, 'message'],
      [{ progress: 0.5, message: 'x'.repeat(8193) }, 'message'],
      [{ progress: 0.5, data: [1] }, 'data'],
      [{ progress: 0.5, attempt: 0 }, 'attempt'],
    ];
    for (const [body, field] of cases) {
      expect(await server.refusal('PUT', `/ojs/v1/jobs/${id}/progress`, body)).toEqual({
        status: 400,
        code: 'invalid_request',
        field,
      });
    }
    expect(
      await server.refusal('PUT', `/ojs/v1/jobs/${id}/progress`, { progress: 1, data: { x: 'x'.repeat(70_000) } }),
    ).toEqual({
      status: 413,
      code: 'payload_too_large',
      field: 'data',
    });
    expect(await server.refusal('POST', '/ojs/v1/workers/progress', { percentage: 5 })).toMatchObject({
      status: 400,
      field: 'job_id',
    });
    expect((await read(id)).body).toMatchObject({ progress: null });
  });

  it('about a job that does not exist is 404', async () => {
    for (const id of [UNKNOWN_ID, 'x']) {
      expect(await server.refusal('PUT', `/ojs/v1/jobs/${id}/progress`, { progress: 0.5 })).toMatchObject({
        status: 404,
      });
      expect(await server.refusal('GET', `/ojs/v1/jobs/${id}/progress`)).toMatchObject({ status: 404 });
    }
  });

  it('finds a job whose id its producer chose', async () => {
    const id = '019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e21';
    await server.enqueue('p', { id });
    await server.take('p');
    expect(await report(id, { progress: 0.5 })).toMatchObject({ job_id: id, progress: 0.5 });
  });
});
