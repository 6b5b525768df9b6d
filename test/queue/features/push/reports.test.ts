import { abortAllDurableObjects } from 'cloudflare:test';
import { describe, expect, it } from 'vitest';
import { clock, until } from '../../../support/clock';
import { Gate, runsOf } from '../../../support/handlers';
import { TestQueue } from '../../../support/queue';
import { server } from '../../../support/server';

const LATER = { initial_interval: 'PT1H', max_interval: null, jitter: false };

clock.restoreAfterEach();

const deliveryOf = async (id: string, run = 0) =>
  (await runsOf('PLAIN', id))[run]?.headers['x-ojs-delivery-id'] as string;

describe('a handler that reports its job itself', () => {
  it('and then answers 200 is believed once', async () => {
    const gate = new Gate('PLAIN');
    const id = await server.add('wide.gate', gate.args, { queue: 'self-ack' });
    await gate.waiting(1);
    expect(await server.ok(200, 'POST', `/ojs/v1/jobs/${id}/ack`, { result: 'own' })).toMatchObject({
      state: 'completed',
    });
    await gate.open();
    // Settled after the answer of the first: only then has the dispatcher seen that one.
    await server.jobIn(await server.add('wide.order', [{}], { queue: 'self-ack' }), 'completed');
    expect(await server.job(id)).toMatchObject({ state: 'completed', result: 'own', attempt: 1 });
    expect(
      (await server.events({ queue: 'self-ack', types: 'job.completed' })).filter(({ subject }) => subject === id),
    ).toHaveLength(1);
  });

  it('and then answers 500 has failed once', async () => {
    const gate = new Gate('PLAIN');
    const order = { ...(gate.args[0] as object), status: 500 };
    const id = await server.add('wide.gate', [order], { queue: 'self-nack', retry: LATER });
    await gate.waiting(1);
    await server.ok(200, 'POST', `/ojs/v1/jobs/${id}/nack`, { error: { code: 'own', message: 'mine' } });
    await gate.open();
    await server.jobIn(await server.add('wide.order', [{}], { queue: 'self-nack' }), 'completed');
    const failed = await server.job(id);
    expect(failed).toMatchObject({ state: 'retryable', attempt: 1, error: { code: 'own' } });
    expect(failed.errors).toHaveLength(1);
  });

  it('after the dispatcher recorded its answer gets the outcome', async () => {
    const id = await server.add('plain.order', [{}], { queue: 'reverse' });
    await server.jobIn(id, 'completed');
    const delivery_id = await deliveryOf(id);
    for (const body of [undefined, {}, { delivery_id }, { attempt: 1 }, { delivery_id, result: 'other' }]) {
      expect(await server.call('POST', `/ojs/v1/jobs/${id}/ack`, body)).toMatchObject({ status: 200 });
    }
    expect(await server.job(id)).not.toHaveProperty('result');
    const stranger = { delivery_id: `${delivery_id}9` };
    expect(await server.call('POST', `/ojs/v1/jobs/${id}/ack`, stranger)).toMatchObject({ status: 409 });
  });

  it('after the dispatcher recorded its failure gets the outcome, named or not', async () => {
    const id = await server.add('plain.order', [{ status: 500 }], { queue: 'reverse', retry: LATER });
    await server.jobIn(id, 'retryable');
    const delivery_id = await deliveryOf(id);
    for (const body of [{}, { error: 'mine' }, { delivery_id }, { attempt: 1 }]) {
      expect(await server.call('POST', `/ojs/v1/jobs/${id}/nack`, body)).toMatchObject({ status: 200 });
    }
    expect((await server.job(id)).errors).toHaveLength(1);
  });

  it('names its delivery in a header as well', async () => {
    const id = await server.add('plain.order', [{}], { queue: 'reverse' });
    await server.jobIn(id, 'completed');
    const header = (delivery: string) => ({ 'X-OJS-Delivery-ID': delivery });
    const ack = (delivery: string) => server.call('POST', `/ojs/v1/jobs/${id}/ack`, undefined, header(delivery));
    expect((await ack(await deliveryOf(id))).status).toBe(200);
    expect((await ack('del_other')).status).toBe(409);
  });

  it('without naming it long afterwards is refused', async () => {
    const id = await server.add('plain.order', [{}], { queue: 'reverse' });
    await server.jobIn(id, 'completed');
    clock.advance(60_000);
    expect(await server.call('POST', `/ojs/v1/jobs/${id}/ack`)).toMatchObject({ status: 409 });
  });
});

describe('a late answer', () => {
  it('that names its timed-out delivery counts while the job waits', async () => {
    const id = await server.add('plain.order', [{ do: 'hang' }], { queue: 'late', retry: LATER, timeout_ms: 50 });
    await server.jobIn(id, 'retryable');
    const body = { delivery_id: await deliveryOf(id), result: 'late' };
    expect(await server.call('POST', `/ojs/v1/jobs/${id}/ack`, body)).toMatchObject({ status: 200 });
    expect(await server.job(id)).toMatchObject({ state: 'completed', result: 'late', attempt: 1 });
  });

  it('without a name does not', async () => {
    const id = await server.add('plain.order', [{ do: 'hang' }], { queue: 'late', retry: LATER, timeout_ms: 50 });
    await server.jobIn(id, 'retryable');
    expect(await server.call('POST', `/ojs/v1/jobs/${id}/ack`)).toMatchObject({ status: 409 });
  });

  it('is refused once the next attempt has started', async () => {
    const retry = { initial_interval: 0, jitter: false, max_attempts: 50 };
    const id = await server.add('plain.order', [{ do: 'hang' }], { queue: 'late', retry, timeout_ms: 200 });
    await until(async () => ((await server.job(id)).attempt as number) >= 2, 'the second attempt');
    const body = { delivery_id: await deliveryOf(id) };
    expect(await server.call('POST', `/ojs/v1/jobs/${id}/ack`, body)).toMatchObject({ status: 409 });
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${id}`);
  });

  it('of a run that was snoozed is refused, though the run before it timed out', async () => {
    const retry = { initial_interval: 0, jitter: false, max_attempts: 50 };
    const id = await server.add('plain.order', [{ do: 'hang' }], { queue: 'late-snoozed', retry, timeout_ms: 2_000 });
    await until(async () => ((await server.job(id)).attempt as number) === 2, 'the second attempt');
    const snooze = { requeue: true, attempt_used: false, snooze: { in: '10m' } };
    await server.ok(200, 'POST', `/ojs/v1/jobs/${id}/nack`, { attempt: 2, ...snooze });
    await until(async () => (await runsOf('PLAIN', id)).length === 2, 'the second run');
    const body = { delivery_id: await deliveryOf(id, 1), result: 'both' };
    expect(await server.call('POST', `/ojs/v1/jobs/${id}/ack`, body)).toMatchObject({ status: 409 });
    expect(await server.job(id)).toMatchObject({ state: 'retryable', attempt: 1 });
  });
});

describe('an object that dies during a delivery', () => {
  it('delivers the job again when the lease has run out, with a new delivery id', async () => {
    const gate = new Gate('PLAIN');
    const id = await server.add('wide.gate', gate.args, { queue: 'died' });
    await gate.waiting(1);
    await abortAllDurableObjects();
    expect(await server.job(id)).toMatchObject({ state: 'active', attempt: 1 });
    clock.advance(41_000);
    await new TestQueue('died').alarm();
    await gate.waiting(2);
    await gate.open();
    expect(await server.jobIn(id, 'completed')).toMatchObject({
      attempt: 2,
      errors: [{ attempt: 1, type: 'tocsin.visibility_timeout' }],
    });
    expect(await deliveryOf(id, 1)).not.toBe(await deliveryOf(id, 0));
  });

  it('does not hold up the jobs that wait, although all its slots were taken', async () => {
    const gate = new Gate('PLAIN');
    await server.configure('slots', { concurrency: 2 });
    for (let n = 0; n < 2; n++) await server.add('wide.gate', gate.args, { queue: 'slots' });
    await gate.waiting(2);
    await abortAllDurableObjects();
    const id = await server.add('wide.order', [{}], { queue: 'slots' });
    await server.jobIn(id, 'completed');
    await gate.open();
  });
});
