/** How the directory looks after objects whose alarms may be lost. */

/** From the moment at which a queue is due until the directory looks after it, at least, ms. */
export const LOOK_AFTER_MS = 3_600_000;

/** The same, at most, ms. A queue that is due earlier than that must report again. */
export const LONGEST_LOOK_AFTER_MS = 2.5 * LOOK_AFTER_MS;

/** The part of a queue's interface by which it is looked after. */
export interface LookedAfterApi {
  /** When it next has work of its own, epoch ms; null: never. The question wakes it, so it arms its alarm. */
  nextDue(): Promise<number | null>;
}

/** The same of every object of the directory's class. */
export interface RevivedApi {
  /** Arms its alarm for what is due, if that was lost. @returns whether queues are looked after here */
  revive(): Promise<boolean>;
}
