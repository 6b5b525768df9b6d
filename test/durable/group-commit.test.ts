/** Operations that share a transaction: as many as their work allows, the others after them. */
import { describe, expect, it } from 'vitest';
import { AlarmClock } from '../../src/durable/alarm-clock';
import { Committer, type Memory } from '../../src/durable/group-commit';
import { conflict } from '../../src/job/errors';

const MIB = 1024 * 1024;

/** A committer over nothing, and the groups that it has committed. */
function committing() {
  const groups: string[][] = [];
  let group: string[] = [];
  const written = { work: 0, writes: 0 };
  const nothing = () => undefined;
  const memory: Memory = {
    ...{ wanted: Number.POSITIVE_INFINITY, changes: 0, written },
    ...{ load: nothing, flush: nothing, finish: nothing },
    mark: () => ({ gathered: nothing, rest: nothing }),
    publish: () => {
      groups.push(group);
      group = [];
    },
  };
  const storage = { transactionSync: <T>(run: () => T) => run(), sync: async () => undefined };
  const clock = new AlarmClock({ setAlarm: async () => undefined, deleteAlarm: async () => undefined }, null);
  const hooks = { now: () => 0, before: nothing, steps: () => [], follow: nothing, committed: nothing };
  const committer = new Committer(storage, clock, memory, hooks);
  /** Runs an operation that reads and writes so much. */
  const run = (name: string, work: number) =>
    committer.run(() => {
      written.work += work;
      group.push(name);
      return name;
    });
  return { committer, groups, run };
}

describe('a group of operations', () => {
  it('is everything that waits, where that is little', async () => {
    const { groups, run } = committing();
    const names = Array.from({ length: 1000 }, (_, n) => `n${n}`);
    expect(await Promise.all(names.map((name) => run(name, 100)))).toEqual(names);
    expect(groups).toEqual([names]);
  });

  it('ends where its work is enough: the others follow, each in its turn, before those that come later', async () => {
    const { groups, run } = committing();
    const asked = ['a', 'b', 'c', 'd', 'e'].map((name) => run(name, 5 * MIB));
    await asked[0];
    asked.push(run('later', 1));
    expect(await Promise.all(asked)).toEqual(['a', 'b', 'c', 'd', 'e', 'later']);
    expect(groups.flat()).toEqual(['a', 'b', 'c', 'd', 'e', 'later']);
    expect(groups.map(({ length }) => length)).toEqual([2, 2, 2]);
  });

  it('always has its first operation, and what one of them throws concerns no other', async () => {
    const { committer, groups, run } = committing();
    const large = run('large', 100 * MIB);
    const broken = committer.run(() => {
      throw new Error('broken');
    });
    const small = run('small', 1);
    await expect(broken).rejects.toThrow('broken');
    expect([await large, await small]).toEqual(['large', 'small']);
    expect(groups).toEqual([['large'], ['small']]);
  });

  it('leaves no request waiting when the transaction itself fails', async () => {
    const { committer, run } = committing();
    const { memory } = committer as unknown as { memory: Memory };
    memory.flush = () => {
      memory.flush = () => undefined;
      throw new Error('storage failed');
    };
    const [first, second] = [run('first', 100 * MIB), run('second', 1)];
    await expect(first).rejects.toThrow('storage failed');
    expect(await second).toBe('second');
  });

  it('is answered after the end of its turn, which comes once what follows from the commit is done', async () => {
    const { committer, run } = committing();
    const { memory, hooks } = committer as unknown as { memory: Memory; hooks: { committed(): void } };
    const order: string[] = [];
    hooks.committed = () => order.push('followed');
    memory.finish = () => order.push('finished');
    await run('first', 1).then(() => order.push('answered'));
    expect(order).toEqual(['followed', 'finished', 'answered']);
  });

  it('gets the error of the end of its turn, in each of its requests', async () => {
    const { committer, run } = committing();
    const { memory } = committer as unknown as { memory: Memory };
    memory.finish = () => {
      memory.finish = () => undefined;
      throw new Error('storage failed');
    };
    const [first, second] = [run('first', 1), run('second', 1)];
    await expect(first).rejects.toThrow('storage failed');
    await expect(second).rejects.toThrow('storage failed');
    expect(await run('later', 1)).toBe('later');
  });
});

describe('an operation that is alone in its transaction', () => {
  /** How the transactions and savepoints ended, the innermost first. */
  function alone(operation: (written: { writes: number }) => void) {
    const { committer } = committing();
    const { memory, storage } = committer as unknown as {
      memory: Memory & { written: { writes: number } };
      storage: { transactionSync<T>(run: () => T): T };
    };
    const ends: string[] = [];
    memory.load = () => ends.push('rebuilt');
    storage.transactionSync = (run) => {
      try {
        const value = run();
        ends.push('kept');
        return value;
      } catch (error) {
        ends.push('undone');
        throw error;
      }
    };
    return { done: committer.run(() => operation(memory.written)), ends };
  }

  it('needs no savepoint', async () => {
    const { done, ends } = alone(() => undefined);
    await done;
    expect(ends).toEqual(['kept']);
  });

  it('leaves the rest of the transaction as it is when it is refused before any change', async () => {
    const { done, ends } = alone(() => {
      throw conflict('No.', {});
    });
    await expect(done).rejects.toThrow('No.');
    expect(ends).toEqual(['kept']);
  });

  it('takes the whole transaction back when it fails after a change, or by a defect', async () => {
    for (const error of [conflict('No.', {}), new Error('No.')]) {
      const { done, ends } = alone((written) => {
        if (error.name === 'ApiError') written.writes++;
        throw error;
      });
      await expect(done).rejects.toThrow('No.');
      expect(ends).toEqual(['undone', 'rebuilt']);
    }
  });
});
