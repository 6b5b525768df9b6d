/**
 * Queues of an earlier release took client-chosen ids without noting them in shards: lists them, once per queue, in
 * bounded turns. Until then an unknown id may still exist.
 */
import { derived, type MessageKind } from '../durable/outbox-relay';
import type { Schema } from '../durable/schema';
import type { IdPlace } from '../rpc/ids';

const AT_ONCE = 10;

export interface ListingHost {
  /** The next ids after this one that clients chose in a queue; none: that was all. */
  chosenIds(queue: string, after: string): Promise<string[]>;
  noteIds(places: IdPlace[]): Promise<unknown>;
}

export class IdListing {
  readonly messages: MessageKind<void>;
  /** How far a queue was read. Only in memory: noting an id again does no harm. */
  private readonly readTo = new Map<string, string>();
  /** Queues up to this route were begun in this pass. */
  private from = -1;

  constructor(
    private readonly host: ListingHost,
    private readonly tables: Schema,
  ) {
    this.messages = derived({ kind: 'ids of', open: () => this.open(), deliver: (queue) => this.listNext(queue) });
  }

  get left(): number {
    return this.tables.count('SELECT count(*) AS n FROM queues WHERE ids_listed = 0');
  }

  /** Those that were begun, and the next ones. */
  private open(): string[] {
    const next = this.next();
    if (next.length === 0 && this.from >= 0) this.from = -1;
    return [...new Set([...this.readTo.keys(), ...(next.length > 0 ? next : this.next())])];
  }

  private next(): string[] {
    const some = 'SELECT name FROM queues WHERE ids_listed = 0 AND route > ? ORDER BY route LIMIT ?';
    return this.tables.rows<{ name: string }>(some, this.from, AT_ONCE).map(({ name }) => name);
  }

  private async listNext(queue: string): Promise<void> {
    try {
      const ids = await this.host.chosenIds(queue, this.readTo.get(queue) ?? '');
      const last = ids.at(-1);
      if (last !== undefined) {
        await this.host.noteIds(ids.map((id) => ({ id, queue })));
        this.readTo.set(queue, last);
        return;
      }
    } catch (error) {
      this.passOver(queue);
      throw error;
    }
    this.readTo.delete(queue);
    this.tables.rows('UPDATE queues SET ids_listed = 1 WHERE name = ?', queue);
  }

  /** A queue that cannot be reached does not delay those behind it. */
  private passOver(queue: string): void {
    this.readTo.delete(queue);
    const [row] = this.tables.rows<{ route: number }>('SELECT route FROM queues WHERE name = ?', queue);
    this.from = Math.max(this.from, row?.route ?? -1);
  }
}
