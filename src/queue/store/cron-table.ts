/** The cron entries of a queue: a few numbers each in memory, the rest read on demand. A fire writes one row. */
import { cell, firstRow, put, rows } from '../../durable/sql';
import type { CronRun, CronSummary, CronView } from '../../rpc/cron';
import type { CronDefinition } from '../../schedules/definition';

const LIVE = 0;
const GONE = 2;

/** Bits of `open`. */
const WAITS = 1;
const ACROSS = 2;

/** A deleted entry is remembered for this long, so that no change under way brings it back; ms. */
const REMEMBER_GONE_MS = 30 * 86_400_000;

type Row = { version: number; status: number; data: string };

export class CronTable {
  /** When each entry fires next. */
  private known = new Map<string, number | undefined>();
  private readonly waitingNames = new Set<string>();
  private readonly acrossNames = new Set<string>();
  private earliest: number | undefined;
  /** Entries backing off until then, epoch ms. In memory only, not transactional. */
  private readonly postponed = new Map<string, number>();

  constructor(private readonly sql: SqlStorage) {}

  load(): void {
    this.known.clear();
    this.waitingNames.clear();
    this.acrossNames.clear();
    type Run = { name: string; next_at: number | null; open: number };
    for (const { name, next_at, open } of rows<Run>(this.sql, 'SELECT name, next_at, open FROM cron_runs')) {
      this.note(name, next_at ?? undefined, (open & WAITS) !== 0, (open & ACROSS) !== 0);
    }
  }

  /** When the next entry is due, epoch ms; Infinity when none is. */
  get nextAt(): number {
    if (this.earliest === undefined) {
      this.earliest = Number.POSITIVE_INFINITY;
      // Waiting fires are retried when a job ends. Where that failed, no other end may ever come.
      for (const name of this.waitingNames) {
        this.earliest = Math.min(this.earliest, this.postponed.get(name) ?? Number.POSITIVE_INFINITY);
      }
      for (const [name, nextAt] of this.known) {
        if (nextAt !== undefined)
          this.earliest = Math.min(this.earliest, Math.max(nextAt, this.postponed.get(name) ?? 0));
      }
    }
    return this.earliest;
  }

  /** Entries whose time has come, the one waiting longest first, at most `limit`. */
  due(now: number, limit: number): string[] {
    if (now < this.nextAt) return [];
    const due: { name: string; at: number }[] = [];
    for (const [name, nextAt] of this.known) {
      if (nextAt !== undefined && nextAt <= now && (this.postponed.get(name) ?? 0) <= now)
        due.push({ name, at: nextAt });
    }
    due.sort((a, b) => a.at - b.at);
    return due.slice(0, limit).map(({ name }) => name);
  }

  /** Entries with fires that wait for a job to end. */
  waiting(now: number): string[] {
    if (this.waitingNames.size === 0) return [];
    return [...this.waitingNames].filter((name) => (this.postponed.get(name) ?? 0) <= now);
  }

  /** Entries with fires that other queues must be asked about. */
  across(): string[] {
    return [...this.acrossNames];
  }

  /** The entry backs off until then, epoch ms. */
  postpone(name: string, until: number): void {
    this.postponed.set(name, until);
    this.earliest = undefined;
  }

  resume(name: string): void {
    if (this.postponed.delete(name)) this.earliest = undefined;
  }

  read(name: string): CronView | undefined {
    const row = this.row(name);
    if (row?.status !== LIVE) return undefined;
    const run = cell<string>(this.sql, 'SELECT data FROM cron_runs WHERE name = ?', name);
    if (run === undefined) return undefined;
    const definition = JSON.parse(row.data) as CronDefinition;
    return { definition, run: JSON.parse(run) as CronRun, version: row.version };
  }

  /** The number of the last change to an entry that is here or gone. */
  versionOf(name: string): number | undefined {
    return this.row(name)?.version;
  }

  summaries(): CronSummary[] {
    const all = `SELECT name, data ->> '$.enabled' AS enabled, data ->> '$.group' AS grp FROM crons
      WHERE status = ${LIVE} ORDER BY name`;
    const found = rows<{ name: string; enabled: number; grp: string | null }>(this.sql, all);
    return found.map(({ name, enabled, grp }) => ({ name, enabled: enabled === 1, group: grp }));
  }

  has(name: string): boolean {
    return this.known.has(name);
  }

  get size(): number {
    return this.known.size;
  }

  /** Writes an entry. Two rows. */
  write({ definition, run, version }: CronView, now: number): void {
    const { name } = definition;
    put(this.sql, 'crons', { name, version, status: LIVE, at: now, data: JSON.stringify(definition) });
    this.writeRun(name, run);
  }

  /** Writes what a fire changes. One row. */
  writeRun(name: string, run: CronRun): void {
    const waits = run.waiting.length > 0;
    const across = run.across.length > 0;
    const open = (waits ? WAITS : 0) + (across ? ACROSS : 0);
    put(this.sql, 'cron_runs', { name, next_at: run.next_at ?? null, open, data: JSON.stringify(run) });
    this.note(name, run.next_at, waits, across);
    this.postponed.delete(name);
  }

  private note(name: string, nextAt: number | undefined, waits: boolean, across: boolean): void {
    this.known.set(name, nextAt);
    for (const [names, isOne] of [
      [this.waitingNames, waits],
      [this.acrossNames, across],
    ] as const) {
      if (isOne) names.add(name);
      else names.delete(name);
    }
    this.earliest = undefined;
  }

  /** The entry is no longer here. Two rows. */
  remove(name: string, version: number, now: number): void {
    put(this.sql, 'crons', { name, version, status: GONE, at: now, data: '' });
    if (this.known.delete(name)) this.sql.exec('DELETE FROM cron_runs WHERE name = ?', name).toArray();
    this.waitingNames.delete(name);
    this.acrossNames.delete(name);
    this.postponed.delete(name);
    this.earliest = undefined;
    this.sql.exec(`DELETE FROM crons WHERE status = ${GONE} AND at < ?`, now - REMEMBER_GONE_MS).toArray();
  }

  private row(name: string): Row | undefined {
    return firstRow(this.sql, 'SELECT version, status, data FROM crons WHERE name = ?', name);
  }
}
