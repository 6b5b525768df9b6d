/** How long a lease is: the worker may insist on a length, or propose one where nobody else says anything. */
import { describe, expect, it } from 'vitest';
import { clock, SECOND } from '../../../support/clock';
import { server, V1 } from '../../../support/server';
import { WorkerSocket } from '../../../support/worker-socket';

server.emptyBeforeEach();
clock.startAtT0();

const proposal = { default_visibility_timeout_ms: 60 * SECOND };

/** The length of a lease: it is there a moment before its end, and not there after it. */
async function expectLease(id: string, ms: number): Promise<void> {
  clock.advance(ms - 1);
  expect(await server.state(id)).toBe('active');
  clock.advance(1);
  expect(await server.state(id)).toBe('available');
}

describe('the lease that a worker proposes', () => {
  it('holds where neither the job nor its queue says anything, and goes without saying', async () => {
    const id = await server.enqueue('q');
    expect(await server.takeOne('q', proposal)).not.toHaveProperty('lease_ms');
    await expectLease(id, 60 * SECOND);
  });

  it('gives way to that of the job, which the worker receives', async () => {
    const id = await server.enqueue('q', { options: { visibility_timeout_ms: 600_000 } });
    expect(await server.takeOne('q', proposal)).toMatchObject({ lease_ms: 600_000 });
    await expectLease(id, 600_000);
  });

  it('gives way to that of the queue', async () => {
    const id = await server.enqueue('q');
    await server.ok(200, 'PUT', `${V1}/queues/q/config`, { visibility_timeout: 90 });
    expect(await server.takeOne('q', proposal)).toMatchObject({ lease_ms: 90_000 });
    await expectLease(id, 90 * SECOND);
  });

  it('counts for nothing beside one that it insists on', async () => {
    const id = await server.enqueue('q', { options: { visibility_timeout_ms: 600_000 } });
    const job = await server.takeOne('q', { ...proposal, visibility_timeout_ms: 5 * SECOND });
    expect(job).not.toHaveProperty('lease_ms');
    await expectLease(id, 5 * SECOND);
  });

  it('is said when it connects, too', async () => {
    const first = await server.enqueue('q');
    const second = await server.enqueue('q', { options: { visibility_timeout_ms: 600_000 } });
    const worker = await WorkerSocket.open('q', { default_visibility_timeout_ms: '60000' });
    worker.ready(2);
    const jobs = await worker.given(2);
    expect(jobs).toMatchObject([{ id: first }, { id: second, lease_ms: 600_000 }]);
    expect(jobs[0]).not.toHaveProperty('lease_ms');
    clock.advance(60 * SECOND);
    expect([await server.state(first), await server.state(second)]).toEqual(['available', 'active']);
    worker.close();
  });

  it('is refused where it is not a time', async () => {
    const body = { queues: ['q'], default_visibility_timeout_ms: 0 };
    const refused = { status: 400, field: 'default_visibility_timeout_ms' };
    expect(await server.refusal('POST', `${V1}/workers/fetch`, body)).toMatchObject(refused);
  });
});
