/** When a connection may be made again: soon after one that broke off, and rarely where none came about. */
import { Backoff } from '../handler/timing';

/** Pauses before the next try when no connection came about, in ms: the server may not know sockets. */
const FIRST_RETRY_MS = 15_000;
const LONGEST_RETRY_MS = 600_000;

/** Pauses before a connection that broke off is made again, in ms. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

/** A connection that lasted this long counts as stable, ms. */
const GOOD_AFTER_MS = 30_000;

export class Redial {
  #openedAt = 0;
  /** No try before then, epoch ms. */
  #nextTry = 0;
  readonly #retries = new Backoff(FIRST_RETRY_MS, LONGEST_RETRY_MS);
  readonly #pauses = new Backoff(FIRST_PAUSE_MS, LONGEST_PAUSE_MS);

  /** Connects, unless that was tried a short time ago. @param dial undefined: there can be no connection */
  async open<T>(dial: () => Promise<T | undefined>): Promise<T | undefined> {
    if (Date.now() < this.#nextTry) return undefined;
    try {
      const connection = await dial();
      this.#openedAt = Date.now();
      this.#nextTry = connection ? 0 : Number.POSITIVE_INFINITY;
      return connection;
    } catch {
      this.#nextTry = Date.now() + this.#retries.next();
      return undefined;
    }
  }

  never(): void {
    this.#nextTry = Number.POSITIVE_INFINITY;
  }

  lost(): void {
    if (Date.now() - this.#openedAt > GOOD_AFTER_MS) this.#pauses.reset();
    this.#nextTry = Date.now() + this.pause();
  }

  /** How long to wait before something refused over a connection is tried again, in ms. */
  pause(): number {
    return this.#pauses.next();
  }
}
