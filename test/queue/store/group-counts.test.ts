import { expect, it } from 'vitest';
import { GroupCounts } from '../../../src/queue/store/groups/counts';

/** Groups beyond those that have counters of their own. */
const MANY = 150_000;

it('the jobs of a group are counted exactly, however many groups there are', () => {
  const open: { group: string; body: string }[] = [];
  let countings = 0;
  const counts = new GroupCounts(() => {
    countings++;
    return open;
  });
  expect(counts.above('first', 0)).toBeUndefined();
  for (let at = 0; at < MANY; at++) open.push({ group: `group ${at}`, body: '' });
  for (const job of open) counts.added(job);
  for (const at of [0, 99_999, 100_000, MANY - 1]) {
    const group = `group ${at}`;
    expect(counts.above(group, 0)).toBe(1);
    expect(counts.above(group, 1)).toBeUndefined();
    const job = { group, body: '' };
    open.push(job);
    counts.added(job);
    expect(counts.above(group, 1)).toBe(2);
    open.pop();
    counts.gone(job);
    expect(counts.above(group, 1)).toBeUndefined();
  }
  const before = countings;
  // A bound that no group is near asks for no counting, whichever groups share a counter.
  for (const { group } of open) expect(counts.above(group, 100)).toBeUndefined();
  expect(countings).toBe(before);
});
