/** Measures how long the event loop was blocked: nothing is received or sent meanwhile. */

import type { LogEntry } from '../handler/journal';

/** How often it looks, and the delay from which it reports, in ms. */
const EVERY_MS = 250;
const LATE_MS = 1_000;

/** Jobs named in the report of a blocked event loop, at most. */
const MAX_NAMED = 5;

interface Running {
  job: { id: string; type: string };
  /** Epoch ms. */
  leasedUntil: number;
}

const timeOf = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

/** The message for the worker's owner. @param isKept did heartbeats continue meanwhile? */
export function blockedError(ms: number, held: readonly Running[], isKept: boolean): Error {
  const named = held.slice(0, MAX_NAMED).map(({ job: { type, id } }) => `${type} ${id}`);
  const more = held.length > MAX_NAMED ? ` and ${held.length - MAX_NAMED} more` : '';
  const what = `The event loop was blocked for ${timeOf(ms)} while these jobs ran: ${named.join(', ')}${more}.`;
  const isLost = held.some(({ leasedUntil }) => Date.now() >= leasedUntil);
  if (isLost) return new Error(`${what} The lease of one has run out: give such jobs a longer visibilityTimeoutMs.`);
  return new Error(what + (isKept ? ' Heartbeats continued.' : ' No heartbeat could be sent meanwhile.'));
}

export function blockedLine(ms: number): LogEntry {
  const message = `the event loop of the worker was blocked for ${timeOf(ms)}`;
  return { at: Date.now(), level: 'warn', message, fields: { blocked_ms: Math.round(ms) } };
}

export class LoopWatch<After> {
  #timer: ReturnType<typeof setInterval> | null = null;
  #due = Number.POSITIVE_INFINITY;

  /** @param blocked gets the time that the loop was blocked, in ms @param turned called while the loop turns */
  constructor(
    private readonly blocked: (ms: number, after?: After) => void,
    private readonly turned: () => void,
  ) {}

  start(): void {
    this.#due = performance.now() + EVERY_MS;
    this.#timer = setInterval(() => this.look(), EVERY_MS);
  }

  /** @param after what was done without a pause before */
  look(after?: After): void {
    const now = performance.now();
    const late = now - this.#due;
    if (after !== undefined && late <= LATE_MS) return;
    this.#due = now + EVERY_MS;
    if (late > LATE_MS) this.blocked(late, after);
    this.turned();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#due = Number.POSITIVE_INFINITY;
  }
}
