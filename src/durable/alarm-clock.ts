/**
 * When an object wakes by itself: at the earliest due moment, by its one alarm. Measured rules of the platform:
 * - an alarm for the millisecond of the running alarm, or the past, never fires: alarms are set strictly later;
 * - each `setAlarm` is a billed row: it is called only for an earlier time;
 * - an alarm can be lost: an overdue one is armed again whenever the object is touched;
 * - a throwing `alarm()` is given up after six tries: {@link AlarmClock.ring} never rejects;
 * - setting an alarm is a write and may fail: retried from memory, then `src/directory/due-queues.ts` takes over.
 */
import { foreverFrom } from '../job/retention';
import { errorDataOf } from './platform-errors';

/** The earliest of these moments (epoch ms), or null when there is none and the object may sleep. */
export function earliest(moments: readonly (number | undefined)[]): number | null {
  let next = Number.POSITIVE_INFINITY;
  for (const moment of moments) if (moment !== undefined && moment < next) next = moment;
  return Number.isFinite(next) ? next : null;
}

/** An armed alarm that is this late has been lost, ms. */
const LOST_AFTER_MS = 5_000;

/** Pauses before an alarm that could not be set is set again, ms: doubled each time. */
const AGAIN_MS = { first: 1_000, longest: 60_000 };

/** An alarm may run this much before its time by the object's own clock, which stands still between events. */
const EARLY_MS = 5;

/**
 * The time for `setAlarm`: never now, past or the last one again. If the last is in the future, the clock was set
 * back: then only its own millisecond is left out.
 */
export function alarmTime(at: number, now: number, last: number): number {
  const time = Math.max(Math.ceil(at), now + 1);
  return time === last || (time < last && last <= now + EARLY_MS) ? last + 1 : time;
}

export class AlarmClock {
  /** The moment of the alarm that ran last, or runs. */
  private last = 0;
  /** Sets what could not be set. */
  private again: ReturnType<typeof setTimeout> | undefined;
  private missed = Number.POSITIVE_INFINITY;
  private failures = 0;

  constructor(
    private readonly storage: Pick<DurableObjectStorage, 'setAlarm' | 'deleteAlarm'>,
    /** The armed time as read at construction, epoch ms. */
    private armed: number | null,
  ) {}

  get armedAt(): number | null {
    return this.armed;
  }

  /** Something is due at `at`: makes sure that an alarm fires at or before it. Never throws: it tries again. */
  arm(at: number, now: number): void {
    try {
      this.mustArm(at, now);
    } catch (error) {
      this.refused(at, error);
    }
  }

  /** As {@link arm}, in a transaction that must fail without its alarm. @throws what the storage throws */
  mustArm(at: number, now: number): void {
    // Also what is kept for ever has a moment.
    if (!(at < foreverFrom(now))) return;
    const lost = this.armed !== null && this.armed + LOST_AFTER_MS <= now;
    // Only a new plan knows the work of a lost alarm, so one is made at once.
    const time = alarmTime(lost ? now : at, now, this.last);
    if (this.armed !== null && !lost && this.armed <= time) return;
    // Part of the running transaction if there is one; the output gate holds answers until it is durable.
    const set = this.storage.setAlarm(time);
    this.armed = time;
    set.then(
      () => {
        this.failures = 0;
      },
      (error) => {
        if (this.armed === time) this.armed = null;
        this.refused(time, error);
      },
    );
  }

  /** The alarm has fired: does its work. Never rejects; failures are retried after a minute or on a touch. */
  async ring(work: () => unknown): Promise<void> {
    const { armed } = this;
    try {
      await work();
    } catch (error) {
      if (!errorDataOf(error)) console.error('tocsin: the work of an alarm failed and is tried again', error);
      const now = Date.now();
      if (this.armed === armed) this.fired(now);
      this.arm(now + AGAIN_MS.longest, now);
    }
  }

  private refused(at: number, error: unknown): void {
    this.missed = Math.min(this.missed, at);
    if (this.again !== undefined) return;
    const known = errorDataOf(error);
    if (this.failures === 0)
      console.error('tocsin: an alarm could not be set and is tried again', known?.message ?? error);
    const pause = Math.min(AGAIN_MS.longest, AGAIN_MS.first * 2 ** this.failures++);
    this.again = setTimeout(() => {
      const { missed } = this;
      this.stopTrying();
      this.arm(missed, Date.now());
    }, pause);
  }

  private stopTrying(): void {
    if (this.again !== undefined) clearTimeout(this.again);
    this.again = undefined;
    this.missed = Number.POSITIVE_INFINITY;
  }

  /** `alarm()` has been called: nothing is armed any more. */
  fired(now: number): void {
    const early = this.armed !== null && this.armed <= now + EARLY_MS ? this.armed : now;
    this.last = Math.max(now, early);
    this.armed = null;
  }

  /** The stored alarm is unknown: the next `arm` must set it. */
  forget(): void {
    this.armed = null;
  }

  /** A transaction was rolled back, and with it the alarm: it is armed as before. */
  restore(armed: number | null): void {
    this.armed = armed;
  }

  async clear(): Promise<void> {
    this.armed = null;
    this.stopTrying();
    await this.storage.deleteAlarm();
  }
}
