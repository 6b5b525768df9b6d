import { beforeEach, describe, expect, it } from 'vitest';
import { clock, until } from '../../../support/clock';
import { handler } from '../../../support/handlers';
import { TestQueue } from '../../../support/queue';
import { server } from '../../../support/server';

const calls = async () => (await handler<{ calls: number }>('DOWN', '/calls')).calls;

beforeEach(async () => {
  await handler('DOWN', '/down');
});
clock.restoreAfterEach();

/** Enqueues jobs for the Worker that is not running and waits until its target is stopped. */
async function stopTarget(queue: string, count: number): Promise<string[]> {
  const jobs = Array.from({ length: count }, () => ({ type: 'down.order', args: [], options: { queue } }));
  const ids = await server.addAll(jobs);
  await until(
    async () => (await server.events({ queue, types: 'queue.push_suspended' })).length > 0,
    'the target to be stopped',
  );
  return ids;
}

/** Lets the minute of the stop pass and fires the alarm. */
async function afterTheStop(queue: string): Promise<void> {
  clock.advance(61_000);
  await new TestQueue(queue).alarm();
}

describe('a target whose Worker is not running', () => {
  it('is stopped after five delivery errors, and its jobs stay as they were', async () => {
    const before = await calls();
    const ids = await stopTarget('down-stays', 3);
    expect(await server.events({ queue: 'down-stays', types: 'queue.push_suspended' })).toMatchObject([
      { data: { target: 'DOWN' } },
    ]);
    expect((await calls()) - before).toBe(5);
    for (const id of ids) {
      const waiting = await server.job(id);
      expect(waiting).toMatchObject({ state: 'available', attempt: 0 });
      expect(waiting).not.toHaveProperty('errors');
    }
  });

  it('is not called while it is stopped, whatever arrives', async () => {
    await stopTarget('down-quiet', 1);
    const before = await calls();
    await server.add('down.order', [], { queue: 'down-quiet' });
    // Others of the same queue are pushed, so the pump has looked at the queue.
    await server.jobIn(await server.add('plain.order', [{}], { queue: 'down-quiet' }), 'completed');
    await new TestQueue('down-quiet').alarm();
    expect(await calls()).toBe(before);
  });

  it('gets one trial after a minute, and is stopped for another one if that fails', async () => {
    const [id] = await stopTarget('down-trial', 5);
    const before = await calls();
    await afterTheStop('down-trial');
    await until(async () => (await calls()) === before + 1, 'the trial');
    await new TestQueue('down-trial').alarm();
    await server.jobIn(await server.add('plain.order', [{}], { queue: 'down-trial' }), 'completed');
    expect(await calls()).toBe(before + 1);
    expect(await server.job(id as string)).toMatchObject({ state: 'available', attempt: 0 });
    expect(await server.events({ queue: 'down-trial', types: 'queue.push_suspended' })).toHaveLength(1);
  });

  it('is resumed by a trial that succeeds, and everything is delivered in its first attempt', async () => {
    const ids = await stopTarget('down-back', 20);
    await handler('DOWN', '/up');
    await afterTheStop('down-back');
    for (const id of ids) expect(await server.jobIn(id, 'completed')).toMatchObject({ attempt: 1 });
    expect(await server.events({ queue: 'down-back', types: 'queue.push_resumed' })).toMatchObject([
      { data: { target: 'DOWN' } },
    ]);
  });

  it('stays stopped when its object is evicted, and is resumed as if it had not been', async () => {
    const [id] = await stopTarget('down-evicted', 1);
    const before = await calls();
    await new TestQueue('down-evicted').evict();
    await server.jobIn(await server.add('plain.order', [{}], { queue: 'down-evicted' }), 'completed');
    expect(await calls()).toBe(before);
    await handler('DOWN', '/up');
    await afterTheStop('down-evicted');
    await server.jobIn(id as string, 'completed');
    expect(await server.events({ queue: 'down-evicted', types: 'queue.push_resumed' })).toHaveLength(1);
  });

  it('that goes away while its jobs wait gives them back without an attempt used', async () => {
    await handler('DOWN', '/up');
    await server.jobIn(await server.add('down.order', [], { queue: 'down-later' }), 'completed');
    await handler('DOWN', '/down');
    const ids = await stopTarget('down-later', 12);
    for (const id of ids) expect(await server.job(id)).toMatchObject({ state: 'available', attempt: 0 });
    await handler('DOWN', '/up');
    await afterTheStop('down-later');
    for (const id of ids) expect(await server.jobIn(id, 'completed')).toMatchObject({ attempt: 1 });
  });

  it('that comes back before it is stopped gets its jobs by itself', async () => {
    const id = await server.add('down.order', [], { queue: 'down-short' });
    const before = await calls();
    await until(async () => (await calls()) > before, 'a second try');
    await handler('DOWN', '/up');
    await server.jobIn(id, 'completed');
    expect(await server.events({ queue: 'down-short', types: 'queue.push_suspended' })).toEqual([]);
  });
});

describe('a target whose jobs fail', () => {
  it('is not stopped, however many do', async () => {
    for (let n = 0; n < 7; n++) {
      const id = await server.add('plain.order', [{ status: 503, body: 'overloaded' }], { queue: 'failing' });
      await server.jobIn(id, 'retryable');
    }
    expect(await server.events({ queue: 'failing', types: 'queue.push_suspended' })).toEqual([]);
    await server.jobIn(await server.add('plain.order', [{}], { queue: 'failing' }), 'completed');
  });
});
