/** The one clock of the tests: virtual for all that reads the time, alarms rung by hand; and waiting in real time. */
import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { afterEach, beforeEach, vi } from 'vitest';

/** A Saturday noon, so far in the future that no real alarm fires. An alarm then runs only when the test rings it. */
export const T0 = Date.UTC(2040, 8, 1, 12);
export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export const iso = (ms: number) => new Date(ms).toISOString();

/** What reads the clock sees the time set here; SQLite and the real alarm do not. */
export const clock = {
  /** Sets the clock, epoch ms. */
  set(time: number): void {
    vi.setSystemTime(time);
  },

  /** Sets the clock to `ms` after {@link T0}. */
  at(ms: number): void {
    clock.set(T0 + ms);
  },

  /** Lets `ms` pass, without any alarm. */
  advance(ms: number): void {
    clock.set(Date.now() + ms);
  },

  /** Gives the real clock back after each test of the file. */
  restoreAfterEach(): void {
    afterEach(() => {
      vi.useRealTimers();
    });
  },

  /** Each test of the file begins at {@link T0}; the real clock comes back after it. */
  startAtT0(): void {
    beforeEach(() => clock.set(T0));
    clock.restoreAfterEach();
  },

  /** When the object's alarm is set for, epoch ms. */
  armedAt(stub: DurableObjectStub): Promise<number | null> {
    return runInDurableObject(stub, (_, { storage }) => storage.getAlarm());
  },

  /** Runs the object's alarm if one is set, whatever its time. @returns whether one was set */
  ring(stub: DurableObjectStub): Promise<boolean> {
    return runDurableObjectAlarm(stub);
  },

  /** Lets time pass up to `time`: the alarm rings at every moment that it is set for. */
  async passTo(stub: DurableObjectStub, time: number): Promise<void> {
    for (let rings = 0; ; rings++) {
      const armed = await clock.armedAt(stub);
      if (armed === null || armed > time) return clock.set(time);
      if (rings > 500) throw new Error('the alarm rings without end');
      clock.set(armed);
      await clock.ring(stub);
    }
  },

  /** The clock jumps to `time`; the alarm rings once, late, if it was set for then or before. */
  async jumpTo(stub: DurableObjectStub, time: number): Promise<void> {
    clock.set(time);
    const armed = await clock.armedAt(stub);
    if (armed !== null && armed <= time) await clock.ring(stub);
  },
};

/** How long something expected may take before a test gives up, ms: many times what it takes, because a machine may be busy. */
const DEADLINE_MS = 60_000;

// Taken at load: a test may set the clock of everything else, and a deadline is about real time.
const realTime = performance.now.bind(performance);
const realTimer = setTimeout;

/**
 * Asks again and again, in real time, until `check` answers something other than undefined or false.
 * @param what names what was waited for, in the error when the deadline passes
 */
export async function until<T>(
  check: () => T | undefined | false | Promise<T | undefined | false>,
  what: string | (() => string),
  deadlineMs: number = DEADLINE_MS,
): Promise<T> {
  const end = realTime() + deadlineMs;
  for (;;) {
    const value = await check();
    if (value !== undefined && value !== false) return value;
    if (realTime() > end) throw new Error(`waited ${deadlineMs} ms for ${typeof what === 'string' ? what : what()}`);
    await new Promise((resolve) => realTimer(resolve, 5));
  }
}
