/** When a delivery is tried again, and when its receiver is given up. Pure: time and chance are parameters. */
import { LONGEST_ASKED_MS } from '../../job/retry/delay';

export interface Attempted {
  /** Of the answer, if there was one. */
  status?: number;
  /** Why there was none, or why it does not count. */
  error?: string;
  /** `Retry-After` of the answer, ms. */
  retryAfterMs?: number;
  refused?: true;
}

/** What follows from it. `failed`: the receiver does not want it; `dead`: it was tried often enough. */
export type DeliveryVerdict =
  | { state: 'delivered' | 'dead' }
  | { state: 'failed'; isGone?: true }
  | { state: 'pending'; delayMs: number };

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Pauses after each attempt that failed, before chance adds to them; ms. */
export const DELAYS_MS: readonly number[] = [30_000, 2 * MINUTE, 10 * MINUTE, HOUR, 4 * HOUR, 12 * HOUR, 24 * HOUR];

/** Chance makes a pause longer by up to this part of it, so that what failed together does not come back together. */
const JITTER = 0.2;

/** A receiver that has only failed for this time is disabled, ms. */
export const DISABLE_AFTER_MS = 5 * 24 * HOUR;

/** What becomes of a delivery. @param tries this one included @param random in [0, 1) */
export function verdictOn(attempt: Attempted, tries: number, random: number): DeliveryVerdict {
  const { status = 0, retryAfterMs = 0, refused } = attempt;
  if (status >= 200 && status < 300) return { state: 'delivered' };
  if (status === 410) return { state: 'failed', isGone: true };
  if (refused || (status >= 400 && status < 500 && status !== 429)) return { state: 'failed' };
  const delay = DELAYS_MS[tries - 1];
  if (delay === undefined) return { state: 'dead' };
  const asked = status === 429 || status === 503 ? Math.min(retryAfterMs, LONGEST_ASKED_MS) : 0;
  return { state: 'pending', delayMs: Math.round(Math.max(delay * (1 + JITTER * random), asked)) };
}
