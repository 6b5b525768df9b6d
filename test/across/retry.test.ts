/** Trying again while something else is being decided. */
import { describe, expect, it } from 'vitest';
import { untilDecided } from '../../src/across/retry';
import { conflict } from '../../src/job/errors';
import { lockedError, undecided } from '../../src/job/undecided';

/** Fails with these errors one after the other, then answers. Notes its pauses, ms. */
function attempts(errors: readonly Error[]) {
  const pauses: number[] = [];
  const left = [...errors];
  const run = untilDecided(
    async () => {
      const error = left.shift();
      if (error) throw error;
      return 'done';
    },
    { random: () => 0.5, wait: async (ms) => void pauses.push(ms) },
  );
  return { run, pauses, left };
}

describe('what was refused because something else is being decided', () => {
  it.each([
    ['a locked job', lockedError('id')],
    ['an undecided batch', undecided()],
  ])('is tried again: %s', async (_, error) => {
    const { run, pauses } = attempts([error, error]);
    expect(await run).toBe('done');
    expect(pauses).toEqual([20, 40]);
  });

  it('is given up after six attempts, with pauses that grow', async () => {
    const { run, pauses, left } = attempts(Array(7).fill(undecided()));
    await expect(run).rejects.toThrow('try again');
    expect(left).toHaveLength(1);
    expect(pauses).toEqual([20, 40, 80, 160, 320]);
  });
});

it.each([
  ['another refusal', conflict('no', {})],
  ['a defect', new Error('no')],
])('%s is not tried again', async (_, error) => {
  const { run, pauses } = attempts([error]);
  await expect(run).rejects.toThrow('no');
  expect(pauses).toEqual([]);
});
