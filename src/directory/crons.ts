/**
 * Which queue has the cron entry of a name; the directory fires nothing. A change is noted before it is made, with a
 * number and every queue that may have the entry, so that a change that was cut off is completed by the next one.
 */
import type { Schema } from '../durable/schema';
import type { CronPlace } from '../rpc/cron';

type Row = { queue: string; others: string; version: number };

export class CronPlaces {
  constructor(private readonly tables: Schema) {}

  /** Notes that `queue` will have the entry. @param now epoch ms; numbers say when they were given out */
  place(name: string, queue: string, now: number): CronPlace {
    return this.tables.transaction(() => {
      const before = this.find(name);
      const others = new Set([...(before?.others ?? []), ...(before ? [before.queue] : [])]);
      others.delete(queue);
      const place: CronPlace = { queue, others: [...others], version: this.nextVersion(now) };
      this.tables.put('cron_places', { name, ...place, others: JSON.stringify(place.others) });
      return place;
    });
  }

  find(name: string): CronPlace | null {
    const query = 'SELECT queue, others, version FROM cron_places WHERE name = ?';
    const [row] = this.tables.rows<Row>(query, name);
    return row ? { ...row, others: JSON.parse(row.others) as string[] } : null;
  }

  /** The change with this number is done. */
  confirm(name: string, version: number): void {
    const change = "UPDATE cron_places SET others = '[]' WHERE name = ? AND version = ? AND others <> '[]'";
    this.tables.rows(change, name, version);
  }

  /** Forgets a name without an entry, unless it was changed since. */
  drop(name: string, version: number): void {
    this.tables.rows('DELETE FROM cron_places WHERE name = ? AND version = ?', name, version);
  }

  /** Queues that may have entries, at most `limit`. */
  queues(limit: number): string[] {
    const query =
      'SELECT queue FROM cron_places UNION SELECT value FROM cron_places, json_each(cron_places.others) LIMIT ?';
    return this.tables.rows<{ queue: string }>(query, limit).map(({ queue }) => queue);
  }

  private nextVersion(now: number): number {
    const [last] = this.tables.rows<{ version: number }>('SELECT version FROM cron_version');
    const version = Math.max(now, (last?.version ?? 0) + 1);
    this.tables.put('cron_version', { id: 1, version });
    return version;
  }
}
