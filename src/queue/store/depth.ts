/** Number and size of open jobs: counted when a bound first asks, then kept, so bounded enqueues read nothing. */
import { cell } from '../../durable/sql';
import { utf8Bytes } from '../../job/bytes';
import { RANK_BIT } from '../../job/ids';
import type { GroupCounts } from './groups/counts';
import { type JobRow, STANDS_IN_LINE } from './job-row';
import type { LockTable } from './locks';

/** The shares of batches that are being decided, as far as they can be read. */
const SHARES = "(SELECT data FROM outbox WHERE kind = 'share' AND json_valid(data))";

export class Depth {
  private counted: number | null = null;
  private size: number | null = null;
  /** There are more jobs than the bound allows; they are discarded in turns. */
  isShedding = false;

  constructor(
    private readonly sql: SqlStorage,
    private readonly blocks: { count(): number; all(): Iterable<JobRow> },
    private readonly locks: Pick<LockTable, 'all'>,
    private readonly groups: GroupCounts,
  ) {}

  load(meta: ReadonlyMap<string, unknown>): void {
    this.forget();
    this.isShedding = meta.get('shedding') === true;
  }

  forget(): void {
    this.counted = null;
    this.size = null;
    this.groups.forget();
  }

  /** Jobs that have not ended, those of undecided batches included. */
  jobs(): number {
    const inRows = `SELECT (SELECT count(*) FROM jobs WHERE due_at IS NOT NULL)
      + (SELECT count(*) FROM jobs WHERE state = 1)
      + (SELECT count(*) FROM jobs WHERE key < ${RANK_BIT} AND ${STANDS_IN_LINE})
      + (SELECT coalesce(sum(json_array_length(data, '$.jobs')), 0) FROM ${SHARES})`;
    this.counted ??= this.blocks.count() + this.locked(true).length + (cell<number>(this.sql, inRows) as number);
    return this.counted;
  }

  /** Bytes of their bodies. The first call reads them all. */
  bytes(): number {
    if (this.size !== null) return this.size;
    const inRows = `SELECT sum(length(CAST(body AS BLOB))) FROM jobs WHERE ended_at IS NULL AND key NOT IN
      (SELECT value FROM json_each(?))`;
    this.size = cell<number>(this.sql, inRows, JSON.stringify(this.locked(false))) ?? 0;
    for (const row of this.blocks.all()) this.size += bodyBytes(row);
    return this.size;
  }

  /** Keys of locked jobs that have not ended, or that have. A job cancelled despite its lock is not locked. */
  private locked(isOpen: boolean): number[] {
    return Array.from(this.locks.all()).flatMap(({ key, ended_at }) => ((ended_at === null) === isOpen ? [key] : []));
  }

  added(job: Pick<JobRow, 'group' | 'body'>): void {
    this.groups.added(job);
    if (this.counted !== null) this.counted++;
    if (this.size !== null) this.size += bodyBytes(job);
  }

  gone(job: Pick<JobRow, 'group' | 'body'>): void {
    this.groups.gone(job);
    if (this.counted !== null) this.counted--;
    if (this.size !== null) this.size -= bodyBytes(job);
  }
}

export const bodyBytes = ({ body }: Pick<JobRow, 'body'>): number => utf8Bytes(body);
