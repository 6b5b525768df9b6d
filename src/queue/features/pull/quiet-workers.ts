/**
 * Which workers get no jobs: those directed to be quiet or to terminate, and those that announced that they leave.
 *
 * The directory knows. A queue asks it once, when a worker that gives its name first fetches, and is notified of
 * changes from then on. So a fetch asks no other object. If a message is lost, the next reading corrects it.
 */

import { Backoff, isWithin } from '../../../durable/backoff';

const REFRESH_MS = 60_000;

export class QuietWorkers {
  private known: Set<string> | undefined;
  private readAt = 0;
  private changes = 0;
  private reading: Promise<void> | undefined;
  private readonly backoff: Backoff;

  /** @param read asks the directory for the ids of all quiet workers */
  constructor(
    private readonly read: () => Promise<string[]>,
    private readonly now: () => number,
  ) {
    this.backoff = new Backoff(now);
  }

  /** Must this worker get no jobs? Answers at once if that is known. */
  has(workerId: string): boolean | Promise<boolean> {
    if (this.known && isWithin(this.readAt, REFRESH_MS, this.now())) return this.known.has(workerId);
    // Work continues while the directory cannot be asked: a directive is a wish, a job is a promise.
    if (this.backoff.isResting) return this.hasNow(workerId);
    this.reading ??= this.refresh().finally(() => {
      this.reading = undefined;
    });
    return this.reading.then(() => this.hasNow(workerId));
  }

  hasNow(workerId: string): boolean {
    return this.known?.has(workerId) ?? false;
  }

  change(workerIds: readonly string[], silenced: boolean): void {
    this.changes++;
    for (const id of workerIds) {
      if (silenced) this.known?.add(id);
      else this.known?.delete(id);
    }
  }

  /** Everything was emptied, the directory too. */
  forget(): void {
    this.changes++;
    this.known = undefined;
  }

  private async refresh(): Promise<void> {
    for (;;) {
      const before = this.changes;
      const ids = await this.backoff.ask(this.read, (error) =>
        console.error('tocsin: directives could not be read', error),
      );
      if (ids === undefined) return;
      // A change that came meanwhile may be missing from the answer.
      if (before !== this.changes) continue;
      this.known = new Set(ids);
      this.readAt = this.now();
      return;
    }
  }
}
