/**
 * Queues with something due, in case their own alarm could not be set: each reports its next due moment, and the
 * directory calls it an hour after that. Costs a row per newly active queue and per active hour; moments are rounded
 * up to share alarms.
 */
import { isPausedUntil } from '../durable/backoff';
import { inParallel } from '../durable/parallel';
import { errorDataOf } from '../durable/platform-errors';
import type { Schema } from '../durable/schema';
import { LOOK_AFTER_MS } from '../rpc/directory';

const ROUND_TO_MS = 15 * 60_000;

/** Queues called in one event. The next event continues. */
const MOST_AT_ONCE = 100;

/** Pauses before the next look, ms: it continues, or what failed is tried again. */
const PAUSE_MS = { next: 1_000, failed: 15 * 60_000 };

/** An alarm that is this late has been lost, ms: other objects may have lost theirs. */
const LOST_AFTER_MS = 10 * 60_000;

/** Prefix of the keys in the table `meta`. A version without this class ignores them. */
const KEY = 'due ';
/** The first key behind all of them. */
const END = 'due!';

export class DueQueues {
  /** The earliest moment, or one before it that has been put off since; undefined: not read yet. */
  private earliest: number | undefined;
  private restsUntil = 0;

  /** @param nextDue asks a queue when it is next due, epoch ms; the question wakes it */
  constructor(
    private readonly tables: Schema,
    private readonly nextDue: (queue: string) => Promise<number | null>,
  ) {}

  /** A queue is next due at `due`. @returns when the directory looks after it, epoch ms */
  report(queue: string, due: number, now: number): number {
    const wanted = momentAfter(due, now);
    const known = this.tables.fact<number>(KEY + queue);
    // An earlier look costs one call; a later one would leave the queue alone for too long.
    if (known !== undefined && known > now && known <= wanted + LOOK_AFTER_MS) return known;
    this.note(queue, wanted);
    return wanted;
  }

  forget(queue: string): void {
    this.note(queue, undefined);
  }

  /** When the next queue must be looked after, epoch ms. */
  due(now: number): number | undefined {
    const at = this.next();
    if (!Number.isFinite(at)) return undefined;
    return isPausedUntil(this.restsUntil, now, PAUSE_MS.failed) ? Math.max(at, this.restsUntil) : at;
  }

  /** Is the next look so late that alarms must have been lost? */
  isLate(now: number): boolean {
    return this.next() + LOST_AFTER_MS <= now && this.restsUntil === 0;
  }

  /** Looks after the queues whose moment has come, a bounded number. Never rejects. */
  async look(now: number): Promise<void> {
    const late = this.read(MOST_AT_ONCE).filter(({ at }) => at <= now);
    this.restsUntil = now + PAUSE_MS.next;
    this.earliest = undefined;
    await inParallel(late, async ({ queue, at }) => {
      try {
        const due = await this.nextDue(queue);
        // One that has reported meanwhile has a later moment.
        if (this.tables.fact<number>(KEY + queue) !== at) return;
        this.note(queue, due === null ? undefined : momentAfter(due, now));
      } catch (error) {
        if (!errorDataOf(error)?.retryable) console.error(`tocsin: queue ${queue} could not be looked after`, error);
        this.restsUntil = now + PAUSE_MS.failed;
      }
    });
  }

  private next(): number {
    if (!this.tables.exist()) return Number.POSITIVE_INFINITY;
    this.earliest ??= this.read(1)[0]?.at ?? Number.POSITIVE_INFINITY;
    return this.earliest;
  }

  private note(queue: string, at: number | undefined): void {
    if (!this.tables.exist()) return;
    this.tables.writeFact(KEY + queue, at);
    // Whether it was the earliest is not looked up: that reads the moments of all queues. The next look finds out.
    if (this.earliest !== undefined && at !== undefined) this.earliest = Math.min(this.earliest, at);
  }

  private read(most: number): { queue: string; at: number }[] {
    const query = `SELECT substr(key, ?) AS queue, CAST(value AS INTEGER) AS at FROM meta
      WHERE key >= ? AND key < ? ORDER BY at LIMIT ?`;
    return this.tables.rows<{ queue: string; at: number }>(query, KEY.length + 1, KEY, END, most);
  }
}

/** When a queue that is due at `due` is looked after. */
const momentAfter = (due: number, now: number): number =>
  Math.ceil((Math.max(due, now) + LOOK_AFTER_MS) / ROUND_TO_MS) * ROUND_TO_MS;
