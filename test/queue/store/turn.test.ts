/** All loops of a transaction share one budget, however much is due in each of them. */
import { describe, expect, it } from 'vitest';
import { SIZES, Turn } from '../../../src/queue/store/sizes';
import { clock, DAY, MINUTE, SECOND, T0 } from '../../support/clock';
import { type JobChange, steady, TestQueue } from '../../support/queue';

clock.startAtT0();

const EACH = 60;
const many = (change: JobChange) => Array<JobChange>(EACH).fill(change);

describe('a budget', () => {
  const written = { work: 0 };
  const turn = (changes: number) => {
    const made = new Turn({ ...SIZES, turnChanges: changes, turnChars: 100 }, written);
    made.begin();
    return made;
  };

  it('gives each of several duties a part of what is left, and none of them nothing', () => {
    const of = turn(8);
    const numbers = Array.from({ length: 20 }, (_, n) => n);
    const drawn = Array.from({ length: 5 }, () => [...of.draw(numbers, of.share)].length);
    expect(drawn).toEqual([4, 2, 1, 1, 1]);
    of.begin();
    expect([...of.draw(numbers)]).toHaveLength(8);
  });

  it('is spent by characters, too', () => {
    const of = turn(8);
    const drawn = [...of.draw([60, 60, 60])].length;
    expect(drawn).toBe(3);
    of.begin();
    let count = 0;
    for (const chars of of.draw([60, 60, 60])) {
      written.work += chars;
      count++;
    }
    expect(count).toBe(2);
  });
});

it('what is due at once is done in turns, each within its budget, and nothing is left', async () => {
  const queue = new TestQueue();
  await queue.api.configure({ retention: { completed: MINUTE, cancelled: MINUTE, discarded: DAY } });
  await queue.inside(({ q }) => void Object.assign(q.store.sizes, { turnChanges: 20 }));
  const cancelled = await queue.enqueue(...many({ priority: 3 }));
  for (const { id } of cancelled) await queue.api.cancel(id);
  await queue.enqueue(...many({ priority: 2, retry: steady(1) }));
  await queue.claimAll({ visibility_timeout_ms: MINUTE });
  await queue.enqueue(...many({ expiresAt: T0 + MINUTE }));
  clock.set(T0 + MINUTE + SECOND);
  const used = await queue.inside(({ engine, q }) => {
    const { turn } = q.store;
    const changes: number[] = [];
    const begin = turn.begin.bind(turn);
    turn.begin = () => {
      changes.push(turn.used.changes);
      begin();
    };
    for (let rings = 0; rings < 60; rings++) engine.alarm();
    turn.begin();
    return changes;
  });
  // A loop may change one thing more, so that it does not stand still.
  expect(Math.max(...used)).toBeLessThanOrEqual(20 + 8);
  expect(used.filter((changes) => changes > 0).length).toBeGreaterThanOrEqual((3 * EACH) / 28);
  expect(await queue.counts()).toEqual({ discarded: 2 * EACH });
});

it('what expires in a turn that others have spent is discarded in the next ones', async () => {
  const queue = new TestQueue();
  await queue.api.configure({ retention: { discarded: DAY } });
  await queue.inside(({ q }) => void Object.assign(q.store.sizes, { turnChars: 4_000 }));
  const body = { args: ['x'.repeat(1_000)] };
  await queue.enqueue(...Array<JobChange>(8).fill({ body, retry: steady(1) }));
  await queue.claimAll({ visibility_timeout_ms: MINUTE });
  await queue.enqueue(...many({ body, expiresAt: T0 + MINUTE }));
  clock.set(T0 + MINUTE + SECOND);
  const ended = await queue.inside(({ engine, q }) => {
    const { turn } = q.store;
    return Array.from({ length: EACH }, () => {
      engine.alarm();
      return turn.used.changes;
    });
  });
  expect(Math.max(...ended)).toBeLessThanOrEqual(8 + 4);
  expect(await queue.counts()).toEqual({ discarded: EACH + 8 });
});
