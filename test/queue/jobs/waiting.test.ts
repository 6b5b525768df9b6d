/** Why a job does not run: a job in each situation, read over HTTP, and how the answer changes when the situation ends. */
import { v7 as uuidv7 } from 'uuid';
import { beforeEach, describe, expect, it } from 'vitest';
import { unwrap } from '../../../src/job/errors';
import { WAITING_REASONS } from '../../../src/job/waiting';
import { clock, HOUR, iso, MINUTE, SECOND, T0 } from '../../support/clock';
import { freshName, TestQueue } from '../../support/queue';
import { rowsWhile } from '../../support/rows';
import { type Json, server, V1 } from '../../support/server';

clock.startAtT0();

/** What a job waits for. */
async function why(id: unknown): Promise<Json | undefined> {
  const waits = (await server.job(id)).waiting_for as Json | undefined;
  if (waits) {
    expect(WAITING_REASONS).toContain(waits.reason);
    expect(waits.detail).toMatch(/^[A-Z].*\.|\?$/);
    expect((waits.since as string) <= iso(Date.now())).toBe(true);
  }
  return waits;
}

const pulled = (queue: string, options: Json = {}) => server.add('test.job', [], { queue, ...options });

describe('a job that waits for its own moment', () => {
  it('is pending until it is activated', async () => {
    const queue = freshName('why-pending');
    const id = await pulled(queue, { pending: true });
    clock.advance(MINUTE);
    expect(await why(id)).toMatchObject({
      reason: 'pending',
      since: iso(T0),
      detail: expect.stringMatching(/activate/),
    });
    expect(await why(id)).not.toHaveProperty('until');
    await server.ok(200, 'POST', `${V1}/jobs/${id}/activate`);
    expect(await why(id)).toMatchObject({ reason: 'no_worker', since: iso(T0 + MINUTE) });
  });

  it('is delayed until then', async () => {
    const queue = freshName('why-delayed');
    const id = await pulled(queue, { delay_until: iso(T0 + HOUR) });
    expect(await why(id)).toMatchObject({ reason: 'delayed', since: iso(T0), until: iso(T0 + HOUR) });
    clock.at(HOUR);
    expect(await why(id)).toMatchObject({ reason: 'no_worker', since: iso(T0 + HOUR) });
  });

  it('waits between two attempts, and says what went wrong in the first', async () => {
    const queue = freshName('why-retry');
    const id = await pulled(queue, { retry: { initial_interval: 'PT1M', jitter: false } });
    await server.takeOne(queue);
    expect(await why(id)).toBeUndefined();
    clock.advance(SECOND);
    await server.nack(id, { error: { code: 'E', type: 'SmtpError', message: 'no route\nat all' } });
    expect(await why(id)).toMatchObject({
      reason: 'retry',
      since: iso(T0 + SECOND),
      until: iso(T0 + SECOND + MINUTE),
      detail: expect.stringMatching(/^Attempt 1 failed \(SmtpError: no route\)\. Attempt 2 begins/),
    });
    clock.advance(MINUTE);
    expect(await why(id)).toMatchObject({ since: iso(T0 + SECOND + MINUTE) });
    await server.complete(queue);
    expect(await why(id)).toBeUndefined();
  });

  it.each([
    ['snoozed', {}, HOUR, 'snoozed it'],
    ['signal', { signal: 'approved' }, HOUR, `/signals/approved. It continues without it at ${iso(T0 + HOUR)}`],
    ['signal', { signal: 'approved' }, 100 * 366 * 24 * HOUR, '/signals/approved.'],
  ])('is %s when its handler said so (%j)', async (reason, said, after, detail) => {
    const queue = new TestQueue(freshName('why-snoozed'));
    const id = await pulled(queue.name, { delay_until: iso(T0 + after) });
    const history = JSON.stringify({ snoozed: { since: T0, until: T0 + after, claim: 1, ...said } });
    const changed = "UPDATE jobs SET claims = ?, history = ? WHERE type = 'test.job'";
    await queue.inside(({ sql }) => void sql.exec(changed, 1, history).toArray());
    clock.advance(SECOND);
    const waits = await why(id);
    expect(waits).toMatchObject({ reason, since: iso(T0), detail: expect.stringContaining(detail) });
    expect(waits?.until).toBe(after === HOUR ? iso(T0 + after) : undefined);
    expect(waits?.signal).toBe(reason === 'signal' ? 'approved' : undefined);
    if (reason === 'signal') expect(waits?.detail).toContain(`POST /jobs/${id}/signals/approved`);
    // A later claim has ended otherwise, and it waits for something else.
    await queue.inside(({ sql }) => void sql.exec(changed, 2, history).toArray());
    expect(await why(id)).toMatchObject({ reason: 'delayed' });
  });

  it('that must start by a moment says that it may never run, and has no reason any more when it is too late', async () => {
    const queue = freshName('why-expiry');
    const id = await pulled(queue, { expires_at: iso(T0 + MINUTE) });
    expect(await why(id)).toMatchObject({ detail: expect.stringContaining(iso(T0 + MINUTE)) });
    clock.advance(MINUTE);
    expect(await server.job(id)).toMatchObject({ state: 'discarded' });
    expect(await why(id)).toBeUndefined();
  });
});

describe('a job whose queue gives out none', () => {
  it('waits for its queue to be resumed, since it was paused or the job came', async () => {
    const queue = freshName('why-paused');
    const early = await pulled(queue);
    clock.advance(MINUTE);
    await server.ok(200, 'POST', `${V1}/queues/${queue}/pause`);
    clock.advance(MINUTE);
    const late = await pulled(queue);
    expect(await why(early)).toMatchObject({ reason: 'queue_paused', since: iso(T0 + MINUTE) });
    expect(await why(late)).toMatchObject({ reason: 'queue_paused', since: iso(T0 + 2 * MINUTE) });
    const delayed = await pulled(queue, { delay_until: iso(T0 + HOUR) });
    expect(await why(delayed)).toMatchObject({ reason: 'delayed', detail: expect.stringContaining('paused, too') });
    await server.ok(200, 'POST', `${V1}/queues/${queue}/resume`);
    expect(await why(early)).toMatchObject({ reason: 'no_worker' });
    expect((await why(delayed))?.detail).not.toContain('paused');
  });

  it('waits for the limit of the queue, and says which job comes first', async () => {
    const queue = freshName('why-queue-limit');
    await server.configure(queue, { rate_limit: { limit: 1, period: 'PT1H' } });
    const [first, second, third] = [await pulled(queue), await pulled(queue), await pulled(queue)];
    await server.takeOne(queue);
    expect(await why(first)).toBeUndefined();
    const opens = { until: iso(T0 + HOUR), detail: expect.stringContaining('1 jobs have started within PT1H') };
    expect(await why(second)).toMatchObject({ reason: 'queue_limit', ...opens });
    expect(await why(third)).toMatchObject({ reason: 'behind', detail: expect.stringContaining('behind 1 job ') });
    await server.ack(first);
    clock.advance(HOUR);
    expect(await why(second)).toMatchObject({ reason: 'no_worker' });
    await server.configure(queue, { rate_limit: { concurrency: 1 } });
    expect(await server.takeIds(queue)).toEqual([second]);
    expect(await why(third)).toMatchObject({
      reason: 'queue_limit',
      detail: expect.stringContaining('1 of 1 jobs run'),
    });
    await server.ack(second);
    expect(await why(third)).toMatchObject({ reason: 'no_worker' });
  });
});

describe('a job whose key has no room', () => {
  it('waits for an attempt of its key to end', async () => {
    const queue = freshName('why-key');
    const rate_limit = { key: 'stripe', concurrency: 1 };
    const [first, second] = [await pulled(queue, { rate_limit }), await pulled(queue, { rate_limit })];
    await server.takeOne(queue);
    expect(await why(second)).toMatchObject({
      reason: 'key_limit',
      since: iso(T0),
      detail: expect.stringContaining('the key stripe, whose limit is reached: 1 of 1 jobs run'),
    });
    await server.ack(first);
    expect(await why(second)).toMatchObject({ reason: 'no_worker' });
  });

  it('waits for the window of its rate', async () => {
    const queue = freshName('why-rate');
    const rate_limit = { key: 'api', rate: { limit: 1, period: 'PT1M' } };
    const [first, second] = [await pulled(queue, { rate_limit }), await pulled(queue, { rate_limit })];
    await server.takeOne(queue);
    await server.ack(first);
    expect(await why(second)).toMatchObject({ reason: 'key_limit', until: iso(T0 + MINUTE) });
    clock.advance(MINUTE);
    expect(await why(second)).toMatchObject({ reason: 'no_worker' });
  });

  it('that must be rescheduled is, and says so', async () => {
    const queue = freshName('why-rescheduled');
    const rate_limit = { key: 'slow', rate: { limit: 1, period: 'PT1M' }, on_limit: 'reschedule' };
    await pulled(queue, { rate_limit });
    const second = await pulled(queue, { rate_limit });
    expect(await server.takeIds(queue, { count: 2 })).toHaveLength(1);
    expect(await why(second)).toMatchObject({
      reason: 'key_limit',
      until: iso(T0 + MINUTE),
      detail: expect.stringContaining('no room under the key slow'),
    });
  });

  it('waits for an operator who stopped the key', async () => {
    const queue = freshName('why-stopped');
    const id = await pulled(queue, { rate_limit: { key: 'held', concurrency: 5 } });
    const override = { concurrency: 0, expires_at: iso(T0 + HOUR) };
    await server.ok(200, 'PUT', `${V1}/rate-limits/held/override`, override);
    expect(await why(id)).toMatchObject({
      reason: 'key_limit',
      until: iso(T0 + HOUR),
      detail: expect.stringContaining('An operator has stopped the key held'),
    });
    await server.call('DELETE', `${V1}/rate-limits/held/override`);
    expect(await why(id)).toMatchObject({ reason: 'no_worker' });
  });
});

describe('a job for workers that pull', () => {
  it('waits for one that takes it, and says when one asked last', async () => {
    const queue = freshName('why-no-worker');
    const first = await server.add('test.first', [], { queue });
    expect(await why(first)).toMatchObject({
      reason: 'no_worker',
      detail: expect.stringContaining('No worker has fetched a job from it yet'),
    });
    clock.advance(SECOND);
    expect(await server.takeIds(queue, { types: ['test.other'] })).toEqual([]);
    expect((await why(first))?.detail).toContain('No worker has fetched');
    expect(await server.takeIds(queue, { types: ['test.first', 'x.y'] })).toEqual([first]);
    const second = await server.add('test.first', [], { queue });
    clock.advance(SECOND);
    expect((await why(second))?.detail).toContain(`A worker last fetched from it at ${iso(T0 + SECOND)}`);
    const third = await server.add('test.first', [], { queue });
    expect(await why(third)).toMatchObject({ reason: 'behind', detail: expect.stringContaining('behind 1 job ') });
    await server.add('test.first', [], { queue, priority: 5 });
    expect((await why(third))?.detail).toContain('behind 2 jobs');
    expect((await why(second))?.reason).toBe('behind');
    expect(await server.takeIds(queue, { count: 2 })).toHaveLength(2);
    expect(await why(third)).toMatchObject({ reason: 'no_worker' });
  });

  it('of a type that is nearly one which a handler takes is asked whether that was meant', async () => {
    const queue = freshName('why-slip');
    const id = await server.add('wrok.do', [], { queue });
    expect(await why(id)).toMatchObject({
      reason: 'no_worker',
      detail: expect.stringContaining('Did you mean "work.do"?'),
    });
    const far = await server.add('quite.different', [], { queue });
    expect((await why(far))?.detail).not.toContain('Did you mean');
  });
});

describe('the number of jobs before another', () => {
  it('is counted up to a bound', async () => {
    const queue = new TestQueue(freshName('why-behind'));
    const jobs = (count: number) =>
      Array.from({ length: count }, () => ({
        type: 'test.job',
        args: ['x'.repeat(100)],
        options: { queue: queue.name },
      }));
    await server.addAll(jobs(700));
    const middle = await pulled(queue.name);
    await server.addAll(jobs(1000));
    await server.addAll(jobs(1000));
    const last = await pulled(queue.name);
    const [first] = await server.takeIds(queue.name);
    expect(first).toBeDefined();
    expect((await why(middle))?.detail).toContain('behind 699 jobs');
    expect((await why(last))?.detail).toMatch(/behind more than \d+ jobs/);
    const { read, written } = await rowsWhile(queue.stub, () => why(last));
    expect(read).toBeLessThan(2_100);
    expect(written).toBe(0);
  });

  it('counts those of other moments and priorities in their order', async () => {
    const queue = freshName('why-order');
    await pulled(queue);
    await server.complete(queue);
    const delayed = await pulled(queue, { delay_until: iso(T0 + SECOND) });
    const low = await pulled(queue, { priority: -1 });
    clock.advance(SECOND);
    const line = await pulled(queue);
    clock.advance(SECOND);
    const late = await pulled(queue);
    expect(await why(delayed)).toMatchObject({ reason: 'no_worker' });
    expect((await why(line))?.detail).toContain('behind 1 job ');
    expect((await why(late))?.detail).toContain('behind 2 jobs');
    expect((await why(low))?.detail).toContain('behind 3 jobs');
  });
});

describe('a job that is part of an undecided operation over several queues', () => {
  it('waits for the decision', async () => {
    const queue = new TestQueue(freshName('why-locked'));
    const id = await pulled(queue.name);
    const batch = uuidv7();
    clock.advance(SECOND);
    unwrap(await queue.api.prepareBulk(batch, queue.name, { action: 'cancel', ids: [id] }));
    expect(await why(id)).toMatchObject({
      reason: 'batch_undecided',
      since: iso(T0 + SECOND),
      until: iso(T0 + 11 * SECOND),
    });
    unwrap(await queue.api.abortBatch(batch));
    expect(await why(id)).toMatchObject({ reason: 'no_worker' });
  });
});

describe('what a job waits for', () => {
  beforeEach(() => clock.set(T0));

  it('is said where one job is read, and neither in lists nor in the answer to an enqueue', async () => {
    const queue = freshName('why-where');
    const body = await server.ok(201, 'POST', `${V1}/jobs`, { type: 'test.job', args: [], options: { queue } });
    expect(body.job).not.toHaveProperty('waiting_for');
    const id = body.job?.id;
    expect(await server.ok(200, 'GET', `${V1}/admin/jobs/${id}`)).toMatchObject({
      waiting_for: { reason: 'no_worker' },
    });
    expect((await server.jobs(queue))[0]).not.toHaveProperty('waiting_for');
    expect((await server.take(queue))[0]).not.toHaveProperty('waiting_for');
    await server.ack(id);
    expect(await server.job(id)).not.toHaveProperty('waiting_for');
  });
});
