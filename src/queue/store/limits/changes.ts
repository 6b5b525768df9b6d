/** Applies changes, and ends, of what operators or the deployment's code set for keys. */

import { writeMeta } from '../../../durable/sql';
import { differing, holds } from '../../../job/limits/overrides';
import { LIMIT_SCOPES, plainKey, scopedKey } from '../../../job/limits/policy';
import type { QueueDefaults } from '../../../settings';
import type { Configured, Stored } from '../parts';

/** The settings of keys differ from `before`: notes the keys concerned for the running operation. */
export function overridesChanged(q: Stored & Configured, before: QueueDefaults | undefined): void {
  const { defaults } = q.config;
  const keys = new Set([
    ...differing(before?.overrides, defaults?.overrides),
    ...differing(before?.limits, defaults?.limits),
  ]);
  for (const key of keys) {
    for (const scoped of LIMIT_SCOPES.map((scope) => scopedKey(key, scope))) {
      if (q.store.limiters.find(scoped)) q.store.limiters.touch(scoped);
    }
  }
}

/** Forgets ended overrides of these keys, or each object start would look at them. One row written. */
export function forgetEnded(q: Stored & Configured, keys: readonly string[], now: number): void {
  const { defaults } = q.config;
  if (!defaults?.overrides || keys.length === 0) return;
  const looked = new Set(keys.map(plainKey));
  const overrides = Object.fromEntries(
    Object.entries(defaults.overrides).filter(([key, override]) => !looked.has(key) || holds(override, now)),
  );
  const after = { ...defaults, overrides };
  writeMeta(q.store.sql, 'defaults', after);
  q.config.set(q.config.own, after);
}
