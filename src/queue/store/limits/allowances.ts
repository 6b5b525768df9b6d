/** What this queue holds of shared allowances, in memory ({@link Holder}); failed starts are lost, never used twice. */
import { Holder, type Situation } from '../../../allowance/holder';
import { getOrInsert } from '../../../job/get-or-insert';
import { plainKey, scopeOf } from '../../../job/limits/policy';
import type { Overrides } from './overrides';

const NONE: readonly string[] = [];

export class Allowances {
  private readonly holders = new Map<string, Holder>();
  /** Keys of which something may have to be asked. */
  private readonly asking = new Set<string>();

  constructor(
    private readonly overrides: Overrides,
    private readonly running: (key: string) => number,
  ) {}

  /** What is held of this key; undefined: it counts in this queue alone. */
  of(key: string): Holder | undefined {
    if (scopeOf(key) === 'queue') return undefined;
    return getOrInsert(this.holders, key, () => new Holder());
  }

  keys(): Iterable<string> {
    return this.holders.keys();
  }

  situation(key: string, now: number, running = this.running(key)): Situation {
    return { settings: this.overrides.settingsOf(plainKey(key)), running, now };
  }

  mayAsk(key: string): void {
    this.asking.add(key);
  }

  /** The keys that have to ask, or to give back, now. @param isClosed the queue hands out nothing */
  open(now: number, isClosed: boolean): readonly string[] {
    if (this.asking.size === 0) return NONE;
    const open: string[] = [];
    for (const key of this.asking) {
      const holder = this.holders.get(key);
      if (holder) holder.rests = isClosed;
      if (holder?.hasToAsk(this.situation(key, now))) open.push(key);
      else if (!holder?.needs) this.asking.delete(key);
    }
    return open;
  }

  /** When the first key must be looked at, epoch ms. */
  get nextLook(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const key of this.asking) next = Math.min(next, this.holders.get(key)?.lookAt ?? next);
    return next;
  }

  due(now: number): string[] {
    return [...this.asking].filter((key) => (this.holders.get(key)?.lookAt ?? Number.POSITIVE_INFINITY) <= now);
  }

  drop(key: string): void {
    this.holders.delete(key);
    this.asking.delete(key);
  }
}
