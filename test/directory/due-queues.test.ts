/** What becomes of queues whose alarms could not be set, without any request. */
import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { clock, DAY, HOUR, MINUTE, SECOND, T0, until } from '../support/clock';
import { directory } from '../support/directory';
import { failAlways } from '../support/faults';
import { TestQueue } from '../support/queue';
import { rowsWhile } from '../support/rows';
import { server } from '../support/server';
import { touchesOf } from '../support/touches';
import { begin, step } from '../workflow/workflows';

clock.startAtT0();
beforeEach(() => server.reset());

const lookout = () => env.DIRECTORY.getByName('lookout');
const USED_UP = 'Exceeded allowed rows written in Durable Objects free tier.';

/** Every write of an object fails, alarms included. @returns ends that, if the object still lives */
async function outage(stub: DurableObjectStub): Promise<() => Promise<void>> {
  let end: (() => void) | undefined;
  await runInDurableObject(stub, (_, { storage }) => {
    const { setAlarm } = storage;
    const heal = failAlways(storage.sql, /^\s*(INSERT|UPDATE|DELETE|REPLACE)/i);
    storage.setAlarm = () => Promise.reject(new Error(USED_UP));
    end = () => {
      heal();
      storage.setAlarm = setAlarm;
    };
  });
  return () => runInDurableObject(stub, () => end?.());
}

/** A queue with a job that expires in ten minutes, after the directory was told of it. */
async function due(): Promise<{ queue: TestQueue; id: string }> {
  const queue = new TestQueue();
  const calls = await touchesOf(directory(), 'queueChanged');
  const id = await queue.add({ expiresAt: Date.now() + 10 * MINUTE });
  await until(() => calls.length > 0, 'the directory to be told');
  return { queue, id };
}

/** All writes fail while the alarms ring that are set up to `time`; then their objects are evicted. */
async function loseAlarms(stubs: readonly DurableObjectStub[], time: number): Promise<void> {
  // Nothing in memory sets them again.
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'], now: Date.now() });
  for (const stub of stubs) {
    await outage(stub);
    const armed = await clock.armedAt(stub);
    expect(armed).not.toBeNull();
    if (armed !== null && armed <= time) {
      clock.set(Math.max(Date.now(), armed));
      await clock.ring(stub);
      expect(await clock.armedAt(stub)).toBeNull();
    }
  }
  clock.set(time);
  for (const stub of stubs) await evictDurableObject(stub);
}

describe('a queue whose alarm could not be set', () => {
  it('is woken by the directory, about an hour after it was due', async () => {
    const { queue, id } = await due();
    await loseAlarms([queue.stub], T0 + 11 * MINUTE);
    const lookAt = (await clock.armedAt(directory())) as number;
    expect(lookAt).toBeGreaterThanOrEqual(T0 + HOUR);
    expect(lookAt).toBeLessThanOrEqual(T0 + 90 * MINUTE);
    clock.set(lookAt);
    await clock.ring(directory());
    await until(async () => (await queue.armedAt()) !== null, 'the queue to set its alarm');
    await queue.passTo((await queue.armedAt()) as number);
    expect(await queue.state(id)).toBe('discarded');
  });

  it('is woken by the first commit of another queue, when the directory lost its alarm too', async () => {
    const { queue } = await due();
    await loseAlarms([queue.stub, directory()], T0 + 6 * HOUR);
    await new TestQueue().add();
    await until(async () => (await clock.armedAt(directory())) === T0 + 6 * HOUR + 1, 'the directory to set its alarm');
    clock.advance(1);
    await clock.ring(directory());
    await until(async () => (await queue.armedAt()) !== null, 'the queue to set its alarm');
  });

  it('is woken soon after 00:00 UTC, without any request', async () => {
    const { queue } = await due();
    // A look in better times has called the lookout.
    await clock.jumpTo(directory(), (await clock.armedAt(directory())) as number);
    const callsAt = (await clock.armedAt(lookout())) as number;
    expect(callsAt).toBe(T0 + 12 * HOUR + 5 * MINUTE);
    const id = await queue.add({ expiresAt: Date.now() + 10 * MINUTE });
    await loseAlarms([queue.stub, directory()], T0 + 8 * HOUR);
    clock.set(callsAt);
    await clock.ring(lookout());
    await clock.jumpTo(directory(), Date.now() + SECOND);
    await until(async () => (await queue.armedAt()) !== null, 'the queue to set its alarm');
    await queue.passTo(Date.now() + SECOND);
    expect(await queue.state(id)).toBe('discarded');
  });

  it('sets it by itself while it lives, once it can', async () => {
    const { queue } = await due();
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'], now: T0 });
    const heal = await outage(queue.stub);
    clock.set((await queue.armedAt()) as number);
    await queue.alarm();
    expect(await queue.armedAt()).toBeNull();
    await heal();
    await queue.inside(() => vi.advanceTimersByTimeAsync(2 * MINUTE));
    expect(await queue.armedAt()).not.toBeNull();
  });
});

describe('a workflow whose alarm could not be set', () => {
  it('is called soon after 00:00 UTC, also when the directory has kept its own', async () => {
    const { queue } = await due();
    const id = await begin({ steps: [step(queue.name)] });
    // A call is enough: the object arms its alarm when it is made.
    const calls = await touchesOf(env.WORKFLOWS.getByName(id), 'get');
    await clock.jumpTo(directory(), (await clock.armedAt(directory())) as number);
    expect(calls).toEqual([]);
    clock.set((await clock.armedAt(lookout())) as number);
    await clock.ring(lookout());
    await clock.jumpTo(directory(), Date.now() + SECOND);
    await until(() => calls.length > 0, 'the workflow to be called');
  });
});

describe('looking after queues', () => {
  it('ends when a queue has nothing due, and costs an idle one nothing', async () => {
    const { queue, id } = await due();
    await queue.cancel(id);
    const calls = await touchesOf(queue.stub);
    for (let looks = 0; looks < 30; looks++) {
      const armed = Math.min(...[await clock.armedAt(directory()), await queue.armedAt()].map((at) => at ?? Infinity));
      if (!Number.isFinite(armed)) break;
      await clock.jumpTo(directory(), armed);
      await clock.jumpTo(queue.stub, armed);
    }
    expect([await queue.armedAt(), await clock.armedAt(directory())]).toEqual([null, null]);
    // The ended job is kept for days: a look at the beginning, and one after it was removed.
    expect(calls.filter((call) => call === 'nextDue').length).toBeLessThanOrEqual(3);
    clock.advance(DAY);
    await clock.ring(lookout());
    expect(await clock.armedAt(lookout())).toBeNull();
  });

  it('writes no row a job: two an hour for a queue, however much it does', async () => {
    const queue = new TestQueue();
    await queue.add();
    const counted = await rowsWhile(directory(), async () => {
      for (let minute = 0; minute < 60; minute++) {
        clock.advance(MINUTE);
        await queue.add({ scheduledAt: Date.now() + MINUTE });
        if (minute % 10 === 9) await queue.evict();
      }
    });
    expect(counted.written).toBeLessThanOrEqual(4);
  });

  it('reads of each report the moment of one queue, however many there are', async () => {
    await due();
    for (let queue = 0; queue < 200; queue++) await directory().queueChanged(`q${queue}`, T0 + HOUR);
    const counted = await rowsWhile(directory(), async () => {
      for (let queue = 200; queue < 220; queue++) await directory().queueChanged(`q${queue}`, T0 + HOUR);
    });
    expect(counted.read).toBeLessThan(200);
  });

  it('follows a queue that is deleted', async () => {
    const { queue } = await due();
    await directory().unregister(queue.name, Date.now() + 1);
    await clock.jumpTo(directory(), (await clock.armedAt(directory())) as number);
    expect(await clock.armedAt(directory())).toBeNull();
  });

  it('continues after a look that failed, without haste', async () => {
    const { queue } = await due();
    await queue.inside(({ instance }) => {
      (instance as unknown as { nextDue: () => never }).nextDue = () => {
        throw new TypeError('The RPC receiver does not implement the method "nextDue".');
      };
    });
    await clock.jumpTo(directory(), (await clock.armedAt(directory())) as number);
    expect(await clock.armedAt(directory())).toBe(Date.now() + 15 * MINUTE);
  });
});
