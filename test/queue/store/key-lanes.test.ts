/** Lanes of keys in memory: order, what is forgotten when there is too much, and that it is read again. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compare, type Position } from '../../../src/queue/store/due-index';
import { KeyLanes } from '../../../src/queue/store/limits/lanes';
import { MemoryBudget, SIZES } from '../../../src/queue/store/sizes';
import { histories } from '../../support/long';

const at = (key: number): Position => ({ at: Math.floor(key / 10), attempt: 0, key });
const every = Number.POSITIVE_INFINITY;

/** Takes all jobs of open lanes, in order; their keys. */
function takeAll(lanes: KeyLanes): number[] {
  const taken: number[] = [];
  for (let lane = lanes.first; lane; lane = lanes.first) {
    taken.push(lane.key);
    lanes.shift(lane);
  }
  return taken;
}

describe('jobs that wait for their keys', () => {
  it('are taken in order from open lanes, each once, however often they were read', () => {
    const lanes = new KeyLanes(compare);
    for (const key of [30, 12, 11, 10, 31, 11, 30]) lanes.add(key < 20 ? 'a' : 'b', at(key));
    lanes.add('closed', at(1));
    expect(lanes.first).toBeUndefined();
    expect([lanes.opens('b', every), lanes.opens('a', every), lanes.opens('a', every)]).toEqual([true, true, false]);
    expect(takeAll(lanes)).toEqual([10, 11, 12, 30, 31]);
    expect([lanes.isEmpty, lanes.isClosed('closed'), lanes.isClosed('a')]).toEqual([false, true, false]);
  });

  it('are as many as the lane was opened for', () => {
    const lanes = new KeyLanes(compare);
    for (let key = 0; key < 5; key++) lanes.add('a', at(key));
    lanes.opens('a', 2);
    expect(takeAll(lanes)).toEqual([0, 1]);
    expect(lanes.isClosed('a')).toBe(true);
  });

  it('wait again when the next selection begins, if they were set aside', () => {
    const lanes = new KeyLanes(compare);
    lanes.add('a', at(1));
    lanes.add('a', at(2));
    lanes.opens('a', every);
    lanes.setAside(lanes.first as NonNullable<typeof lanes.first>);
    expect(lanes.lowest).toBe(1);
    expect(lanes.first?.key).toBe(2);
    expect(lanes.begin()).toBeUndefined();
    expect(takeAll(lanes)).toEqual([1, 2]);
  });

  it('are never lost, nor taken in another order within their key, however few of them are remembered', () => {
    const jobs = fc.uniqueArray(fc.integer({ min: 0, max: 200 }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(jobs, fc.integer({ min: 1, max: 12 }), fc.infiniteStream(fc.nat(4)), (keys, size, choices) => {
        const left = new Set(keys);
        const lanes = new KeyLanes(compare, new MemoryBudget({ ...SIZES, memory: 4 * size, memoryEach: 4 }));
        const nameOf = (key: number) => `key ${key % 5}`;
        const takenOf = new Map<string, number[]>();
        let cursor = -1;
        for (let step = 0; left.size > 0; step++) {
          expect(step).toBeLessThan(5_000);
          cursor = Math.min(cursor, lanes.begin()?.key ?? cursor);
          // The consumer reads all that it has not read; nothing has room.
          for (const key of [...left].sort((a, b) => a - b)) {
            if (key > cursor && !lanes.has(nameOf(key), at(key))) lanes.add(nameOf(key), at(key));
          }
          cursor = 200;
          for (const key of left) expect(lanes.lowest).toBeLessThanOrEqual(key);
          const name = `key ${choices.next().value}`;
          if ([...left].some((key) => nameOf(key) === name)) expect(lanes.opens(name, every)).toBe(true);
          const lane = lanes.first;
          if (!lane) continue;
          takenOf.set(lane.name, [...(takenOf.get(lane.name) ?? []), lane.key]);
          left.delete(lane.key);
          lanes.shift(lane);
          if (lanes.first) lanes.close(lanes.first);
        }
        for (const [name, taken] of takenOf) {
          expect(taken).toEqual(keys.filter((key) => nameOf(key) === name).sort((a, b) => a - b));
        }
      }),
      { numRuns: histories(200) },
    );
  });
});
