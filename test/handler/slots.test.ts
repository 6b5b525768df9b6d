import { describe, expect, it } from 'vitest';
import { Slots } from '../../src/handler/slots';

const open = new AbortController().signal;

describe('slots', () => {
  it('are given in the order of arrival', async () => {
    const slots = new Slots(1);
    const order: string[] = [];
    const first = await slots.acquire(Date.now() + 60_000, open);
    const waiting = ['b', 'c', 'd'].map(async (name) => {
      const release = await slots.acquire(Date.now() + 60_000, open);
      order.push(name);
      release();
    });
    first();
    await Promise.all(waiting);
    expect(order).toEqual(['b', 'c', 'd']);
  });

  it('whose holder vanished are free after its deadline', async () => {
    let now = 1_000;
    const slots = new Slots(1, () => now);
    await slots.acquire(2_000, open);
    now = 2_000;
    await expect(slots.acquire(3_000, open)).resolves.toBeTypeOf('function');
  });

  it('are found free by a caller already waiting when that deadline passes', async () => {
    const slots = new Slots(1);
    await slots.acquire(Date.now() + 5, open);
    await expect(slots.acquire(Date.now() + 60_000, open)).resolves.toBeTypeOf('function');
  });

  it('are not waited for once the signal aborts', async () => {
    const slots = new Slots(1);
    const giveUp = new AbortController();
    const release = await slots.acquire(Date.now() + 60_000, open);
    const refused = expect(slots.acquire(Date.now() + 60_000, giveUp.signal)).rejects.toThrow('enough');
    giveUp.abort(new Error('enough'));
    await refused;
    release();
    await expect(slots.acquire(Date.now() + 60_000, open)).resolves.toBeTypeOf('function');
  });

  it('given back twice are given back once', async () => {
    const slots = new Slots(2);
    const release = await slots.acquire(Date.now() + 60_000, open);
    await slots.acquire(Date.now() + 60_000, open);
    release();
    release();
    await slots.acquire(Date.now() + 60_000, open);
    const refused = new AbortController();
    refused.abort(new Error('full'));
    await expect(slots.acquire(Date.now() + 60_000, refused.signal)).rejects.toThrow('full');
  });
});
