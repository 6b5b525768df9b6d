/**
 * Announced types whose concurrency is used up. The target's cursor passes their jobs, so that they hide no other type,
 * however many wait. A cursor of their own leads on to them when one of theirs has ended.
 */

import type { Stored } from '../../store/parts';
import type { Scan } from '../../store/scan';

export class DeferredEntries {
  private readonly entries = new Set<string>();

  /** @param target id of the target that announced them */
  constructor(private readonly target: string) {}

  get size(): number {
    return this.entries.size;
  }

  has(entry: string): boolean {
    return this.entries.has(entry);
  }

  /** The entries, the longest waiting ones first. */
  all(): string[] {
    return [...this.entries];
  }

  /** From here on its jobs are found by its own cursor. @param scan the target's cursor, which has passed none yet */
  add(q: Stored, entry: string, scan: Scan): void {
    this.entries.add(entry);
    this.scanOf(q, entry).copy(scan);
  }

  /** How far the jobs of an entry are taken. */
  scanOf(q: Stored, entry: string): Scan {
    return q.store.cursors.ofTarget(this.nameOf(entry));
  }

  /** No job of it is left that the target's cursor has passed. */
  remove(q: Stored, entry: string): void {
    this.entries.delete(entry);
    q.store.cursors.push.delete(this.nameOf(entry));
  }

  /** The announcement no longer holds: the target's cursor starts over. */
  clear(q: Stored): void {
    if (this.entries.size === 0) return;
    for (const entry of this.entries) this.remove(q, entry);
    q.store.cursors.ofTarget(this.target).reset(q.store.leases.head);
  }

  private nameOf(entry: string): string {
    return `${this.target} ${entry}`;
  }
}
