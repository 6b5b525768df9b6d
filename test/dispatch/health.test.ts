import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pauseAfter, STOP_AFTER_ERRORS, STOP_FOR_MS, TargetHealth } from '../../src/dispatch/health';

const T = 1_700_000_000_000;

/** A target stopped at T. */
function stopped(): TargetHealth {
  const health = new TargetHealth();
  for (let n = 0; n < STOP_AFTER_ERRORS; n++) health.failed(T);
  return health;
}

describe('the health of a target', () => {
  it('pauses after each delivery error, longer each time', () => {
    const health = new TargetHealth();
    const pauses = [1, 2, 3, 4].map(() => {
      expect(health.failed(T)).toBe(false);
      expect(health.isStopped).toBe(false);
      return (health.resumesAt(T) as number) - T;
    });
    expect(pauses).toEqual([100, 200, 400, 800]);
    expect(health.allows(T + 799)).toBe(false);
    expect(health.allows(T + 800)).toBe(true);
  });

  it('stops with the fifth delivery error in a row, and says so once', () => {
    const health = new TargetHealth();
    expect([1, 2, 3, 4, 5, 6].map(() => health.failed(T))).toEqual([false, false, false, false, true, false]);
    expect(health.isStopped).toBe(true);
    expect(health.resumesAt(T)).toBe(T + STOP_FOR_MS);
  });

  it('pauses no longer because the clock was set back', () => {
    const health = stopped();
    expect(health.allows(T - 1_000)).toBe(true);
    expect(health.resumesAt(T - 1_000)).toBeUndefined();
    expect(health.isStopped).toBe(true);
  });

  it('counts errors in a row only: a call that was taken starts over', () => {
    const health = new TargetHealth();
    for (let n = 0; n < 20; n++) {
      expect(health.failed(T)).toBe(false);
      if (n % 4 === 3) expect(health.succeeded()).toBe(false);
    }
    expect(health.isStopped).toBe(false);
  });

  it('allows one trial after the stop, and no second one beside it', () => {
    const health = stopped();
    expect(health.allows(T + STOP_FOR_MS - 1)).toBe(false);
    expect(health.allows(T + STOP_FOR_MS)).toBe(true);
    health.started();
    expect(health.allows(T + STOP_FOR_MS)).toBe(false);
    health.trialEnded();
    expect(health.allows(T + STOP_FOR_MS)).toBe(true);
  });

  it('stays stopped for another minute when the trial fails', () => {
    const health = stopped();
    health.started();
    expect(health.failed(T + STOP_FOR_MS)).toBe(false);
    expect(health.resumesAt(T + STOP_FOR_MS)).toBe(T + 2 * STOP_FOR_MS);
    expect(health.allows(T + 2 * STOP_FOR_MS)).toBe(true);
  });

  it('is restored when the trial succeeds, with one event', () => {
    const health = stopped();
    health.started();
    expect(health.succeeded()).toBe(true);
    expect(health.succeeded()).toBe(false);
    expect(health.allows(T)).toBe(true);
    expect(health.failed(T)).toBe(false);
  });

  it('is stopped still after a restart', () => {
    const health = new TargetHealth();
    health.restore({ until: T + 5_000 });
    expect(health.isStopped).toBe(true);
    expect(health.allows(T + 4_999)).toBe(false);
    expect(health.allows(T + 5_000)).toBe(true);
    health.started();
    expect(health.failed(T + 5_000)).toBe(false);
    expect(health.resumesAt(T + 5_000)).toBe(T + 5_000 + STOP_FOR_MS);
  });

  it('says since when it is in trouble, when it was tried last, and why; until a call is taken', () => {
    const health = new TargetHealth();
    expect(health.trouble).toBeUndefined();
    health.failed(T, 'gone');
    health.failed(T + 200, 'gone still');
    expect(health.trouble).toEqual({ since: T, triedAt: T + 200, error: 'gone still' });
    health.succeeded();
    expect(health.trouble).toBeUndefined();
  });

  it('tells of a stop stored by an earlier release when it was tried last', () => {
    const health = new TargetHealth();
    health.restore({ until: T + STOP_FOR_MS });
    expect(health.trouble).toMatchObject({ since: T, triedAt: T });
    health.restore({ until: T + STOP_FOR_MS, since: T - 9, triedAt: T - 1, error: 'gone' });
    expect(health.trouble).toEqual({ since: T - 9, triedAt: T - 1, error: 'gone' });
  });

  it('may be tried at once when an operator says so, and is stopped again when that fails', () => {
    const health = stopped();
    health.tryNow();
    expect(health.allows(T)).toBe(true);
    expect(health.isStopped).toBe(true);
    health.started();
    expect(health.allows(T)).toBe(false);
    expect(health.failed(T)).toBe(false);
    expect(health.resumesAt(T)).toBe(T + STOP_FOR_MS);
  });

  it('never stays down for longer than on a developer’s machine, however often it failed', () => {
    expect([1, 2, 3, 4, 5, 50].map((errors) => pauseAfter(errors, 1_000))).toEqual([100, 200, 400, 800, 1_000, 1_000]);
    const health = new TargetHealth(1_000);
    let now = T;
    for (let n = 0; n < 50; n++) {
      health.failed(now);
      expect((health.resumesAt(now) as number) - now).toBeLessThanOrEqual(1_000);
      now += 1_000;
      expect(health.allows(now)).toBe(true);
    }
  });

  it('whatever happens: stops exactly at five errors in a row, and never pauses for more than a minute', () => {
    const step = fc.record({ ok: fc.boolean(), after: fc.integer({ min: 0, max: 100_000 }) });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const health = new TargetHealth();
        let now = T;
        let errors = 0;
        for (const { ok, after } of steps) {
          now += after;
          errors = ok ? 0 : errors + 1;
          const wasStopped = health.isStopped;
          health.started();
          expect(ok ? health.succeeded() : health.failed(now)).toBe(ok ? wasStopped : errors === STOP_AFTER_ERRORS);
          expect(health.isStopped).toBe(errors >= STOP_AFTER_ERRORS);
          expect((health.resumesAt(now) ?? now) - now).toBeLessThanOrEqual(STOP_FOR_MS);
          expect(health.allows(now + STOP_FOR_MS)).toBe(true);
        }
      }),
    );
  });
});
