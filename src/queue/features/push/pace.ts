/**
 * Which job types end quickly. A call that stays open, so that its jobs can be stopped one by one, costs a tenth more
 * than other calls. Short jobs are not worth it.
 */

/** A call that took no longer than this was quick, ms. */
const QUICK_MS = 500;
/** This many quick calls in a row make a type quick; one slow call ends that. */
const QUICK_CALLS = 8;
/** A job that may run longer than this (the usual limit) can always be stopped, ms. */
const USUAL_TIMEOUT_MS = 30_000;

export class Pace {
  /** Quick calls in a row, by the announced entry that stands for a type. */
  private readonly quick = new Map<string, number>();

  note(entries: ReadonlySet<string>, tookMs: number): void {
    for (const entry of entries) {
      if (tookMs > QUICK_MS) this.quick.delete(entry);
      else this.quick.set(entry, Math.min(QUICK_CALLS, (this.quick.get(entry) ?? 0) + 1));
    }
  }

  /** Should a call with jobs of these entries stay open? @param timeoutMs the execution limit of its jobs */
  staysOpen(entries: ReadonlySet<string>, timeoutMs: number): boolean {
    if (timeoutMs > USUAL_TIMEOUT_MS) return true;
    return [...entries].some((entry) => (this.quick.get(entry) ?? 0) < QUICK_CALLS);
  }

  forget(): void {
    this.quick.clear();
  }
}
