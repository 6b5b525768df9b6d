/**
 * Which queue has the cron entry of a name; the directory fires nothing. A change is noted before it is made, with a
 * number and every queue that may have the entry, so that a change that was cut off is completed by the next one.
 */
import type { Schema } from '../durable/schema';
import { put, rows } from '../durable/sql';
import type { CronPlace } from '../rpc/cron';

type Row = { queue: string; others: string; version: number };

export class CronPlaces {
  constructor(
    private readonly storage: Pick<DurableObjectStorage, 'sql' | 'transactionSync'>,
    private readonly tables: Schema,
  ) {}

  /** Notes that `queue` will have the entry. @param now epoch ms; numbers say when they were given out */
  place(name: string, queue: string, now: number): CronPlace {
    this.tables.create();
    return this.storage.transactionSync(() => {
      const before = this.find(name);
      const others = new Set([...(before?.others ?? []), ...(before ? [before.queue] : [])]);
      others.delete(queue);
      const place: CronPlace = { queue, others: [...others], version: this.nextVersion(now) };
      put(this.storage.sql, 'cron_places', { name, ...place, others: JSON.stringify(place.others) });
      return place;
    });
  }

  find(name: string): CronPlace | null {
    if (!this.tables.exist()) return null;
    const query = 'SELECT queue, others, version FROM cron_places WHERE name = ?';
    const [row] = rows<Row>(this.storage.sql, query, name);
    return row ? { ...row, others: JSON.parse(row.others) as string[] } : null;
  }

  /** The change with this number is done. */
  confirm(name: string, version: number): void {
    if (!this.tables.exist()) return;
    const change = "UPDATE cron_places SET others = '[]' WHERE name = ? AND version = ? AND others <> '[]'";
    rows(this.storage.sql, change, name, version);
  }

  /** Forgets a name without an entry, unless it was changed since. */
  drop(name: string, version: number): void {
    if (!this.tables.exist()) return;
    rows(this.storage.sql, 'DELETE FROM cron_places WHERE name = ? AND version = ?', name, version);
  }

  /** Queues that may have entries, at most `limit`. */
  queues(limit: number): string[] {
    if (!this.tables.exist()) return [];
    const query =
      'SELECT queue FROM cron_places UNION SELECT value FROM cron_places, json_each(cron_places.others) LIMIT ?';
    return rows<{ queue: string }>(this.storage.sql, query, limit).map(({ queue }) => queue);
  }

  private nextVersion(now: number): number {
    const [last] = rows<{ version: number }>(this.storage.sql, 'SELECT version FROM cron_version');
    const version = Math.max(now, (last?.version ?? 0) + 1);
    put(this.storage.sql, 'cron_version', { id: 1, version });
    return version;
  }
}
