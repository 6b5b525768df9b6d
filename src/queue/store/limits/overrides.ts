/**
 * Operators' settings of shared keys, else the code's, as this queue received them: part of the settings of all
 * queues, without rows of their own. The end of an override wakes the queue only while jobs wait for the key.
 */
import { holds, type LimitOverrides } from '../../../job/limits/overrides';
import type { LimitOverride } from '../../../job/limits/policy';
import { own } from '../../../job/own';
import type { KeySettings } from '../../../rpc/allowances';
import type { QueueDefaults } from '../../../settings';

export class Overrides {
  private overrides = new Map<string, LimitOverride>();
  private declared: LimitOverrides = {};
  private version = 0;
  /** When the override ends of keys that jobs wait for, as the queue calls them; epoch ms. */
  private readonly ends = new Map<string, number>();
  /** No override that jobs wait for ends before, epoch ms. */
  nextEnd = Number.POSITIVE_INFINITY;

  set(defaults: Pick<QueueDefaults, 'version' | 'overrides' | 'limits'> | undefined): void {
    this.overrides = new Map(Object.entries(defaults?.overrides ?? {}));
    this.declared = defaults?.limits ?? {};
    this.version = defaults?.version ?? 0;
  }

  get(key: string): LimitOverride | undefined {
    return this.overrides.get(key);
  }

  settingsOf(key: string): KeySettings {
    const override = this.overrides.get(key);
    const declared = own(this.declared, key);
    return { version: this.version, ...(override && { override }), ...(declared && { declared }) };
  }

  /** The override at `now` (epoch ms) of the key's own limits. */
  at(key: string, now: number): LimitOverride | undefined {
    const override = this.overrides.get(key);
    if (override && holds(override, now)) return override;
    return own(this.declared, key);
  }

  /** It is unknown which ends jobs wait for: claims find out again. */
  forgetEnds(): void {
    this.ends.clear();
    this.nextEnd = Number.POSITIVE_INFINITY;
  }

  /** Jobs wait for the key, whose override ends then (epoch ms). */
  awaitEnd(key: string, at: number): void {
    this.ends.set(key, at);
    this.nextEnd = Math.min(this.nextEnd, at);
  }

  /** Keys whose awaited end has come, at most `limit`. They are awaited no longer. */
  takeEnded(now: number, limit: number): string[] {
    if (now < this.nextEnd) return [];
    const ended = [...this.ends].filter(([, at]) => at <= now).slice(0, limit);
    for (const [key] of ended) this.ends.delete(key);
    this.nextEnd = Math.min(...this.ends.values(), Number.POSITIVE_INFINITY);
    return ended.map(([key]) => key);
  }
}
