/** How the directory looks after objects whose alarms may be lost. */

/** From the moment at which a queue is due until the directory looks after it, at least, ms. */
export const LOOK_AFTER_MS = 3_600_000;

/** The same, at most, ms. A queue that is due earlier than that must report again. */
export const LONGEST_LOOK_AFTER_MS = 2.5 * LOOK_AFTER_MS;
