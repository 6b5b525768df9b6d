/** Durable steps and the log of a job, over HTTP. */
import { beforeEach, describe, expect, it } from 'vitest';
import { isLong } from '../../support/long';
import { onRecord } from '../../support/on-record';
import { freshName, TestQueue } from '../../support/queue';
import { type Json, server, UNKNOWN_ID, V1 } from '../../support/server';

server.emptyBeforeEach();
let queue: string;
let object: TestQueue;
beforeEach(() => {
  queue = freshName('steps');
  object = new TestQueue(queue);
});

const put = (id: unknown, name: string, body: Json) => server.ok(200, 'PUT', `${V1}/jobs/${id}/steps/${name}`, body);
const steps = async (id: unknown) => (await server.ok(200, 'GET', `${V1}/jobs/${id}/steps`)).steps;
const checkpoint = (id: unknown) => `${V1}/jobs/${id}/checkpoint`;

describe('a step that is tried again', () => {
  const tried = (tries: number) => ({ until: Date.UTC(2100, 0, tries), tries, failed: { message: `try ${tries}` } });

  it('gives way to its next try and to its end, not to an earlier one', async () => {
    const id = await server.enqueue(queue);
    await server.takeOne(queue);
    await put(id, 'a', tried(1));
    await put(id, 'a', tried(3));
    await put(id, 'a', tried(2));
    await put(id, 'a', { until: 5 });
    expect(await steps(id)).toEqual(onRecord({ a: tried(3) }));
    const wrong = { status: 400, code: 'invalid_request', field: 'step.tries' };
    expect(await server.refusal('PUT', `${V1}/jobs/${id}/steps/b`, { until: 5, tries: 0 })).toMatchObject(wrong);
    await put(id, 'a', { error: { message: 'in vain', tries: 4 } });
    await put(id, 'a', tried(5));
    expect(await steps(id)).toEqual(onRecord({ a: { error: { message: 'in vain', tries: 4 } } }));
  });

  it.each([false, true])('is tried again when its job begins again, in another queue: %s', async (isElsewhere) => {
    const id = await server.enqueue(queue, { options: { retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } } });
    await server.takeOne(queue);
    await put(id, 'done', { result: 1 });
    await put(id, 'waits', tried(1));
    await put(id, 'failed', { error: { message: 'in vain' } });
    await server.nack(id);
    const target = isElsewhere ? freshName('steps') : queue;
    await server.ok(200, 'POST', `${V1}/dead-letter/${id}/retry`, isElsewhere ? { override: { queue: target } } : {});
    if (isElsewhere) await object.alarm();
    expect(await server.takeOne(target)).toMatchObject({ steps: { done: { result: 1 } } });
    expect(await steps(id)).toEqual(onRecord({ done: { result: 1 } }));
  });
});

describe('a durable step', () => {
  it('takes one row, is passed to the next attempt, and is shown nowhere else', async () => {
    const id = await server.enqueue(queue);
    const job = await server.takeOne(queue);
    expect(job).not.toHaveProperty('steps');
    await object.startCounting();
    for (const [name, result] of [
      ['charge', { paid: 5 }],
      ['mail', null],
    ] as const) {
      expect(await put(id, name, { result, attempt: 1 })).toEqual({ job_id: id, name, recorded: true });
      const { written, alarms } = await object.counted();
      expect(written - alarms).toBe(1);
    }
    const recorded = { charge: { result: { paid: 5 } }, mail: { result: null } };
    expect(await steps(id)).toEqual(onRecord(recorded));
    expect(await server.job(id)).not.toHaveProperty('steps');
    await object.evict();
    await server.failNow(id);
    expect(await server.takeOne(queue)).toMatchObject({ id, attempt: 2, steps: recorded });
    await server.ack(id);
    expect(await steps(id)).toEqual(onRecord(recorded));
  });

  it('that is reported again keeps its first result and writes nothing', async () => {
    const id = await server.enqueue(queue);
    await server.takeOne(queue);
    await put(id, 'once', { result: 1 });
    await object.startCounting();
    expect(await put(id, 'once', { result: 2 })).toEqual({ job_id: id, name: 'once', recorded: true, result: 1 });
    expect((await object.counted()).written).toBe(0);
    expect(await steps(id)).toEqual(onRecord({ once: { result: 1 } }));
  });

  it('lies beside the checkpoint: neither shows in the other, nor goes with it', async () => {
    const id = await server.enqueue(queue);
    await server.takeOne(queue);
    await put(id, 'a', { result: 'é' });
    expect(await server.refusal('GET', checkpoint(id))).toMatchObject({ status: 404 });
    const state = { steps: { mine: 1 }, n: 1.5e300, text: '\u0007"é' };
    expect(await server.ok(200, 'PUT', checkpoint(id), { state })).toMatchObject({ sequence: 1 });
    await put(id, 'b', {});
    const shown = await server.ok(200, 'GET', checkpoint(id));
    expect(shown).toMatchObject({ state, sequence: 1 });
    expect(shown).not.toHaveProperty('steps');
    await server.failNow(id);
    const again = await server.takeOne(queue);
    expect(again).toMatchObject({
      checkpoint: { state, sequence: 1 },
      steps: { a: { result: 'é' }, b: { result: null } },
    });
    await server.ok(200, 'DELETE', checkpoint(id));
    expect(await server.refusal('GET', checkpoint(id))).toMatchObject({ status: 404 });
    expect(await steps(id)).toEqual(onRecord({ a: { result: 'é' }, b: { result: null } }));
    expect(await server.ok(200, 'PUT', checkpoint(id), { state: 2 })).toMatchObject({ sequence: 1 });
  });

  it('may have any name, those of JavaScript included', async () => {
    const id = await server.enqueue(queue);
    await server.takeOne(queue);
    const names = ['__proto__', 'constructor', 'a/b c?', '"quoted"', '$.x[0]'];
    for (const name of names) await put(id, encodeURIComponent(name), { result: name });
    await server.failNow(id);
    const job = await server.takeOne(queue);
    expect(Object.keys(job.steps as Json)).toEqual(names);
    await server.ok(200, 'POST', `${V1}/jobs/${id}/signals/toString`, {});
    expect(Object.keys((await steps(id)) as Json)).toEqual([...names, 'toString']);
  });

  it('of an attempt that is over, or of a job that has ended, is refused', async () => {
    const id = await server.enqueue(queue);
    await server.takeOne(queue);
    await server.failNow(id);
    await server.takeOne(queue);
    const path = `${V1}/jobs/${id}/steps/late`;
    expect(await server.refusal('PUT', path, { result: 1, attempt: 1 })).toMatchObject({ status: 409 });
    await server.ack(id);
    expect(await server.refusal('PUT', path, { result: 1 })).toMatchObject({ status: 409 });
    expect(await server.refusal('PUT', `${V1}/jobs/${UNKNOWN_ID}/steps/a`, {})).toMatchObject({ status: 404 });
    expect(await steps(id)).toEqual({});
  });

  it('is refused when it would be too much, and nothing changes', async () => {
    const id = await server.enqueue(queue);
    const job = await server.takeOne(queue);
    const names = Array.from({ length: 12 }, (_, n) => `large${n}`);
    for (const name of names) await put(id, name, { result: 'é'.repeat(32_500) });
    const path = `${V1}/jobs/${id}/steps/more`;
    expect(await server.refusal('PUT', path, { result: 'x'.repeat(10_000) })).toEqual({
      ...{ status: 413, code: 'payload_too_large', field: 'steps' },
    });
    const small = Array.from({ length: 1000 }, (_, n) => [`s${n}`, { result: n }]);
    const snooze = { in: 1000, steps: Object.fromEntries(small) };
    const nack = { job_id: job.id, attempt: 1, requeue: true, attempt_used: false, snooze };
    expect(await server.refusal('POST', `${V1}/workers/nack`, nack)).toMatchObject({ status: 413 });
    expect(await server.state(id)).toBe('active');
    expect(Object.keys((await steps(id)) as Json)).toEqual(names);
    // A checkpoint as large as it may be fits into the same row.
    await server.ok(200, 'PUT', checkpoint(id), { state: 'y'.repeat(1_048_000) });
  });

  it('goes with its job to another queue', async () => {
    const id = await server.enqueue(queue, { options: { retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } } });
    await server.takeOne(queue);
    await put(id, 'a', { result: 1 });
    await server.nack(id);
    const target = freshName('other');
    await server.ok(200, 'POST', `${V1}/dead-letter/${id}/retry`, { override: { queue: target } });
    expect(await server.takeOne(target)).toMatchObject({ id, steps: { a: { result: 1 } } });
  });
});

describe('the log of a job', () => {
  const line = (message: string, n = 1) => ({ at: n, level: 'info', message });
  const add = (id: unknown, lines: Json[], rest: Json = {}) =>
    server.ok(200, 'POST', `${V1}/jobs/${id}/log`, { lines, ...rest });
  const log = async (id: unknown) => (await server.ok(200, 'GET', `${V1}/jobs/${id}/log`)).lines as Json[];

  it('is kept with what is written anyway: a life with it costs as many rows as one without', async () => {
    const life = async (says: boolean) => {
      const id = await server.enqueue(queue);
      await server.takeOne(queue);
      await object.startCounting();
      if (says) expect(await add(id, [line('one'), { message: 'two', fields: { a: 1 } }])).toEqual({ accepted: 2 });
      await server.failNow(id);
      await server.takeOne(queue);
      if (says) await add(id, [line('three')]);
      await server.ack(id, says ? { log: [line('four')] } : {});
      const { written, alarms } = await object.counted();
      return { id, rows: written - alarms };
    };
    // The first one begins a chunk of the archive, which the others join.
    await life(false);
    const [silent, told] = [await life(false), await life(true)];
    expect(told.rows).toBe(silent.rows);
    expect(await log(silent.id)).toEqual([]);
    expect((await log(told.id)).map(({ message }) => message)).toEqual(['one', 'two', 'three', 'four']);
    expect((await log(told.id))[1]).toEqual({
      at: expect.any(Number),
      level: 'info',
      message: 'two',
      fields: { a: 1 },
    });
    expect(JSON.stringify(await server.job(told.id))).not.toContain('three');
  });

  it('can be read while the attempt runs, and after it was cancelled, failed or snoozed', async () => {
    const ids = [await server.enqueue(queue), await server.enqueue(queue), await server.enqueue(queue)];
    await server.take(queue, { count: 3 });
    for (const id of ids) await add(id, [line('here')]);
    for (const id of ids) expect(await log(id)).toEqual([line('here')]);
    await server.ok(200, 'DELETE', `${V1}/jobs/${ids[0]}`);
    await server.nack(ids[1]);
    await server.nack(ids[2], { requeue: true, attempt_used: false, snooze: { in: 1000 }, log: [line('later', 2)] });
    await object.evict();
    expect(await log(ids[0])).toEqual([line('here')]);
    expect(await log(ids[1])).toEqual([line('here')]);
    expect(await log(ids[2])).toEqual([line('here'), line('later', 2)]);
  });

  it('holds the newest 100 lines and 32 KiB, and cuts long texts', async () => {
    const id = await server.enqueue(queue);
    await server.takeOne(queue);
    await add(
      id,
      Array.from({ length: 150 }, (_, n) => line(`${n}`)),
    );
    const kept = await log(id);
    expect(kept).toHaveLength(100);
    expect(kept.at(-1)).toMatchObject({ message: '149' });
    await add(
      id,
      Array.from({ length: 20 }, () => ({ ...line('é'.repeat(9000)), fields: { x: 'y'.repeat(9000) } })),
    );
    const large = await log(id);
    expect(new TextEncoder().encode(JSON.stringify(large)).byteLength).toBeLessThan(33 * 1024);
    expect(large.at(-1)).toMatchObject({ message: 'é'.repeat(4096), fields: { truncated: true } });
    const tooLong = { message: '\u0001'.repeat(4096), fields: { x: '\u0002'.repeat(1362) } };
    await add(id, [line('before'), tooLong, line('after')]);
    expect((await log(id)).slice(-2)).toEqual([line('before'), line('after')]);
    const last = await log(id);
    await server.ack(id);
    expect(await log(id)).toEqual(last);
  });

  it('keeps one warning for each set of steps that runs did not reach, and shows the last', async () => {
    const id = await server.enqueue(queue, { options: { retry: { max_attempts: 9 } } });
    const shown = async () => (await server.ok(200, 'GET', `${V1}/admin/jobs/${id}?timeline=true`)).drift;
    expect(await shown()).toBeUndefined();
    for (const drift of [['a'], ['a'], ['a', 'b'], ['a', 'b']]) {
      await server.takeOne(queue);
      await add(id, [{ level: 'warn', message: 'not reached', fields: { drift } }, line('next')]);
      await server.failNow(id);
    }
    const warnings = (await log(id)).filter(({ level }) => level === 'warn');
    expect(warnings.map(({ fields }) => fields)).toEqual([{ drift: ['a'] }, { drift: ['a', 'b'] }]);
    expect(await shown()).toEqual(['a', 'b']);
  });

  it('tells followers that there are new lines', async () => {
    const id = await server.enqueue(queue);
    await server.takeOne(queue);
    await add(id, [line('one'), line('two')]);
    await add(id, []);
    expect(await server.events({ types: 'job.log', queue })).toMatchObject([
      { subject: id, data: { job_id: id, attempt: 1, lines: 2 } },
    ]);
  });

  it('takes no line of an attempt that is over, and no line that is none', async () => {
    const id = await server.enqueue(queue);
    await server.takeOne(queue);
    const path = `${V1}/jobs/${id}/log`;
    expect(await server.refusal('POST', path, { lines: [{ level: 'loud', message: 'm' }] })).toMatchObject({
      ...{ status: 400, field: 'lines[0].level' },
    });
    expect(await server.refusal('POST', path, {})).toMatchObject({ status: 400, field: 'lines' });
    expect(await server.refusal('POST', path, { lines: [], attempt: 2 })).toMatchObject({ status: 409 });
    await server.ack(id);
    expect(await server.refusal('POST', path, { lines: [] })).toMatchObject({ status: 409 });
    expect(await log(id)).toEqual([]);
  });
});

it('a stack is kept with its failure, cut between two characters', async () => {
  const id = await server.enqueue(queue);
  await server.takeOne(queue);
  const stack = `Error: no\n    at f (a.ts:1:1)\n${'🙂'.repeat(4096)}`;
  await server.nack(id, { error: { message: 'no', stack } });
  const { error, errors } = (await server.job(id)) as { error: Json; errors: Json[] };
  expect((error.stack as string).length).toBeGreaterThan(4090);
  expect((error.stack as string).length).toBeLessThanOrEqual(4096);
  expect(stack.startsWith(error.stack as string)).toBe(true);
  expect((error.stack as string).isWellFormed()).toBe(true);
  expect(errors).toMatchObject([{ stack: error.stack }]);
});

it.runIf(isLong)(
  'a row as large as it may be is stored, archived and read again: body, errors, log, checkpoint and steps',
  async () => {
    const big = 'é'.repeat(500_000);
    const id = await server.enqueue(queue, { args: [big], options: { retry: { max_attempts: 50 } } });
    const stack = '🙂'.repeat(3000);
    for (let nth = 0; nth < 12; nth++) {
      await server.takeOne(queue);
      const lines = Array.from({ length: 10 }, () => ({ message: 'ß'.repeat(4000) }));
      await server.nack(id, { error: { message: 'ß'.repeat(8000), stack, retry_in: 0 }, log: lines });
    }
    await server.takeOne(queue);
    for (let n = 0; n < 12; n++) await put(id, `a${n}`, { result: 'é'.repeat(32_500) });
    await server.ok(200, 'PUT', checkpoint(id), { state: 'é'.repeat(520_000) });
    await server.ack(id, { result: big });
    await object.evict();
    const [chunk] = await object.rows<{ n: number }>('SELECT max(length(CAST(data AS BLOB))) AS n FROM archive');
    expect(chunk?.n).toBeLessThan(2_000_000);
    const [beside] = await object.rows<{ n: number }>('SELECT max(length(CAST(data AS BLOB))) AS n FROM checkpoints');
    expect(beside?.n).toBeLessThan(2_000_000);
    expect((await server.ok(200, 'GET', `${V1}/jobs/${id}/log`)).lines).not.toEqual([]);
    expect(await server.job(id)).toMatchObject({ state: 'completed' });
  },
);
