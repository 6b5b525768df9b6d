import { conflict } from '../errors';
import type { LimitOverride } from './policy';

export type LimitOverrides = Readonly<Record<string, LimitOverride>>;

/** Keys with an override at a time: every queue stores them all. */
export const MAX_OVERRIDES = 1000;

/** Does it hold at `now` (epoch ms)? */
export function holds({ expires_at }: LimitOverride, now: number): boolean {
  return expires_at === undefined || expires_at > now;
}

/** Those that hold at `now` (epoch ms). */
export function holding(overrides: LimitOverrides | undefined, now: number): LimitOverrides {
  return Object.fromEntries(Object.entries(overrides ?? {}).filter(([, override]) => holds(override, now)));
}

/** The overrides with one key's replaced, or removed (null). @throws {ApiError} 409 above {@link MAX_OVERRIDES} */
export function withOverride(overrides: LimitOverrides, key: string, override: LimitOverride | null): LimitOverrides {
  const after = new Map(Object.entries(overrides));
  if (override) after.set(key, override);
  else after.delete(key);
  if (after.size > MAX_OVERRIDES && after.size > Object.keys(overrides).length) {
    throw conflict(`${MAX_OVERRIDES} keys have an override already: remove one, or wait until one ends.`, {
      key,
      max_overrides: MAX_OVERRIDES,
    });
  }
  return Object.fromEntries(after);
}

export function differing(before: LimitOverrides | undefined, after: LimitOverrides | undefined): string[] {
  const [old, now] = [new Map(Object.entries(before ?? {})), new Map(Object.entries(after ?? {}))];
  const keys = new Set([...old.keys(), ...now.keys()]);
  return [...keys].filter((key) => JSON.stringify(old.get(key)) !== JSON.stringify(now.get(key)));
}
