/** When a queue tells the directory that its numbers are outdated. */
import { expect, it } from 'vitest';
import type { Host } from '../../../src/queue/feature';
import { Readers } from '../../../src/queue/features/readings/feature';
import { DAY, T0 } from '../../support/clock';

it('tells the directory again after a failure, also when the clock was set back since', async () => {
  let now = T0;
  const told: number[] = [];
  const running: Promise<unknown>[] = [];
  const host = {
    now: () => now,
    wakesAt: () => null,
    keepAlive: (promise: Promise<unknown>) => running.push(promise),
    others: {
      noteChange: async () => {
        told.push(now);
        if (told.length === 1) throw new Error('unreachable');
      },
    },
  } as unknown as Host;
  const readers = new Readers(host);
  readers.start();
  await Promise.all(running);
  readers.start();
  expect(told).toEqual([T0]);
  now -= DAY;
  readers.start();
  expect(told).toEqual([T0, T0 - DAY]);
});
