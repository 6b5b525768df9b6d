/** What fails is left alone, for longer each time, and asked again as soon as it may answer. */
import { describe, expect, it } from 'vitest';
import { Backoff } from '../../src/durable/backoff';
import { QuietWorkers } from '../../src/queue/features/pull/quiet-workers';

describe('a rest', () => {
  it('lasts a second after a failure, twice as long each time up to thirty, and ends with a success', async () => {
    let now = 0;
    let works = false;
    const asked: number[] = [];
    const backoff = new Backoff(() => now);
    const ask = () => {
      asked.push(now);
      return works ? Promise.resolve('yes') : Promise.reject(new Error('no'));
    };
    for (; now < 100_000; now += 500) expect(await backoff.ask(ask, () => undefined)).toBeUndefined();
    expect(asked).toEqual([0, 1_000, 3_000, 7_000, 15_000, 31_000, 61_000, 91_000]);
    works = true;
    now = 121_000;
    expect(await backoff.ask(ask, () => undefined)).toBe('yes');
    expect(await backoff.ask(ask, () => undefined)).toBe('yes');
    works = false;
    await backoff.ask(ask, () => undefined);
    expect(backoff.isResting).toBe(true);
    now += 1_000;
    expect(backoff.isResting).toBe(false);
  });
});

describe('a clock that was set back', () => {
  it('makes no rest longer, and what was read just before is read again', async () => {
    let now = 3_600_000;
    const backoff = new Backoff(() => now);
    backoff.failed();
    let asked = 0;
    const silenced = new QuietWorkers(
      async () => [`w${++asked}`],
      () => now,
    );
    expect([await silenced.has('w1'), await silenced.has('w1')]).toEqual([true, true]);
    now = 0;
    expect(backoff.isResting).toBe(false);
    expect([await silenced.has('w1'), await silenced.has('w2')]).toEqual([false, true]);
  });
});

describe('a queue whose directory cannot be asked', () => {
  it('does not ask again for each fetch, goes by what it knows, and hears of directives later', async () => {
    let now = 0;
    let asked = 0;
    let answer: () => Promise<string[]> = () => Promise.reject(new Error('the directory is down'));
    const read = () => {
      asked++;
      return answer();
    };
    const silenced = new QuietWorkers(read, () => now);
    for (let fetch = 0; fetch < 100; fetch++) expect(await silenced.has('w1')).toBe(false);
    expect(asked).toBe(1);
    answer = () => Promise.resolve(['w1']);
    now = 1_000;
    expect(await silenced.has('w1')).toBe(true);
    expect(asked).toBe(2);
    // What is known stands when the directory fails later.
    answer = () => Promise.reject(new Error('the directory is down'));
    now = 70_000;
    for (let fetch = 0; fetch < 100; fetch++) expect(await silenced.has('w1')).toBe(true);
    expect(asked).toBe(3);
  });
});
