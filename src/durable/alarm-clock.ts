/**
 * When must this object wake by itself? The planner is a pure function of what is stored and the time; the clock below
 * it owns the one alarm.
 *
 * Rules the platform forces on the alarm, each learned from a measurement:
 *  - an alarm set for the very millisecond of the alarm that is running, or for one already past, is stored but never
 *    fires: every alarm is set strictly after now and after the last one;
 *  - each `setAlarm` is a billed row: it is called only when the new time is earlier than the armed one;
 *  - an alarm can be lost: whenever the object is touched, an alarm that should have fired is armed again.
 */

/** What is due in a queue, epoch ms; absent means nothing of that kind. */
export interface DueMoments {
  /** The next scheduled or retryable job. */
  job?: number | undefined;
  /** The first lease or execution limit to end. */
  lease?: number | undefined;
  /** The first waiting job to expire. */
  expiry?: number | undefined;
  /** The first ended job to prune. */
  prune?: number | undefined;
  /** A key that limits jobs must be looked at: a window opens. */
  limit?: number | undefined;
  /** A stopped target may be tried again. */
  target?: number | undefined;
  /** An undecided batch over several queues must be asked about. */
  batch?: number | undefined;
  /** The first cron entry to fire. */
  cron?: number | undefined;
  /** An operation on many jobs, or the deletion of the queue, goes on. */
  operation?: number | undefined;
  /** Workflows are to be told of the ends of their jobs. */
  workflow?: number | undefined;
  /** Work that could be pushed right now but was not. */
  push?: number | undefined;
}

/** The earliest due moment, or null when the queue may sleep. */
export function planWake(due: DueMoments): number | null {
  let next = Number.POSITIVE_INFINITY;
  for (const moment of Object.values(due)) if (moment !== undefined && moment < next) next = moment;
  return Number.isFinite(next) ? next : null;
}

/** The time to hand to `setAlarm` for something due at `at`: never now, never the past, never the last one again. */
export function alarmTime(at: number, now: number, last: number): number {
  return Math.max(Math.ceil(at), now + 1, last + 1);
}

/** An armed alarm that is this late has been lost, ms. */
const LOST_AFTER_MS = 5_000;

/** An alarm may run this much before its time by the object's own clock, which stands still between events. */
const EARLY_MS = 5;

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
    // What a lost alarm stood for is known only to a new plan, so that one is made at once.
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
