/**
 * Which workers are to get no jobs: those told to go quiet or to terminate, and those that said they are leaving.
 *
 * The directory knows; a queue asks it once, when a worker that gives its name first fetches, and is told of changes from
 * then on. So a fetch asks nobody. Should a message be lost, the next reading heals it.
 */

import { Backoff, isWithin } from '../../../durable/backoff';

/** After this long the directory is asked again, ms. */
const REFRESH_MS = 60_000;

export class QuietWorkers {
  private known: Set<string> | undefined;
  private readAt = 0;
  private changes = 0;
  private reading: Promise<void> | undefined;
  private readonly backoff: Backoff;

  /** @param read asks the directory for the ids of all silenced workers */
  constructor(
    private readonly read: () => Promise<string[]>,
    private readonly now: () => number,
  ) {
    this.backoff = new Backoff(now);
  }

  /** Is this worker to get no jobs? Answers at once where that is known. */
  has(workerId: string): boolean | Promise<boolean> {
    if (this.known && isWithin(this.readAt, REFRESH_MS, this.now())) return this.known.has(workerId);
    // Work goes on while the directory cannot be asked: a directive is a wish, a job is a promise.
    if (this.backoff.isResting) return this.hasNow(workerId);
    this.reading ??= this.refresh().finally(() => {
      this.reading = undefined;
    });
    return this.reading.then(() => this.hasNow(workerId));
  }

  /** As far as is known now. */
  hasNow(workerId: string): boolean {
    return this.known?.has(workerId) ?? false;
  }

  /** These workers are silenced from now on, or no longer. */
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
      // A change that came meanwhile may or may not be part of the answer.
      if (before !== this.changes) continue;
      this.known = new Set(ids);
      this.readAt = this.now();
      return;
    }
  }
}
