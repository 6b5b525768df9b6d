/** Which due fires happen: the one on time, and missed ones (platform down, late alarm) by policy. */
import { firesBetween, lastFire, nextFire, type Schedule } from './schedule';

/** What happens to missed fires: drop them, let the last one stand for all, or catch up, up to a bound. */
export const MISSED_POLICIES = ['skip', 'fire_once', 'fire_all'] as const;
export type MissedPolicy = (typeof MISSED_POLICIES)[number];

/** A fire later than this was missed, ms. Alarms may be that late when the platform moves an object. */
export const ON_TIME_MS = 60_000;

/** The fires to make and to drop. Times in epoch ms. */
export interface DueFires {
  fires: number[];
  /** The first and the last dropped fire. */
  dropped?: { from: number; until: number };
  /** The next fire after all of these. */
  next: number | undefined;
}

/** Decides about the fires from `due` (the first not handled, at most `now`) to `now`. @param maxCatchup at least 1 */
export function dueFires(
  schedule: Schedule,
  due: number,
  now: number,
  policy: MissedPolicy,
  maxCatchup: number,
): DueFires {
  const last = lastFire(schedule, due, now);
  const next = nextFire(schedule, last);
  if (policy === 'fire_all') {
    const fires = [due, ...firesBetween(schedule, due, now, maxCatchup - 1)];
    const after = nextFire(schedule, fires.at(-1) ?? due);
    const dropped = after !== undefined && after <= now ? { dropped: { from: after, until: last } } : {};
    return { fires, ...dropped, next };
  }
  if (policy === 'skip' && now - last > ON_TIME_MS) return { fires: [], dropped: { from: due, until: last }, next };
  if (due === last) return { fires: [last], next };
  return { fires: [last], dropped: { from: due, until: lastFire(schedule, due, last - 1) }, next };
}
