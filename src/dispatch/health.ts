/** Circuit breaker of a target: five delivery errors in a row (no failed jobs) stop it for a minute, then one trial. */

import { isPausedUntil } from '../durable/backoff';

export const STOP_AFTER_ERRORS = 5;
export const STOP_FOR_MS = 60_000;
/** Pause after the first delivery error, ms; doubled after each further one. */
const FIRST_PAUSE_MS = 100;

/** The last errors of a target that has not taken a call since. Times in epoch ms. */
export interface TargetTrouble {
  since: number;
  /** The last of them. */
  triedAt: number;
  /** What the last one was. */
  error: string;
}

/** The stored part of a stopped target. Rows of earlier releases have only the first two members. */
export interface StoppedTarget extends Partial<TargetTrouble> {
  name: string;
  /** Epoch ms of the trial. */
  until: number;
}

/** The pause after `errors` delivery errors in a row, ms. @param longest limit, ms; short in development */
export function pauseAfter(errors: number, longest: number = STOP_FOR_MS): number {
  const pause = errors < STOP_AFTER_ERRORS ? FIRST_PAUSE_MS * 2 ** (errors - 1) : STOP_FOR_MS;
  return Math.min(pause, longest);
}

export class TargetHealth {
  private errors = 0;
  private until = 0;
  private stopped = false;
  private trialRunning = false;
  private lastTrouble: TargetTrouble | undefined;

  constructor(private readonly longestPauseMs: number = STOP_FOR_MS) {}

  /** Restores a target that was stopped before this object restarted. */
  restore({ until, since, triedAt, error }: Omit<StoppedTarget, 'name'>): void {
    this.stopped = true;
    this.errors = STOP_AFTER_ERRORS;
    this.until = until;
    const tried = triedAt ?? until - STOP_FOR_MS;
    this.lastTrouble = { since: since ?? tried, triedAt: tried, error: error ?? 'The target could not be reached.' };
  }

  /** What is wrong with the target; undefined once it has taken a call. */
  get trouble(): Readonly<TargetTrouble> | undefined {
    return this.lastTrouble;
  }

  /** An operator wants it tried: the next call may start at once. A stop lasts until that call is taken. */
  tryNow(): void {
    this.until = 0;
  }

  get isStopped(): boolean {
    return this.stopped;
  }

  allows(now: number): boolean {
    return this.resumesAt(now) === undefined && !(this.stopped && this.trialRunning);
  }

  /** When a call may start again, if not now; epoch ms. */
  resumesAt(now: number): number | undefined {
    return isPausedUntil(this.until, now, STOP_FOR_MS) ? this.until : undefined;
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
    this.lastTrouble = undefined;
    this.stopped = false;
    this.trialRunning = false;
    return resumed;
  }

  /** The target was not there, or refused. Returns true when this stops it. @param error what it was, for humans */
  failed(now: number, error = 'The target could not be reached.'): boolean {
    this.errors++;
    this.trialRunning = false;
    this.lastTrouble = { since: this.lastTrouble?.since ?? now, triedAt: now, error };
    this.until = now + pauseAfter(this.errors, this.longestPauseMs);
    if (this.errors < STOP_AFTER_ERRORS) return false;
    const stops = !this.stopped;
    this.stopped = true;
    return stops;
  }
}
