/**
 * The starts of groups that have a rate. What counts is in memory, by group. A claim writes one row for all its groups,
 * whatever their number.
 *
 * A row is used again once it counts for no rate, and small rows of nearly one moment are joined. Where there are very
 * many rows, or very large ones, they are replaced by what memory knows. So rows and memory are bounded. Whatever is
 * merged counts longer, never shorter: no rate is exceeded, whenever memory is lost.
 */
import { parseStored, put } from '../../../durable/sql';
import { getOrInsert } from '../../../job/get-or-insert';
import type { Quota } from '../../../job/limits/policy';
import { MAX_MOMENTS, type Moment, Starts } from '../../../job/limits/starts';
import { grouped } from '../../../job/size';
import { SIZES, type Sizes } from '../sizes';
import { placeOf } from './counts';

/** Groups with starts of their own in memory at most; the others share these, a power of two. */
const MAX_OWN = 100_000;
const SHARED = 4_096;

/** Moments in memory at most, over all groups; beyond that, those of each group are merged. */
const MAX_IN_MEMORY = 250_000;

/** Characters of a row that others join, and of one that replaces others. */
const SMALL_ROW = 4 * 1024;
const LARGE_ROW = 64 * 1024;
/** Characters of a row: less than 1 MiB where each takes three bytes, because the platform refuses rows above 2 MB. */
const MAX_ROW = 320 * 1024;

/** The periods of all rates, ms. */
interface Periods {
  readonly shortest: number;
  readonly longest: number;
}

interface StoredRow {
  id: number;
  /** When the last of its starts was, epoch ms. */
  at: number;
  chars: number;
}

/** The text of a row: starts at its moment, or moments, by group. */
type RowData = Record<string, number | Moment[]>;

export class GroupStarts {
  private byGroup: Map<string, Starts> | undefined;
  /** In the order of their moments. */
  private rows: StoredRow[] = [];
  private chars = 0;
  /** Characters that the rows have if each group is there once, as of the last look. */
  private needed = 0;
  private nextId = 1;
  /** What the newest row has, and since when, while others may join it. */
  private newest: { since: number; counts: Map<string, number> } | undefined;
  /** Moments added since all were last looked at. */
  private added = 0;

  /** @param periods of the rates that hold; undefined: there is none */
  constructor(
    private readonly sql: SqlStorage,
    private readonly periods: () => Periods | undefined,
    private readonly sizes: Pick<Sizes, 'startRows' | 'startChars'> = SIZES,
  ) {}

  /** Memory may be wrong: it is read again when it is next needed. */
  forget(): void {
    this.byGroup = undefined;
    this.newest = undefined;
  }

  /** How many more jobs of the group may start. @param taken starts that are not noted yet */
  room(group: string, { limit, period_ms }: Quota, taken: number, now: number): number {
    const known = this.load();
    const own = known.get(group)?.count(now, period_ms) ?? 0;
    // Groups that share a counter may have longer periods.
    const shared = known.get(sharedName(group))?.count(now, this.periods()?.longest ?? period_ms) ?? 0;
    return limit - taken - own - shared;
  }

  /** When the next one may start that has no room now, epoch ms. @param taken as {@link room} has them */
  opensAt(group: string, { limit, period_ms }: Quota, taken: number, now: number): number {
    if (taken >= limit) return now + period_ms;
    const known = this.load();
    const [own, shared] = [known.get(group), known.get(sharedName(group))];
    if (own && !shared) return own.opensAt(limit - taken, period_ms);
    // Two counters have no order between them: the first start that counts no more may make room.
    const [first] = [own, shared].flatMap((starts) => starts?.entries[0]?.[0] ?? []).sort((a, b) => a - b);
    return Math.min(now + period_ms, (first ?? now) + period_ms);
  }

  /** Notes starts. One row written, more only where the names do not fit into one. @param counts by group */
  note(counts: ReadonlyMap<string, number>, now: number): void {
    const periods = this.periods();
    if (!periods || counts.size === 0) return;
    const known = this.load();
    const named = new Map<string, number>();
    for (const [group, count] of counts) {
      const name = nameFor(known, group);
      named.set(name, (named.get(name) ?? 0) + count);
      getOrInsert(known, name, () => new Starts()).add(now, count, periods.longest);
    }
    this.added += named.size;
    if (this.added > MAX_IN_MEMORY) this.sweep(known, periods.longest, now);
    this.write(named, periods, now);
  }

  /** No group has a rate any more: what was counted is forgotten. */
  clear(): void {
    this.forget();
    this.sql.exec('DELETE FROM group_starts').toArray();
  }

  private load(): Map<string, Starts> {
    if (this.byGroup) return this.byGroup;
    const known = new Map<string, Starts>();
    const moments = new Map<string, Moment[]>();
    this.rows = [];
    this.chars = 0;
    this.nextId = 1;
    const stored = 'SELECT id, at, data FROM group_starts ORDER BY at, id';
    for (const { id, at, data } of this.sql.exec<{ id: number; at: number; data: string }>(stored)) {
      this.rows.push({ id, at, chars: data.length });
      this.chars += data.length;
      this.nextId = Math.max(this.nextId, id + 1);
      for (const [name, counted] of Object.entries(readRow(data))) {
        const of = getOrInsert(moments, name, (): Moment[] => []);
        of.push(...(typeof counted === 'number' ? [[at, counted] as Moment] : counted));
      }
    }
    this.needed = 0;
    for (const [name, of] of moments) {
      known.set(name, new Starts(of.sort(([a], [b]) => a - b)));
      this.needed += partOf(name, of).length;
    }
    this.byGroup = known;
    return known;
  }

  private write(counts: ReadonlyMap<string, number>, { shortest, longest }: Periods, now: number): void {
    const newest = this.rows.at(-1);
    const parts = Array.from(counts, ([name, count]) => partOf(name, count));
    const texts = Array.from(
      grouped(parts, ({ length }) => length, MAX_ROW),
      rowText,
    );
    const isSmall = newest !== undefined && newest.chars < SMALL_ROW && texts.length === 1;
    if (isSmall && this.newest && this.isOneMoment(newest, shortest, now)) {
      for (const [name, count] of counts) this.newest.counts.set(name, (this.newest.counts.get(name) ?? 0) + count);
      this.rows.pop();
      this.chars -= newest.chars;
      this.put(newest.id, now, JSON.stringify(Object.fromEntries(this.newest.counts)));
      return;
    }
    this.newest = { since: now, counts: new Map(counts) };
    const [oldest] = this.rows;
    const isOver = oldest !== undefined && oldest.at + longest <= now;
    if (isOver) {
      this.rows.shift();
      this.chars -= oldest.chars;
    }
    for (const [nth, text] of texts.entries()) this.put(isOver && nth === 0 ? oldest.id : this.nextId++, now, text);
    // What is needed may be more than the bound: then rows are joined once there are twice as many characters.
    const { startRows, startChars } = this.sizes;
    const most = Math.max(startChars, 2 * this.needed);
    if (this.chars > most || this.rows.length > Math.max(startRows, (2 * this.needed) / LARGE_ROW))
      this.rewrite(longest, now);
  }

  /** Do starts of now belong to the newest row, whose moments count as one? */
  private isOneMoment(newest: StoredRow, shortest: number, now: number): boolean {
    const since = this.newest?.since ?? Number.NEGATIVE_INFINITY;
    return now >= newest.at && now - since <= shortest / MAX_MOMENTS;
  }

  private put(id: number, at: number, data: string): void {
    this.rows.push({ id, at, chars: data.length });
    this.chars += data.length;
    put(this.sql, 'group_starts', { id, at, data });
  }

  /** Replaces all rows by what memory knows. */
  private rewrite(longest: number, now: number): void {
    const known = this.load();
    this.sweep(known, longest, now);
    this.sql.exec('DELETE FROM group_starts').toArray();
    this.rows = [];
    this.chars = 0;
    this.nextId = 1;
    this.newest = undefined;
    const textOf = ([name, { entries }]: [string, Starts]) => partOf(name, entries);
    for (const row of grouped(known, (starts) => textOf(starts).length, LARGE_ROW)) {
      const at = Math.max(...row.map(([, { entries }]) => entries.at(-1)?.[0] ?? 0));
      this.put(this.nextId++, at, rowText(row.map(textOf)));
    }
    this.rows.sort((a, b) => a.at - b.at);
    this.needed = this.chars;
  }

  /** Forgets what counts no more, and merges moments while there are too many. */
  private sweep(known: Map<string, Starts>, longest: number, now: number): void {
    let moments = 0;
    for (const [name, starts] of known) {
      if (starts.count(now, longest) === 0) known.delete(name);
      moments += starts.entries.length;
    }
    for (let most = MAX_MOMENTS / 2; moments > MAX_IN_MEMORY / 2 && most >= 1; most /= 2) {
      moments = 0;
      for (const starts of known.values()) {
        starts.merge(longest, most);
        moments += starts.entries.length;
      }
    }
    this.added = moments;
  }
}

/** Under which name starts of the group are counted: no group's name has this character. */
const sharedName = (group: string): string => `\0${placeOf(group) & (SHARED - 1)}`;

const nameFor = (known: ReadonlyMap<string, Starts>, group: string): string =>
  known.has(group) || known.size < MAX_OWN ? group : sharedName(group);

const partOf = (name: string, counted: number | readonly Moment[]): string =>
  `${JSON.stringify(name)}:${JSON.stringify(counted)}`;

const rowText = (parts: readonly string[]): string => `{${parts.join(',')}}`;

/** An unreadable row counts nothing. */
const readRow = (data: string): RowData => (parseStored(data) ?? {}) as RowData;
