/**
 * Dead letters on their way to another queue: one fact of `meta` for each, from the decision until the job is gone. All of
 * them are in memory; there are rarely any.
 */

import { writeMeta } from '../../durable/meta';
import type { Override } from '../../rpc/operations';

const PREFIX = 'move:';

/** What was decided about a dead letter. */
export interface Move {
  /** Of the job's row. */
  key: number;
  /** Names the decision for the target. */
  name: string;
  /** The queue it goes to. */
  target: string;
  /** What changes about it. */
  override: Override;
  /** When it was decided, epoch ms. */
  at: number;
}

export class MoveTable {
  private open = new Map<number, Move>();

  constructor(private readonly sql: SqlStorage) {}

  /** Rebuilds memory from what is stored. */
  load(meta: ReadonlyMap<string, unknown>): void {
    this.open = new Map();
    for (const [name, value] of meta) {
      if (!name.startsWith(PREFIX)) continue;
      const move = value as Move;
      this.open.set(move.key, move);
    }
  }

  get size(): number {
    return this.open.size;
  }

  /** What was decided about the job with this key. */
  of(key: number): Move | undefined {
    return this.open.get(key);
  }

  all(): Move[] {
    return [...this.open.values()];
  }

  /** One row written. */
  note(move: Move): void {
    writeMeta(this.sql, PREFIX + move.key, move);
    this.open.set(move.key, move);
  }

  /** One row written. */
  forget(key: number): void {
    if (!this.open.delete(key)) return;
    writeMeta(this.sql, PREFIX + key, undefined);
  }
}
