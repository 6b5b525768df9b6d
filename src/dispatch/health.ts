/**
 * Should a target be called? Five delivery errors in a row stop it for a minute: the target was not there or refused
 * the call; failing jobs do not count. Then one trial decides. The stop is stored, so that a restart does not lift it.
 */

/** Delivery errors in a row that stop a target. */
export const STOP_AFTER_ERRORS = 5;
/** How long a target stays stopped, ms. */
export const STOP_FOR_MS = 60_000;
/** Pause after the first delivery error, ms; doubled after each further one. */
const FIRST_PAUSE_MS = 100;

/** The stored part of a stopped target. */
export interface StoppedTarget {
  name: string;
  /** Epoch ms of the trial. */
  until: number;
}

export class TargetHealth {
  private errors = 0;
  private until = 0;
  private stopped = false;
  private trialRunning = false;

  /** Restores a target that was stopped before this object restarted. */
  restore(until: number): void {
    this.stopped = true;
    this.errors = STOP_AFTER_ERRORS;
    this.until = until;
  }

  get isStopped(): boolean {
    return this.stopped;
  }

  /** May a call start now? */
  allows(now: number): boolean {
    return now >= this.until && !(this.stopped && this.trialRunning);
  }

  /** When a call may start again, if not now; epoch ms. */
  resumesAt(now: number): number | undefined {
    return now < this.until ? this.until : undefined;
  }

  /** A call starts. While the target is stopped it is the trial. */
  started(): void {
    if (this.stopped) this.trialRunning = true;
  }

  /** The trial is over, even if its outcome is unknown. */
  trialEnded(): void {
    this.trialRunning = false;
  }

  /** The target took the call. Returns true when this ends a stop. */
  succeeded(): boolean {
    const resumed = this.stopped;
    this.errors = 0;
    this.until = 0;
    this.stopped = false;
    this.trialRunning = false;
    return resumed;
  }

  /** The target was not there, or refused. Returns true when this stops it. */
  failed(now: number): boolean {
    this.errors++;
    this.trialRunning = false;
    if (this.errors < STOP_AFTER_ERRORS) {
      this.until = now + FIRST_PAUSE_MS * 2 ** (this.errors - 1);
      return false;
    }
    const stops = !this.stopped;
    this.stopped = true;
    this.until = now + STOP_FOR_MS;
    return stops;
  }
}
