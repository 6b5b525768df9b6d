/** An object whose calls take long gets an event now and then, so that it is not evicted meanwhile. */
import { abortAllDurableObjects } from 'cloudflare:test';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { clock, MINUTE, SECOND, T0 } from '../../../support/clock';
import { Gate } from '../../../support/handlers';
import { TestQueue } from '../../../support/queue';
import { server } from '../../../support/server';

afterEach(() => {
  vi.useRealTimers();
});

/** Time stands still for everything but the runtime itself. */
function stopTime(): void {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'], now: T0 });
}

/** Lets time pass inside the object, its timers included. */
const pass = (queue: TestQueue, ms: number) => queue.inside(() => void vi.advanceTimersByTime(ms));

/** A job that its handler runs until the gate opens. */
async function running(queue: TestQueue, gate: Gate): Promise<string> {
  const id = await server.add('wide.gate', gate.args, { queue: queue.name, timeout_ms: 15 * MINUTE });
  await gate.waiting(1);
  return id;
}

describe('while a push runs', () => {
  it('the alarm rings at least every 30 s, from its 30th second on, and no more when it is over', async () => {
    stopTime();
    const gate = new Gate('PLAIN');
    const queue = new TestQueue('long');
    const id = await running(queue, gate);
    // The wake that stood by for the enqueue.
    await clock.jumpTo(queue.stub, T0 + SECOND);
    const lease = T0 + 15 * MINUTE + 10 * SECOND;
    expect(await queue.armedAt()).toBe(lease);
    await pass(queue, 30 * SECOND);
    let armed = (await queue.armedAt()) as number;
    expect(armed - Date.now()).toBeLessThanOrEqual(1);
    for (let rings = 0; rings < 4; rings++) {
      await queue.jumpTo(armed);
      armed = (await queue.armedAt()) as number;
      expect(armed - Date.now()).toBeLessThanOrEqual(30 * SECOND);
    }
    await gate.open();
    await server.jobIn(id, 'completed');
    await queue.jumpTo(armed);
    // What is left is the look at the lease.
    expect(await queue.armedAt()).toBe(lease);
  });

  it('for less than 30 s, no alarm is set but that of the lease', async () => {
    stopTime();
    const gate = new Gate('PLAIN');
    const queue = new TestQueue('short');
    const id = await running(queue, gate);
    await clock.jumpTo(queue.stub, T0 + SECOND);
    await pass(queue, 25 * SECOND);
    await gate.open();
    await server.jobIn(id, 'completed');
    await pass(queue, MINUTE);
    expect(await queue.armedAt()).toBe(T0 + 15 * MINUTE + 10 * SECOND);
  });

  it('an object that is evicted anyway has an alarm, and rescues what was in flight', async () => {
    clock.set(T0);
    const gate = new Gate('PLAIN');
    const queue = new TestQueue('evicted');
    const id = await running(queue, gate);
    // An eviction by the pool would wait for the call to end.
    await abortAllDurableObjects();
    expect(await queue.armedAt()).not.toBeNull();
    await queue.passTo(T0 + 16 * MINUTE);
    await gate.waiting(2);
    await gate.open();
    expect(await server.jobIn(id, 'completed')).toMatchObject({
      attempt: 2,
      errors: [{ attempt: 1, type: 'tocsin.visibility_timeout' }],
    });
  });
});
