/**
 * The platform allows 32 Worker invocations for each request or alarm. Every call to a handler counts, so an event may
 * start 30; the rest waits for the next event.
 */
export const CALLS_PER_EVENT = 30;

export class CallBudget {
  private left: number;

  constructor(calls = CALLS_PER_EVENT) {
    this.left = calls;
  }

  get remaining(): number {
    return this.left;
  }

  /** Takes one call. Answers false when none is left. */
  take(): boolean {
    if (this.left === 0) return false;
    this.left--;
    return true;
  }
}
