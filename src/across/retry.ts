/** Retries what was refused only because something else is being decided. That usually takes a moment. */
import { ApiError } from '../job/errors';
import { isBeingDecided } from '../job/undecided';

/** The number of tries, and the unit of the pauses between; ms. */
const TRIES = 6;
const PAUSE_MS = 20;

/** The randomness and the clock of {@link untilDecided}. */
export interface Pauses {
  /** 0 ≤ x < 1. */
  random: () => number;
  wait: (ms: number) => Promise<void>;
}

const PAUSES: Pauses = { random: Math.random, wait: (ms) => scheduler.wait(ms) };

/**
 * Up to six attempts with random pauses of at most 40, 80, … 640 ms, so that two operations do not meet again.
 * @throws {ApiError} from the last attempt, or an earlier one that another attempt does not help
 */
export async function untilDecided<T>(attempt: () => Promise<T>, { random, wait }: Pauses = PAUSES): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      const isWorthIt = error instanceof ApiError && isBeingDecided(error.data);
      if (!isWorthIt || tries === TRIES) throw error;
      await wait(PAUSE_MS * 2 ** tries * random());
    }
  }
}
