/** A handler that goes on later, at a moment or at a signal: over HTTP, by workers that pull. */
import { beforeEach, describe, expect, it } from 'vitest';
import { clock, DAY, HOUR, iso, MINUTE, SECOND, T0 } from '../../support/clock';
import { onRecord } from '../../support/on-record';
import { freshName, steady, TestQueue } from '../../support/queue';
import { type Json, server, UNKNOWN_ID, V1 } from '../../support/server';

server.emptyBeforeEach();
clock.startAtT0();
let queue: string;
let object: TestQueue;
beforeEach(() => {
  queue = freshName('snooze');
  object = new TestQueue(queue);
});

const snooze = (job: Json, how: Json, rest: Json = {}) =>
  server.ok(200, 'POST', `${V1}/workers/nack`, nap(job, how, rest));
const nap = (job: Json, how: Json, rest: Json = {}): Json => ({
  ...{ job_id: job.id, attempt: job.attempt, requeue: true, attempt_used: false, snooze: how },
  ...rest,
});
const signal = (id: unknown, name: string, payload?: unknown) =>
  server.ok(200, 'POST', `${V1}/jobs/${id}/signals/${name}`, payload === undefined ? {} : { payload });
const steps = async (id: unknown) => (await server.ok(200, 'GET', `${V1}/jobs/${id}/steps`)).steps;

describe('a job whose handler continues later', () => {
  it('waits for the moment, and then runs as the same attempt', async () => {
    const id = await server.enqueue(queue, { options: { retry: steady(1) } });
    for (let nth = 0; nth < 3; nth++) {
      const job = await server.takeOne(queue);
      expect(job).toMatchObject({ id, attempt: 1 });
      const until = Date.now() + 10 * MINUTE;
      expect((await snooze(job, { in: '10m' })).job).toMatchObject({ state: 'scheduled', scheduled_at: iso(until) });
      expect(await object.armedAt()).toBe(until);
      await object.passTo(until - 1);
      expect(await server.take(queue)).toEqual([]);
      await object.passTo(until);
    }
    expect(await server.job(id)).toMatchObject({ state: 'available', attempt: 0 });
    await server.ack((await server.takeOne(queue)).id);
    expect(await server.job(id)).toMatchObject({ state: 'completed', attempt: 1 });
  });

  it('tells when its first run began and when its last one, while it sleeps, runs and has ended', async () => {
    const id = await server.enqueue(queue);
    await server.ack((await server.takeOne(queue)).id);
    expect(await server.job(id), 'its first run was its last').not.toHaveProperty('first_started_at');

    const slept = await server.enqueue(queue, { options: { retry: steady(1) } });
    clock.advance(SECOND);
    const begun = Date.now();
    const times = async () => {
      const { created_at, first_started_at, started_at } = await server.job(slept);
      return [created_at, first_started_at, started_at];
    };
    for (let nth = 0; nth < 3; nth++) {
      await snooze(await server.takeOne(queue), { in: '10m' });
      expect(await times()).toEqual([iso(T0), nth === 0 ? undefined : iso(begun), iso(Date.now())]);
      await object.passTo(Date.now() + 10 * MINUTE);
    }
    const woken = Date.now();
    const { id: taken } = await server.takeOne(queue);
    expect(await times()).toEqual([iso(T0), iso(begun), iso(woken)]);
    await server.ack(taken);
    expect(await times()).toEqual([iso(T0), iso(begun), iso(woken)]);
  });

  it('tells the first run and the last one in its history, each once', async () => {
    const id = await server.enqueue(queue);
    const starts = async () => {
      const { events } = await server.ok(200, 'GET', `${V1}/jobs/${id}/history`);
      const found = (events as Json[]).filter(({ event_type }) => event_type === 'job.attempt_started');
      return found.map(({ timestamp, data }) => [timestamp, (data as Json).attempt]);
    };
    await server.takeOne(queue);
    expect(await starts()).toEqual([[iso(T0), 1]]);
    await snooze(await server.job(id), { in: '10m' });
    expect(await starts()).toEqual([[iso(T0), 1]]);
    await object.passTo(T0 + 10 * MINUTE);
    await snooze(await server.takeOne(queue), { in: '10m' });
    await object.passTo(T0 + 20 * MINUTE);
    await server.ack((await server.takeOne(queue)).id);
    expect(await starts()).toEqual([
      [iso(T0), 1],
      [iso(T0 + 20 * MINUTE), 1],
    ]);
  });

  it('counts a run that failed before it slept as the first', async () => {
    const id = await server.enqueue(queue, { options: { retry: steady(3) } });
    clock.advance(SECOND);
    await server.takeOne(queue);
    const begun = Date.now();
    clock.advance(SECOND);
    await server.ok(200, 'POST', `${V1}/workers/nack`, { job_id: id, error: { code: 'x', message: 'no' } });
    await object.passTo(Date.now() + DAY);
    await snooze(await server.takeOne(queue), { in: 1 });
    expect(await server.job(id)).toMatchObject({ first_started_at: iso(begun), started_at: iso(begun + SECOND + DAY) });
  });

  it('has a new claim each time, and what an earlier one still says changes nothing', async () => {
    const id = await server.enqueue(queue);
    const [first, second] = [await server.takeOne(queue), {} as Json];
    const about = ({ attempt, delivery_id }: Json): Json => ({ attempt, delivery_id, worker_id: 'w' });
    const said = nap(first, { in: 1, steps: { a: { result: 1 } } }, { delivery_id: first.delivery_id });
    await server.ok(200, 'POST', `${V1}/workers/nack`, said);
    expect(await server.ok(200, 'POST', `${V1}/workers/nack`, said)).toMatchObject({ state: 'scheduled' });
    await object.passTo(T0 + 1);
    Object.assign(second, await server.takeOne(queue));
    expect(second).toMatchObject({ id, attempt: 1, steps: { a: { result: 1 } } });
    expect(second.delivery_id).not.toBe(first.delivery_id);
    const late: [string, string, Json][] = [
      ['POST', '/workers/nack', said],
      ['POST', '/workers/ack', { job_id: id, ...about(first) }],
      ['PUT', `/jobs/${id}/steps/b`, { result: 'late', ...about(first) }],
      ['PUT', `/jobs/${id}/checkpoint`, { state: 'late', ...about(first) }],
    ];
    for (const [method, path, body] of late) {
      expect(await server.refusal(method, `${V1}${path}`, body)).toMatchObject({ status: 409 });
    }
    await server.ok(200, 'PUT', `${V1}/jobs/${id}/steps/b`, { result: 2, ...about(second) });
    expect(await steps(id)).toEqual(onRecord({ a: { result: 1 }, b: { result: 2 } }));
    expect(await server.job(id)).toMatchObject({ state: 'active' });
    expect(await server.job(id)).not.toHaveProperty('delivery_id');
    await server.ok(200, 'POST', `${V1}/workers/ack`, { job_id: id, ...about(second) });
  });

  it('costs no row while it waits, survives the death of its object, and wakes its worker', async () => {
    const id = await server.enqueue(queue);
    await snooze(await server.takeOne(queue), { until: iso(T0 + DAY) });
    // The alarm of the lease rings once, and is set anew.
    await object.passTo(T0 + HOUR);
    await object.startCounting();
    await object.passTo(T0 + DAY - 1);
    await server.job(id);
    expect((await object.counted()).written).toBe(0);
    await object.evict();
    expect(await server.job(id)).toMatchObject({ state: 'scheduled' });
    const fetched = server.takeOne(queue, { wait_ms: 20_000 });
    await object.waiting('work', 1);
    await object.jumpTo(T0 + DAY);
    expect(await fetched).toMatchObject({ id, attempt: 1 });
  });

  it('writes two rows to sleep, one for its steps, and three when its signal comes', async () => {
    const id = await server.enqueue(queue);
    const written = async (act: () => Promise<unknown>) => {
      await object.startCounting();
      await act();
      const { written, alarms } = await object.counted();
      return written - alarms;
    };
    const first = await server.takeOne(queue);
    expect(await written(() => snooze(first, { in: 1000 }))).toBe(2);
    clock.advance(1000);
    const second = await server.takeOne(queue);
    const steps = { a: { result: 1 }, b: { result: 2 }, go: { until: T0 + DAY } };
    expect(await written(() => snooze(second, { in: DAY, signal: 'go', steps }))).toBe(3);
    expect(await written(() => signal(id, 'go'))).toBe(3);
    expect(await server.takeIds(queue)).toEqual([id]);
  });

  it('shows since when and until when in its history, until it runs again', async () => {
    const id = await server.enqueue(queue);
    await snooze(await server.takeOne(queue), { in: 5000, signal: 'go' });
    const snoozed = async () => (await object.get(id)).history.snoozed;
    expect(await snoozed()).toEqual({ since: T0, until: T0 + 5000, signal: 'go', claim: 1 });
    const { events } = await server.ok(200, 'GET', `${V1}/jobs/${id}/history`);
    expect(events).toContainEqual(
      expect.objectContaining({ event_type: 'job.snoozed', data: { until: iso(T0 + 5000), signal: 'go' } }),
    );
    expect(await server.events({ queue, types: 'job.snoozed' })).toMatchObject([{ subject: id }]);
    clock.advance(5000);
    expect(await snoozed()).toBeUndefined();
    await server.takeOne(queue);
    expect(await snoozed()).toBeUndefined();
    await server.failNow(id);
    expect(await snoozed()).toBeUndefined();
  });

  it('keeps its retries as they were', async () => {
    const id = await server.enqueue(queue, { options: { retry: steady(2, 1000) } });
    await server.nack((await server.takeOne(queue)).id);
    clock.advance(1000);
    const again = await server.takeOne(queue);
    expect(again).toMatchObject({ attempt: 2 });
    await snooze(again, { in: 1000 });
    clock.advance(1000);
    expect(await server.takeOne(queue)).toMatchObject({ id, attempt: 2 });
    await server.nack(id);
    expect(await server.job(id)).toMatchObject({ state: 'discarded', errors: [{ attempt: 1 }, { attempt: 2 }] });
  });

  it('ends by its expiry, is cancelled and is given another time as any scheduled job', async () => {
    const [expired, cancelled, moved] = [
      await server.enqueue(queue, { options: { expires_at: iso(T0 + MINUTE) } }),
      await server.enqueue(queue),
      await server.enqueue(queue),
    ];
    for (const job of await server.take(queue, { count: 3 })) await snooze(job, { in: '1h' });
    await server.ok(200, 'DELETE', `${V1}/jobs/${cancelled}`);
    await server.ok(200, 'PATCH', `${V1}/jobs/${moved}`, { delay_until: '+PT2M' });
    expect((await object.get(moved)).history.snoozed).toMatchObject({ until: T0 + 2 * MINUTE });
    await object.passTo(T0 + MINUTE);
    expect(await server.job(expired)).toMatchObject({ state: 'discarded', discard_reason: 'expired' });
    expect(await server.job(cancelled)).toMatchObject({ state: 'cancelled' });
    clock.set(T0 + 2 * MINUTE);
    expect(await server.takeIds(queue)).toEqual([moved]);
  });

  it('makes room under its key, and counts under it again when it continues', async () => {
    const options = { rate_limit: { key: 'one', concurrency: 1 } };
    const [first, second] = [await server.enqueue(queue, { options }), await server.enqueue(queue, { options })];
    const job = await server.takeOne(queue, { count: 2 });
    await snooze(job, { in: 1000 });
    expect(await server.takeIds(queue)).toEqual([second]);
    clock.advance(1000);
    expect(await server.takeIds(queue)).toEqual([]);
    await server.ack(second);
    expect(await server.takeIds(queue)).toEqual([first]);
  });

  it('stands in the way of its like, and counts in the depth of its queue', async () => {
    await server.configure(queue, { max_size: 1 });
    const unique = { keys: ['type'], on_conflict: 'reject' };
    await server.enqueue(queue, { options: { unique } });
    await snooze(await server.takeOne(queue), { in: 1000 });
    const twin = { type: 'test.echo', args: [], options: { queue, unique } };
    expect(await server.refusal('POST', `${V1}/jobs`, twin)).toMatchObject({ status: 409, code: 'duplicate' });
    const other = { type: 'test.other', args: [], options: { queue } };
    expect(await server.refusal('POST', `${V1}/jobs`, other)).toMatchObject({ status: 429 });
    expect(await object.counts()).toEqual({ scheduled: 1 });
  });

  it('keeps its place when it continues at once, but not for ever without anything new', async () => {
    const first = await server.enqueue(queue);
    clock.advance(1);
    await server.enqueue(queue);
    const job = await server.takeOne(queue);
    await snooze(job, { in: 0, steps: { one: { result: 1 } } });
    expect(await server.takeOne(queue)).toMatchObject({ id: first, steps: { one: { result: 1 } } });
    await snooze(job, { in: 0, steps: { one: { result: 2 } } });
    expect(await server.job(first)).toMatchObject({ state: 'scheduled', scheduled_at: iso(T0 + 1 + SECOND) });
    expect(await steps(first)).toEqual(onRecord({ one: { result: 1 } }));
  });

  it('gets the same answer when the report is sent again, and 409 when another attempt runs', async () => {
    await server.enqueue(queue);
    const job = await server.takeOne(queue);
    await snooze(job, { in: 1000 });
    expect((await snooze(job, { in: 1000 })).job).toMatchObject({ state: 'scheduled' });
    expect(await server.refusal('POST', `${V1}/workers/ack`, { job_id: job.id, attempt: 1 })).toMatchObject({
      status: 409,
    });
    clock.advance(1000);
    await server.takeOne(queue);
    expect(await server.refusal('POST', `${V1}/workers/nack`, nap({ ...job, attempt: 2 }, { in: 1 }))).toMatchObject({
      status: 409,
    });
  });

  it.each<[string, Json, Json]>([
    ['no moment', {}, { field: 'snooze' }],
    ['two moments', { in: 1, until: iso(T0 + 1) }, { field: 'snooze.until' }],
    ['a bad duration', { in: 'soon' }, { field: 'snooze.in' }],
    ['too long a duration', { in: '40000d' }, { field: 'snooze.in' }],
    ['a bad name', { signal: '' }, { field: 'snooze.signal' }],
    ['a step that says nothing', { in: 1, steps: { a: {} } }, { field: 'snooze.steps.a' }],
  ])('is refused with %s, and still runs', async (_, how, details) => {
    const id = await server.enqueue(queue);
    const job = await server.takeOne(queue);
    expect(await server.refusal('POST', `${V1}/workers/nack`, nap(job, how))).toMatchObject({
      status: 400,
      ...details,
    });
    expect(await server.refusal('POST', `${V1}/workers/nack`, nap(job, { in: 1 }, { requeue: false }))).toMatchObject({
      status: 400,
    });
    expect(await server.state(id)).toBe('active');
    await server.ack(id);
  });
});

describe('a signal', () => {
  const wait = { signal: 'approved', in: '7d', steps: { approved: { until: T0 + 7 * DAY } } };

  it('wakes the job that waits for it, and its payload is handed out', async () => {
    const id = await server.enqueue(queue);
    await snooze(await server.takeOne(queue), wait);
    clock.advance(DAY);
    const answer = await signal(id, 'approved', { by: 'ann' });
    expect(answer).toMatchObject({ job: { id, state: 'available' }, signal: { name: 'approved', at: iso(T0 + DAY) } });
    expect(await server.takeOne(queue)).toMatchObject({
      id,
      attempt: 1,
      steps: { approved: { signal: { payload: { by: 'ann' }, at: T0 + DAY } } },
    });
  });

  it('that comes first is found by the wait, in one transaction', async () => {
    const id = await server.enqueue(queue);
    await signal(id, 'approved', 1);
    const job = await server.takeOne(queue);
    expect(job.steps).toMatchObject({ approved: { signal: { payload: 1 } } });
    await snooze(job, wait);
    expect(await server.takeOne(queue)).toMatchObject({ id, steps: { approved: { signal: { payload: 1 } } } });
  });

  it('that races with the wait is never missed', async () => {
    const ids = await server.addAll(Array.from({ length: 20 }, () => ({ type: 'a.b', args: [], options: { queue } })));
    const jobs = await server.take(queue, { count: 20 });
    await Promise.all(jobs.flatMap((job) => [snooze(job, wait), signal(job.id, 'approved')]));
    expect((await server.takeIds(queue, { count: 20 })).sort()).toEqual(ids.sort());
  });

  it('of another name is kept and wakes no job; the first of a name wins', async () => {
    const id = await server.enqueue(queue);
    await snooze(await server.takeOne(queue), wait);
    await signal(id, 'rejected', 1);
    clock.advance(1);
    expect(await signal(id, 'rejected', 2)).toMatchObject({ job: { state: 'scheduled' }, signal: { at: iso(T0) } });
    expect(await steps(id)).toMatchObject({ rejected: { signal: { payload: 1, at: T0 } } });
  });

  it('wakes a job that waits for several, whichever comes, also while its handler ends', async () => {
    const both = { ...wait, steps: { approved: { until: T0 + 7 * DAY }, rejected: { until: T0 + DAY } } };
    const id = await server.enqueue(queue);
    await snooze(await server.takeOne(queue), both);
    expect(await signal(id, 'rejected', 'no')).toMatchObject({ job: { state: 'available' } });
    const job = await server.takeOne(queue);
    expect(job.steps).toMatchObject({ rejected: { signal: { payload: 'no' } } });
    await server.ack(id);

    const other = await server.enqueue(queue);
    const running = await server.takeOne(queue);
    await signal(other, 'rejected');
    expect(await snooze(running, both)).toMatchObject({ job: { state: 'available' } });
  });

  it('that comes after its time is refused once the handler has gone on without it', async () => {
    const id = await server.enqueue(queue);
    await snooze(await server.takeOne(queue), { ...wait, in: 1000, steps: { approved: { until: T0 + 1000 } } });
    clock.advance(1000);
    const job = await server.takeOne(queue);
    expect(job.steps).toEqual(onRecord({ approved: { until: T0 + 1000 } }));
    await server.ok(200, 'PUT', `${V1}/jobs/${id}/steps/approved`, { timed_out: true, attempt: 1 });
    expect(await server.refusal('POST', `${V1}/jobs/${id}/signals/approved`, {})).toMatchObject({
      status: 409,
      code: 'conflict',
    });
    expect(await steps(id)).toEqual(onRecord({ approved: { timed_out: true } }));
  });

  it('wakes no job whose wait was over before the job was given a later time, and is found then', async () => {
    const timedOut = await server.enqueue(queue);
    const atOnce = await server.enqueue(queue);
    const [first, second] = await server.take(queue, { count: 2 });
    await snooze(first as Json, { ...wait, in: 1000, steps: { approved: { until: T0 + 1000 } } });
    await snooze(second as Json, { ...wait, in: 0 });
    clock.advance(1000);
    for (const id of [timedOut, atOnce]) {
      await server.ok(200, 'PATCH', `${V1}/jobs/${id}`, { delay_until: '+PT2M' });
      expect(await signal(id, 'approved', 1)).toMatchObject({ job: { id, state: 'scheduled' } });
    }
    clock.advance(2 * MINUTE);
    for (const job of await server.take(queue, { count: 2 })) {
      expect(job.steps).toMatchObject({ approved: { signal: { payload: 1 } } });
    }
  });

  it('is 404 for a job that do not exist and 409 for one that has ended', async () => {
    const id = await server.enqueue(queue);
    await server.complete(queue);
    expect(await server.refusal('POST', `${V1}/jobs/${id}/signals/go`)).toMatchObject({ status: 409 });
    expect(await server.refusal('POST', `${V1}/jobs/${UNKNOWN_ID}/signals/go`)).toMatchObject({ status: 404 });
    const other = await server.enqueue(queue);
    const name = 'x'.repeat(129);
    expect(await server.refusal('POST', `${V1}/jobs/${other}/signals/${name}`)).toEqual({
      ...{ status: 400, code: 'invalid_request', field: 'name' },
    });
  });
});

it('a step of a workflow may sleep: what comes after it waits for its end', async () => {
  const steps = ['one', 'two'].map((name) => ({ type: `test.${name}`, args: [], options: { queue } }));
  await server.ok(201, 'POST', `${V1}/workflows`, { type: 'chain', steps });
  const first = (await server.take(queue, { wait_ms: 5000 }))[0] as Json;
  await snooze(first, { in: 1000, steps: { half: { result: 1 } } });
  clock.advance(1000);
  expect(await server.takeOne(queue)).toMatchObject({ id: first.id, type: 'test.one', steps: { half: { result: 1 } } });
  await server.ack(first.id);
  expect((await server.take(queue, { wait_ms: 5000 }))[0]).toMatchObject({ type: 'test.two' });
});
