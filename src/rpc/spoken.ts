/**
 * Queues that this isolate has spoken with a moment ago. They are awake, and may have changed by what was said: whoever looks at
 * numbers here asks them, and so sees what was done here before.
 */
import { onEmptied } from '../durable/memory';

/** An object that was spoken with stays in memory so long at least, ms. */
const AWAKE_MS = 10_000;

/** Names that are remembered; the oldest go first. */
const MAX_NAMES = 1_000;

/** When each was spoken with, epoch ms, the latest last. */
const spoken = new Map<string, number>();
onEmptied(() => spoken.clear());

/** This queue is being spoken with. */
export function noteSpoken(queue: string): void {
  spoken.delete(queue);
  spoken.set(queue, Date.now());
  if (spoken.size > MAX_NAMES) spoken.delete(spoken.keys().next().value as string);
}

/** Those of these queues that are awake for having been spoken with. @param now epoch ms */
export function spokenWith(queues: readonly string[], now: number): string[] {
  return queues.filter((queue) => {
    const at = spoken.get(queue);
    return at !== undefined && at <= now && now - at < AWAKE_MS;
  });
}
