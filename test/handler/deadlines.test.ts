import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Deadlines } from '../../src/handler/time-limit';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('time limits count from when they are watched, whatever begins beside them', async () => {
  const deadlines = new Deadlines();
  const expired: string[] = [];
  const watch = (name: string, ms: number) => deadlines.watch(ms, () => expired.push(name));
  watch('long', 100);
  watch('short', 5);
  await vi.advanceTimersByTimeAsync(3);
  watch('later', 5);
  await vi.advanceTimersByTimeAsync(2);
  expect(expired).toEqual(['short']);
  await vi.advanceTimersByTimeAsync(3);
  expect(expired).toEqual(['short', 'later']);
  await vi.advanceTimersByTimeAsync(91);
  expect(expired).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(1);
  expect(expired).toEqual(['short', 'later', 'long']);
});

it('runs that are over at once need one timer together, and those that end later leave none', async () => {
  const deadlines = new Deadlines();
  const expire = vi.fn();
  for (let n = 0; n < 100; n++) deadlines.watch(5, expire)();
  const end = deadlines.watch(5, expire);
  expect(vi.getTimerCount()).toBe(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(vi.getTimerCount()).toBe(1);
  end();
  expect(vi.getTimerCount()).toBe(0);
  await vi.advanceTimersByTimeAsync(10);
  expect(expire).not.toHaveBeenCalled();
});
