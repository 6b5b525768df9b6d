import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { AlarmClock, alarmTime, earliest } from '../../src/durable/alarm-clock';

const moment = fc.option(fc.integer({ min: 0, max: 10_000 }), { nil: undefined });

describe('earliest', () => {
  it('lets an object sleep that has nothing due', () => {
    expect(earliest([])).toBeNull();
    expect(earliest([Number.POSITIVE_INFINITY, undefined])).toBeNull();
  });

  it('is the earliest of all moments', () => {
    fc.assert(
      fc.property(fc.array(moment), (due) => {
        const all = due.filter((at): at is number => at !== undefined);
        expect(earliest(due)).toBe(all.length === 0 ? null : Math.min(...all));
      }),
    );
  });
});

describe('alarmTime', () => {
  it('is never now, never past, never the millisecond of the alarm that runs, and never later than needed', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e4, noNaN: true }), fc.nat(1e4), fc.nat(1e4), (at, now, last) => {
        const time = alarmTime(at, now, last);
        expect(Number.isInteger(time)).toBe(true);
        expect(time).toBeGreaterThan(now);
        expect(time).not.toBe(last);
        expect(time).toBeGreaterThanOrEqual(at);
        // A last alarm that lies further ahead ran before the clock was set back: it is no reason to wait.
        if (last <= now + 5) expect(time).toBe(Math.max(Math.ceil(at), now + 1, last + 1));
        else expect(time).toBeLessThanOrEqual(Math.max(Math.ceil(at), now + 1) + 1);
      }),
    );
  });
});

/** A storage that remembers the alarm. */
function fakeStorage() {
  const set: number[] = [];
  return {
    set,
    setAlarm: async (time: number | Date) => void set.push(Number(time)),
    deleteAlarm: async () => undefined,
  };
}

describe('AlarmClock', () => {
  it('moves an alarm that is far away closer when something is due earlier', () => {
    const storage = fakeStorage();
    const clock = new AlarmClock(storage, null);
    clock.arm(3_600_000, 0);
    clock.arm(10_000, 5);
    expect(storage.set).toEqual([3_600_000, 10_000]);
    expect(clock.armedAt).toBe(10_000);
  });

  it('moves an alarm closer that was armed before the object was constructed', () => {
    const storage = fakeStorage();
    const clock = new AlarmClock(storage, 3_600_000);
    clock.arm(10_000, 5);
    expect(storage.set).toEqual([10_000]);
  });

  it('sets nothing when the armed alarm is early enough, because every alarm set is a billed row', () => {
    const storage = fakeStorage();
    const clock = new AlarmClock(storage, 1000);
    for (const at of [1000, 1001, 50_000]) clock.arm(at, 10);
    expect(storage.set).toEqual([]);
  });

  it('never sets an alarm for the millisecond of the one that runs, even if the clock stands still', () => {
    const storage = fakeStorage();
    const clock = new AlarmClock(storage, 1000);
    clock.fired(999);
    clock.arm(0, 999);
    expect(storage.set).toEqual([1001]);
  });

  it('arms as ever once the clock was set back, whenever the last alarm ran', () => {
    const storage = fakeStorage();
    const clock = new AlarmClock(storage, 3_600_000);
    clock.fired(3_600_000);
    clock.arm(5_000, 1_000);
    clock.fired(5_000);
    clock.arm(5_000, 5_000);
    expect(storage.set).toEqual([5_000, 5_001]);
  });

  it('arms again at once after an alarm that ran long before its time', () => {
    const storage = fakeStorage();
    const clock = new AlarmClock(storage, 3_600_000);
    clock.fired(1000);
    clock.arm(2000, 1000);
    expect(storage.set).toEqual([2000]);
  });

  it('arms an alarm again that should have fired long ago', () => {
    const storage = fakeStorage();
    const clock = new AlarmClock(storage, 1000);
    clock.arm(1000, 3000);
    expect(storage.set).toEqual([]);
    clock.arm(1000, 7000);
    expect(storage.set).toEqual([7001]);
  });

  it('ignores what is never due', () => {
    const storage = fakeStorage();
    new AlarmClock(storage, null).arm(Number.POSITIVE_INFINITY, 5);
    expect(storage.set).toEqual([]);
  });

  it('wakes at or before every moment it was given, in any history, and sets only alarms that can fire', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('arm' as const), after: fc.integer({ min: -5, max: 500 }) }),
      fc.record({ kind: fc.constant('pass' as const), ms: fc.nat(100) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let now = 1000;
        let stored: number | null = null;
        let running = 0;
        const wanted = new Set<number>();
        // The clock takes what its storage throws.
        const impossible: string[] = [];
        const clock = new AlarmClock(
          {
            setAlarm: async (time) => {
              const isLater = stored !== null && Number(time) >= stored;
              if (Number(time) <= Math.max(now, running) || isLater) impossible.push(`${time} at ${now}`);
              stored = Number(time);
            },
            deleteAlarm: async () => undefined,
          },
          null,
        );
        const fire = () => {
          running = stored as number;
          stored = null;
          clock.fired(now);
          for (const at of wanted) if (at <= now) wanted.delete(at);
          for (const at of wanted) clock.arm(at, now);
        };
        for (const action of steps) {
          if (action.kind === 'arm') {
            wanted.add(now + action.after);
            clock.arm(now + action.after, now);
          } else {
            const end = now + action.ms;
            while (stored !== null && stored <= end) {
              now = Math.max(now, stored);
              fire();
            }
            now = end;
          }
          for (const at of wanted) expect(stored).toBeLessThanOrEqual(Math.max(at, now + 1));
        }
        expect(impossible).toEqual([]);
      }),
    );
  });
});

describe('a storage that refuses alarms for a while', () => {
  afterEach(() => void vi.useRealTimers());

  /** Refuses until `heal` is called. */
  function failing(how: 'throws' | 'rejects') {
    const storage = fakeStorage();
    let fails = true;
    return {
      set: storage.set,
      tries: 0,
      deleteAlarm: storage.deleteAlarm,
      setAlarm(time: number | Date): Promise<void> {
        this.tries++;
        const error = new Error('no rows left');
        if (!fails) return storage.setAlarm(time);
        if (how === 'throws') throw error;
        return Promise.reject(error);
      },
      heal: () => {
        fails = false;
      },
    };
  }

  it.each(['throws', 'rejects'] as const)('is asked again by itself, less and less often, when it %s', async (how) => {
    vi.useFakeTimers({ now: 1_000 });
    const storage = failing(how);
    const clock = new AlarmClock(storage, null);
    clock.arm(5_000, 1_000);
    await vi.advanceTimersByTimeAsync(10 * 60_000);
    expect(clock.armedAt).toBeNull();
    expect(storage.tries).toBeLessThan(20);
    storage.heal();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(storage.set).toEqual([clock.armedAt]);
  });

  it('makes a transaction fail that cannot do without its alarm', () => {
    const clock = new AlarmClock(failing('throws'), null);
    expect(() => clock.mustArm(5_000, 1_000)).toThrow('no rows left');
    expect(clock.armedAt).toBeNull();
  });

  it('is not asked again once the object is emptied', async () => {
    vi.useFakeTimers({ now: 1_000 });
    const storage = failing('throws');
    const clock = new AlarmClock(storage, null);
    clock.arm(5_000, 1_000);
    await clock.clear();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(storage.tries).toBe(1);
  });
});

describe('work of an alarm that fails', () => {
  it('does not reject, and is done again in a minute', async () => {
    const storage = fakeStorage();
    const clock = new AlarmClock(storage, 1_000);
    const before = Date.now();
    await clock.ring(() => Promise.reject(new Error('died')));
    expect(storage.set).toEqual([clock.armedAt]);
    expect(clock.armedAt).toBeGreaterThanOrEqual(before + 60_000);
  });

  it('keeps the alarm that it has set before', async () => {
    const storage = fakeStorage();
    const clock = new AlarmClock(storage, null);
    await clock.ring(() => {
      clock.arm(Date.now() + 5_000, Date.now());
      throw new Error('died');
    });
    expect(storage.set).toHaveLength(1);
  });
});
