/** Bounds how long a body may take to arrive: a client must not hold a request open by sending next to nothing. */
import { type ApiError, refusal } from '../../job/errors';

/** Time for any body, ms. */
const FIRST_MS = 10_000;
/** A second more for each this many bytes that have arrived. */
const BYTES_A_SECOND = 64 * 1024;
/** Time for the largest, ms: less than a holder of room counts as alive (`room.ts`). */
const LONGEST_MS = 90_000;
/** Interval between looks at the clock, ms. */
const LOOK_MS = 1_000;

/** Watches a body arrive. Close it when the body has arrived, or is no longer wanted. */
export class Arrival {
  private readonly begun = Date.now();
  private waited = 0;
  private bytes = 0;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private readonly late: Promise<never>;

  constructor() {
    this.late = new Promise((_, refuse) => this.watch(refuse));
    // Absent while nothing is awaited.
    this.late.catch(() => undefined);
  }

  /** The result of `read`. @throws {ApiError} 408: the body takes too long */
  next<T>(read: Promise<T>): Promise<T> {
    return Promise.race([read, this.late]);
  }

  /** Further bytes have arrived. */
  add(bytes: number): void {
    this.bytes += bytes;
  }

  /** Waits for something here. The time that it takes is not the client's fault. */
  async pause<T>(waiting: Promise<T>): Promise<T> {
    const since = Date.now();
    const value = await waiting;
    this.waited += Date.now() - since;
    return value;
  }

  close(): void {
    clearTimeout(this.timer);
  }

  private watch(refuse: (error: ApiError) => void): void {
    this.timer = setTimeout(() => {
      const allowed = Math.min(FIRST_MS + (this.bytes / BYTES_A_SECOND) * 1_000, LONGEST_MS);
      if (Date.now() - this.begun - this.waited < allowed) this.watch(refuse);
      else refuse(tooSlow(this.bytes, Math.round(allowed)));
    }, LOOK_MS);
  }
}

function tooSlow(bytes: number, allowed: number): ApiError {
  const message = `The body took too long: after ${allowed} ms only ${bytes} bytes of it had arrived.`;
  return refusal(408, 'timeout', message, {
    retryable: true,
    details: { received_bytes: bytes, allowed_ms: allowed },
    hint: `Send the body at once: it has ${FIRST_MS} ms, and a second for each ${BYTES_A_SECOND} bytes, at most ${LONGEST_MS} ms.`,
  });
}
