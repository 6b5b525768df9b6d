/** Queues that this isolate has just called: awake and perhaps changed, so readers of numbers here ask them. */
import { onEmptied } from '../durable/memory';

/** An object stays in memory for at least this long after a call, ms. */
const AWAKE_MS = 10_000;

/** Names that are remembered; the oldest go first. */
const MAX_NAMES = 1_000;

/** When each was called, epoch ms, the latest last. */
const called = new Map<string, number>();
onEmptied(() => called.clear());

export function noteAwake(queue: string): void {
  called.delete(queue);
  called.set(queue, Date.now());
  if (called.size > MAX_NAMES) called.delete(called.keys().next().value as string);
}

/** Those of these queues that are awake because of a recent call. @param now epoch ms */
export const awakeAmong = (queues: readonly string[], now: number): string[] =>
  queues.filter((queue) => {
    const at = called.get(queue);
    return at !== undefined && at <= now && now - at < AWAKE_MS;
  });
