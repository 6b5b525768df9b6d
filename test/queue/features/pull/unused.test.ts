/** A worker that cannot run a job gives it back: nothing was tried, so nothing is used up. */
import { describe, expect, it } from 'vitest';
import { clock, SECOND } from '../../../support/clock';
import { server, V1 } from '../../../support/server';

server.emptyBeforeEach();
clock.startAtT0();

const unused = { requeue: true, attempt_used: false };

describe('a job that is given back unused', () => {
  it('stands where it stood, with its attempt, and says so', async () => {
    const first = await server.enqueue('q', { options: { retry: { max_attempts: 1 } } });
    const second = await server.enqueue('q');
    await server.takeOne('q', { worker_id: 'w1' });
    const answer = await server.nack(first, { ...unused, attempt: 1, worker_id: 'w1' });
    expect(answer).toMatchObject({ state: 'available', attempt: 0 });
    expect(await server.job(first)).toMatchObject({
      state: 'available',
      attempt: 0,
      unused_claims: { count: 1, worker_id: 'w1', last_at: expect.stringMatching(/Z$/) },
    });
    expect(await server.take('q', { count: 2 })).toMatchObject([
      { id: first, attempt: 1 },
      { id: second, attempt: 1 },
    ]);
  });

  it('pauses longer each time in a row, so that no one hands it to and fro', async () => {
    const id = await server.enqueue('q');
    const pauses: number[] = [];
    for (let n = 0; n < 9; n++) {
      await server.takeOne('q');
      await server.nack(id, unused);
      const { scheduled_at } = await server.job(id);
      const until = Date.parse((scheduled_at as string | undefined) ?? '') || Date.now();
      pauses.push((until - Date.now()) / SECOND);
      clock.set(until);
    }
    expect(pauses).toEqual([0, 1, 2, 4, 8, 16, 32, 60, 60]);
    expect(await server.job(id)).toMatchObject({ unused_claims: { count: 9 }, attempt: 0 });
  });

  it('starts counting again once an attempt was used', async () => {
    const id = await server.enqueue('q');
    for (let n = 0; n < 3; n++) {
      await server.takeOne('q');
      await server.nack(id, unused);
      clock.advance(60 * SECOND);
    }
    await server.takeOne('q');
    await server.failNow(id);
    await server.takeOne('q');
    await server.nack(id, unused);
    expect(await server.job(id)).toMatchObject({ state: 'available', attempt: 1, unused_claims: { count: 1 } });
  });

  it('may be reported twice', async () => {
    const id = await server.enqueue('q');
    await server.takeOne('q');
    for (let n = 0; n < 2; n++) {
      expect(await server.nack(id, { ...unused, attempt: 1 })).toMatchObject({ state: 'available', attempt: 0 });
    }
    expect(await server.job(id)).toMatchObject({ unused_claims: { count: 1 } });
    expect(await server.refusal('POST', `${V1}/workers/nack`, { job_id: id, ...unused, attempt: 2 })).toMatchObject({
      status: 409,
    });
  });

  it('is given back only with requeue', async () => {
    const id = await server.enqueue('q');
    await server.takeOne('q');
    const body = { job_id: id, attempt_used: false };
    expect(await server.refusal('POST', `${V1}/workers/nack`, body)).toEqual({
      status: 400,
      code: 'invalid_request',
      field: 'attempt_used',
    });
    expect(await server.job(id)).toMatchObject({ state: 'active', attempt: 1 });
  });
});
