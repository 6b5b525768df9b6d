/** Jobs of one transaction, priority and moment under one index entry. Changed jobs move out of their block. */
import { LIMIT } from '../../durable/sql';
import { RANK_BIT } from '../../job/ids';
import type { Block, NewBlock } from './block';
import { BlockTable, MAX_WINDOW } from './block-table';
import { nextIn, type Position, prioritiesIn, START } from './due-index';
import type { JobRow } from './job-row';

const END = Number.MAX_SAFE_INTEGER;

export class DueBlocks extends BlockTable {
  protected override readonly table = 'due_blocks';
  protected override readonly columns = 'first, span, gone, heads, priority, due_at';
  protected override readonly isJoined = false;
  override readonly owns = (key: number): boolean => key >= RANK_BIT;

  protected override insert({ first, span, jobs, priority, due_at, heads, data }: NewBlock): void {
    const insert = `INSERT INTO due_blocks (first, span, jobs, priority, due_at, heads, data)
      VALUES (?, ?, ?, ?, ?, ?, ?)`;
    this.sql.exec(insert, first, span, jobs, priority, due_at, heads, data).toArray();
  }

  priorities(): number[] {
    this.flush();
    return this.used ? prioritiesIn(this.sql, 'due_blocks') : [];
  }

  /** The first moment after `now` at which a block of this priority becomes available, epoch ms. */
  nextDue(priority: number, now: number): number | undefined {
    this.flush();
    return this.used ? nextIn(this.sql, 'due_blocks', priority, now) : undefined;
  }

  /** How many jobs of a priority that are not over become available after a moment and up to another, epoch ms. */
  countBetween(priority: number, after = START.at, until = END): number {
    const among = 'blocks.priority = ? AND blocks.due_at > ? AND blocks.due_at <= ?';
    return this.countAmong({ sql: among, bindings: [priority, after, until] }, ({ place }) => {
      const at = place.due_at as number;
      return place.priority === priority && at > after && at <= until;
    });
  }

  /** Keys by number, as {@link pages}, of jobs due up to a moment, or after it. @param when absent: any moment */
  pagesOf(from: number, ascending: boolean, size: number, when?: { until: number } | { after: number }) {
    if (!when) return this.pages(from, ascending, size);
    const among = 'until' in when ? 'due_at <= ?' : 'due_at > ?';
    return this.pages(from, ascending, size, {
      sql: among,
      bindings: ['until' in when ? when.until : when.after],
    });
  }

  /**
   * The jobs of a priority in the order of availability. Do not write meanwhile. @param after exclusive
   * @param until epoch ms; later ones are left out @param bodies are they needed?
   */
  *inTurn(priority: number, after: Position = START, until = END, bodies = true): Generator<JobRow> {
    this.flush();
    if (!this.used) return;
    // No job of a block was ever tried: it precedes all jobs of the same moment that were.
    let from = { at: after.at, key: after.attempt > 0 ? END : after.key };
    for (let window = 1; ; window = Math.min(4 * window, MAX_WINDOW)) {
      const blocks = this.nextInTurn(priority, from, until, window);
      for (const block of blocks) {
        if (block.left === 0) continue;
        if (!bodies) this.cache.keep(block, true);
        yield* this.rowsOf(block, from.at === block.place.due_at ? from.key + 1 : undefined, bodies);
      }
      const last = blocks.at(-1);
      if (!last) return;
      from = { at: last.place.due_at as number, key: last.end - 1 };
    }
  }

  /** The next blocks in turn; the first one may be that of `from` itself. */
  private nextInTurn(priority: number, from: { at: number; key: number }, until: number, limit: number): Block[] {
    const rows = [];
    if (from.at > START.at && from.at <= until) {
      // Seeks, because one comparison of the whole position would read all blocks of that moment again.
      const own = this.at(from.key + 1);
      if (own?.place.priority === priority && own.place.due_at === from.at && own.first <= from.key) return [own];
      const sameMoment = `priority = ? AND due_at = ? AND first > ? ORDER BY first ${LIMIT}`;
      rows.push(...this.select(sameMoment, priority, from.at, from.key, limit));
    }
    if (rows.length < limit) {
      const later = `priority = ? AND due_at > ? AND due_at <= ? ORDER BY due_at, first ${LIMIT}`;
      rows.push(...this.select(later, priority, from.at, until, limit - rows.length));
    }
    return this.build(rows);
  }
}
