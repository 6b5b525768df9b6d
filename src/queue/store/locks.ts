/**
 * Jobs locked until an operation over several queues is decided: `held`, out of every rank and index. Their former
 * place is with the batch's share and here, for readers.
 */
import { column, parseStored } from '../../durable/sql';
import { type JobRow, STATE } from './job-row';

/** Former place of a locked job. */
export type LockedPlace = Pick<JobRow, 'key' | 'state' | 'due_at' | 'ended_at' | 'attempt'> & {
  /** What it held up before, where groups are served in strict order. Absent: its row has it. */
  holds_group?: string | null;
};

export class LockTable {
  private readonly places = new Map<number, LockedPlace>();

  constructor(private readonly sql: SqlStorage) {}

  /** Rebuilds memory from storage. Reads the batches that are not finished; there is hardly ever one. */
  load(): void {
    this.places.clear();
    const shares = column<string>(this.sql, "SELECT data FROM outbox WHERE kind = 'share'");
    for (const place of shares.flatMap(lockedIn)) this.places.set(place.key, place);
    if (this.places.size === 0) return;
    // A job cancelled despite its lock is not locked.
    const held = `SELECT key FROM jobs WHERE state = ${STATE.held} AND key IN (SELECT value FROM json_each(?))`;
    const keys = new Set(column<number>(this.sql, held, JSON.stringify([...this.places.keys()])));
    for (const key of this.places.keys()) if (!keys.has(key)) this.places.delete(key);
  }

  get size(): number {
    return this.places.size;
  }

  has(key: number): boolean {
    return this.places.has(key);
  }

  all(): Iterable<LockedPlace> {
    return this.places.values();
  }

  keys(): Iterable<number> {
    return this.places.keys();
  }

  add(place: LockedPlace): void {
    this.places.set(place.key, place);
  }

  /** The job is no longer locked. @returns its former place */
  take(key: number): LockedPlace | undefined {
    const place = this.places.get(key);
    this.places.delete(key);
    return place;
  }

  /** The row as readers see it; undefined for one that does not exist yet: held for an enqueue that is not decided. */
  seen<T extends Pick<JobRow, 'key' | 'state'>>(row: T): T | undefined {
    if (row.state !== STATE.held) return row;
    const place = this.places.get(row.key);
    return place && { ...row, ...place };
  }
}

/** The places that a share keeps. An unreadable share keeps none: its jobs stay held, and the queue continues. */
const lockedIn = (share: string): LockedPlace[] =>
  (parseStored(share) as { act?: { locked: LockedPlace[] } } | null | undefined)?.act?.locked ?? [];
