/** Minutes of the past, as time passes without events: no event means nothing happened. */
import type { Minute, Throughput } from '../../../contract/stats';
import { useNow } from '../../core/clock';
import type { QueueItem } from './types';

export const MINUTE_MS = 60_000;

export const useMinute = (): number => Math.floor(useNow() / MINUTE_MS) * MINUTE_MS;

/** As many points as there were, the last of them that of `end`: in a time without events nothing happened. */
export function slid(points: readonly Minute[], end: number, periodMs = MINUTE_MS): readonly Minute[] {
  const last = Date.parse(points.at(-1)?.timestamp ?? '');
  const passed = Math.min(points.length, Math.floor((end - last) / periodMs));
  if (!(passed > 0)) return points;
  const empty = Array.from({ length: passed }, (_, index) => ({
    timestamp: new Date(end - (passed - 1 - index) * periodMs).toISOString(),
    ...{ processed: 0, failed: 0, enqueued: 0 },
  }));
  return [...points.slice(passed), ...empty];
}

/** Rates of the last minute; none for a queue without events for two. */
export function ratesOf({ throughput, recent }: QueueItem, minute: number): Throughput {
  const [before, last] = slid(recent, minute).slice(-2);
  const isQuiet = [before, last].every((point) => !point || point.processed + point.failed + point.enqueued === 0);
  return isQuiet ? { processed_per_minute: 0, failed_per_minute: 0, enqueued_per_minute: 0 } : throughput;
}

const RATE_MINUTES = 5;

/** Failed attempts of all, 0…1, in the last minutes; of these queues together. */
export function errorRateOf(queues: readonly QueueItem[], minute: number): number {
  let [failed, ended] = [0, 0];
  for (const { recent } of queues) {
    for (const point of slid(recent, minute).slice(-RATE_MINUTES)) {
      failed += point.failed;
      ended += point.failed + point.processed;
    }
  }
  return ended === 0 ? 0 : failed / ended;
}
