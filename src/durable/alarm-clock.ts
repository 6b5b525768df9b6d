/**
 * When an object wakes by itself: at the earliest due moment, by its one alarm.
 *
 * Rules the platform forces on the alarm, each learned from a measurement:
 *  - an alarm set for the very millisecond of the running alarm, or for a past one, is stored but never fires: every
 *    alarm is set strictly after now and after the last one;
 *  - each `setAlarm` is a billed row: it is called only when the new time is earlier than the armed one;
 *  - an alarm can be lost: whenever the object is touched, an alarm that should have fired is armed again.
 */

/** The earliest of these moments (epoch ms), or null when there is none and the object may sleep. */
export function earliest(moments: readonly (number | undefined)[]): number | null {
  let next = Number.POSITIVE_INFINITY;
  for (const moment of moments) if (moment !== undefined && moment < next) next = moment;
  return Number.isFinite(next) ? next : null;
}

/** An armed alarm that is this late has been lost, ms. */
const LOST_AFTER_MS = 5_000;

/** An alarm may run this much before its time by the object's own clock, which stands still between events. */
const EARLY_MS = 5;

/**
 * The time for `setAlarm` of something due at `at`: never now, never past, never the last one again. If the last one is
 * in the future, the clock was set back since: then only its own millisecond is left out.
 */
export function alarmTime(at: number, now: number, last: number): number {
  const time = Math.max(Math.ceil(at), now + 1);
  return time === last || (time < last && last <= now + EARLY_MS) ? last + 1 : time;
}

/** The object's one alarm. Keeps the armed time in memory so that `setAlarm` is called only when it must be. */
export class AlarmClock {
  /** The moment of the alarm that ran last, or runs. */
  private last = 0;

  constructor(
    private readonly storage: Pick<DurableObjectStorage, 'setAlarm' | 'deleteAlarm'>,
    /** The armed time as read at construction, epoch ms. */
    private armed: number | null,
  ) {}

  get armedAt(): number | null {
    return this.armed;
  }

  /** Something is due at `at`: makes sure that an alarm fires at or before it. */
  arm(at: number, now: number): void {
    if (!Number.isFinite(at)) return;
    const lost = this.armed !== null && this.armed + LOST_AFTER_MS <= now;
    // Only a new plan knows the work of a lost alarm, so one is made at once.
    const time = alarmTime(lost ? now : at, now, this.last);
    if (this.armed !== null && !lost && this.armed <= time) return;
    this.armed = time;
    // Part of the running transaction if there is one; the output gate holds answers until it is durable.
    void this.storage.setAlarm(time);
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

  /** Clears the alarm. */
  async clear(): Promise<void> {
    this.armed = null;
    await this.storage.deleteAlarm();
  }
}
