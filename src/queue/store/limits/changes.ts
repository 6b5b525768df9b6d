/** What operators or the deployment's code say for keys has changed, or has ended. */

import { writeMeta } from '../../../durable/sql';
import { differing, holds } from '../../../job/limits/overrides';
import type { QueueDefaults } from '../../../job/settings';
import type { Configured, Stored } from '../parts';

/** What is said for keys is other than `before`: the keys that this concerns are seen to with the running operation. */
export function overridesChanged(q: Stored & Configured, before: QueueDefaults | undefined): void {
  const { defaults } = q.config;
  const keys = new Set([
    ...differing(before?.overrides, defaults?.overrides),
    ...differing(before?.limits, defaults?.limits),
  ]);
  for (const key of keys) if (q.store.limiters.find(key)) q.store.limiters.touch(key);
}

/**
 * Forgets the overrides of these keys that have ended. Else they would be looked at again, for the sake of the jobs that
 * wait, whenever the object starts. One row written.
 */
export function forgetEnded(q: Stored & Configured, keys: readonly string[], now: number): void {
  const { defaults } = q.config;
  if (!defaults?.overrides || keys.length === 0) return;
  const looked = new Set(keys);
  const overrides = Object.fromEntries(
    Object.entries(defaults.overrides).filter(([key, override]) => !looked.has(key) || holds(override, now)),
  );
  const after = { ...defaults, overrides };
  writeMeta(q.store.sql, 'defaults', after);
  q.config.set(q.config.own, after);
}
