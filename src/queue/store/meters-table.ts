/** The table of what was counted, and the texts of `meters.ts` wherever they ride. */
import { parseStored, put, rows } from '../../durable/sql';
import { RANK_BIT } from '../../job/ids';
import { add, type Meter, newMeter, packed, read, unpacked } from '../../metrics/meter';
import { gathered, HOUR_MS, KEEP_HOURS_MS, KEEP_MINUTES_MS, MINUTE_MS, type Point } from '../../metrics/series';
import { type JobRow, STATE } from './job-row';

/** The carrier of a text: a row of `meters` for itself, or one that was written anyway. */
export type Carrier = { by: 'lease' | 'chunk' | 'joined' | 'row' } | { by: 'job'; key: number };

export interface Counted extends Point {
  /** As the text has it; undefined since it changed. */
  text: string | undefined;
  /** The changes to it in the running transaction. */
  weight: number;
}

export const WRITTEN_WITH: Readonly<Record<Carrier['by'], number>> = { lease: 1, chunk: 2, joined: 1, job: 2, row: 1 };

/** When rows of these tables are deleted, what they carried must be carried again. A single job is known by its key. */
export const TABLES: Partial<Record<Carrier['by'], string>> = { lease: 'leases', chunk: 'archive', joined: 'archive' };

/** Types counted by name; jobs of further types are counted together. Metrics must have few labels. */
export const MAX_TYPES = 200;
export const OTHER_TYPES = '_other';

/** Rows that belong to no type: those that the queue writes for itself. */
export const NO_TYPE = '';

/** Is this the name of no single type? */
export const isSpecial = (type: string): boolean => type === NO_TYPE || type === OTHER_TYPES;

const ROW = { text: 0, putAway: 1 } as const;

/** Bytes of the points of minutes, and of hours, at most. Totals take up to 256 KiB, and a row holds 2 MB. */
const MAX_BYTES = 512 * 1024;

/** Types of an hour that keep their names when not all of them fit: fewer at each pass over the hours. */
const NAMED = [16, 4, 0] as const;

type Stored = [period: number, type: string, ...pairs: number[]];

interface Text {
  version: number;
  sequence: number;
  points: Point[];
  carrier: Carrier;
}

export interface PutAway {
  version: number;
  /** Null: jobs count from the next one on. */
  sequence: number | null;
  totals: Map<string, Meter>;
  /** The points of hours, and those of minutes, which are later. */
  points: Point[];
  /** Since when it is counted, epoch ms, where that is not since the queue was made. */
  since?: number;
}

export type Counts = Pick<PutAway, 'totals' | 'points' | 'since'>;

const pointText = (point: Point, periodMs: number): string => {
  const pairs = packed(point.meter);
  return pairs.length === 0 ? '' : JSON.stringify([point.at / periodMs, point.type, ...pairs]);
};

/** A point of a text; empty where nothing was counted. */
export const textOf = (point: Point): string => pointText(point, MINUTE_MS);

function pointsOf(stored: unknown, periodMs: number): Point[] {
  if (!Array.isArray(stored)) return [];
  return stored.flatMap((entry: unknown) => {
    if (!Array.isArray(entry)) return [];
    const [period, type, ...pairs] = entry as Stored;
    if (!Number.isFinite(period) || typeof type !== 'string') return [];
    return [{ at: period * periodMs, type, meter: unpacked(pairs) }];
  });
}

/** The counts of a damaged record are lost. */
function parsed(data: string): Record<string, unknown> {
  const value = parseStored(data);
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

/** Where the newest text may be. Each reads few rows: those of what runs, and the last of each kind. */
const PLACES: readonly { by: Carrier['by']; query: string }[] = [
  { by: 'row', query: `SELECT data, NULL AS key FROM meters WHERE id = ${ROW.text}` },
  {
    by: 'lease',
    query: `SELECT data -> '$.m' AS data, NULL AS key FROM leases WHERE json_valid(data) AND data ->> '$.m.v' IS NOT NULL
      ORDER BY data ->> '$.m.v' DESC LIMIT 1`,
  },
  {
    by: 'chunk',
    query: 'SELECT meters AS data, NULL AS key FROM archive WHERE chunk >= 0 ORDER BY chunk DESC LIMIT 1',
  },
  {
    by: 'job',
    query: `SELECT jobs.meters AS data, jobs.key AS key FROM leases, json_each(leases.data, '$.e') AS entry
      JOIN jobs ON jobs.key = entry.value ->> 0 WHERE json_valid(leases.data) AND json_valid(jobs.meters)
      ORDER BY jobs.meters ->> '$.v' DESC LIMIT 1`,
  },
  ...[STATE.cancelled, STATE.discarded, STATE.dead].flatMap((state) =>
    [0, 1].map((kept) => ({
      by: 'job' as const,
      // Of those that ended in the same millisecond the last may be any.
      query: `SELECT meters AS data, key FROM (SELECT meters, key FROM jobs
        WHERE state = ${state} AND (keep_until IS NULL) = ${kept} AND ended_at IS NOT NULL ORDER BY ended_at DESC LIMIT 20)
        WHERE json_valid(meters) ORDER BY meters ->> '$.v' DESC LIMIT 1`,
    })),
  ),
];

/** The newest text, if there is one later than `version`. */
export function newestText(sql: SqlStorage, version: number): Text | undefined {
  let newest: Text | undefined;
  for (const { by, query } of PLACES) {
    for (const { data, key } of rows<{ data: string | null; key: number | null }>(sql, query)) {
      const { v, s, p } = data === null ? {} : parsed(data);
      if (!Number.isSafeInteger(v) || !Number.isSafeInteger(s)) continue;
      if ((v as number) <= (newest?.version ?? version)) continue;
      const carrier = by === 'job' ? { by, key: key as number } : { by };
      newest = { version: v as number, sequence: s as number, points: pointsOf(p, MINUTE_MS), carrier };
    }
  }
  return newest;
}

/** Jobs enqueued after the last text, by type, with their rows. @param from the first number; `inBlocks` follow */
export function* enqueuedSince(
  sql: SqlStorage,
  from: number,
  inBlocks: Iterable<Pick<JobRow, 'type' | 'created_at' | 'due_at' | 'priority'>>,
): Generator<{ type: string; at: number; enqueued: number; rows: number }> {
  for (const [rank, rowsEach] of [
    [0, 1],
    [RANK_BIT, 2],
  ] as const) {
    const found = rows<{ type: string; minute: number; n: number }>(
      sql,
      `SELECT type, created_at / ${MINUTE_MS} AS minute, count(*) AS n FROM jobs
       WHERE key >= ? AND key < ? AND state <> ${STATE.held} GROUP BY 1, 2`,
      rank + from,
      rank + RANK_BIT,
    );
    for (const { type, minute, n } of found) yield { type, at: minute * MINUTE_MS, enqueued: n, rows: n * rowsEach };
  }
  let together: string | undefined;
  for (const { type, created_at, due_at, priority } of inBlocks) {
    // Jobs of one moment with the same place were written together.
    const place = `${created_at} ${due_at} ${priority}`;
    yield { type, at: created_at, enqueued: 1, rows: place === together ? 0 : due_at === null ? 1 : 2 };
    together = place;
  }
}

/** A text in a row of its own. One row written. */
export function writeText(sql: SqlStorage, version: number, text: string): void {
  put(sql, 'meters', { id: ROW.text, version, sequence: null, data: text });
}

/** Since when counts are put away; undefined: nothing was. */
export function putAwayAt(sql: SqlStorage): Pick<PutAway, 'version' | 'sequence'> | undefined {
  type Row = { version: number; sequence: number | null };
  return rows<Row>(sql, `SELECT version, sequence FROM meters WHERE id = ${ROW.putAway}`)[0];
}

export function readPutAway(sql: SqlStorage): Counts {
  const row = rows<{ data: string }>(sql, `SELECT data FROM meters WHERE id = ${ROW.putAway}`)[0];
  const { totals, hours, minutes, since } = row ? parsed(row.data) : {};
  const ofTypes = pointsOf(totals, 1).map(({ type, meter }) => [type, meter] as const);
  return {
    totals: new Map(ofTypes),
    points: [...pointsOf(hours, HOUR_MS), ...pointsOf(minutes, MINUTE_MS)],
    ...(typeof since === 'number' && { since }),
  };
}

/** What was put away, and what was counted since then. */
export function merged({ totals, points, ...rest }: Counts, lately: readonly Point[]): Counts {
  // A restarted object knows only the recent types, so there may be too many together.
  const nameOf = (type: string) =>
    totals.has(type) || isSpecial(type) || totals.size < MAX_TYPES ? type : OTHER_TYPES;
  const named = lately.map((point) => {
    const type = nameOf(point.type);
    totals.set(type, add(totals.get(type) ?? newMeter(), point.meter));
    return type === point.type ? point : { ...point, type };
  });
  return { ...rest, totals, points: [...points, ...named] };
}

const busyness = ({ meter }: Point): number =>
  read(meter, 'enqueued') + read(meter, 'completed') + read(meter, 'failed');

class Period {
  texts: string[] = [];
  bytes = 0;

  constructor(
    public points: Point[],
    private readonly periodMs: number,
  ) {
    this.render();
  }

  /** Counts all types but the busiest ones together: the sums stay right. */
  keepNames(most: number): void {
    const named = this.points.filter(({ type }) => !isSpecial(type)).sort((a, b) => busyness(b) - busyness(a));
    // One alone would take as much room without its name.
    if (named.length <= most + 1) return;
    const quiet = new Set(named.slice(most));
    const [{ at }] = named as [Point];
    const together = [...quiet].map(({ meter }) => ({ at, type: OTHER_TYPES, meter }));
    const kept = this.points.filter((point) => !quiet.has(point));
    this.points = gathered([...kept, ...together], this.periodMs);
    this.render();
  }

  private render(): void {
    this.texts = this.points.map((point) => pointText(point, this.periodMs)).filter(Boolean);
    // Types are ASCII.
    this.bytes = this.texts.reduce((sum, text) => sum + 1 + text.length, 0);
  }
}

/** Points by their moment, the newest last. @param points in this order */
function periodsOf(points: readonly Point[], periodMs: number): Period[] {
  return Array.from(Map.groupBy(points, ({ at }) => at).values(), (those) => new Period(those, periodMs));
}

/** How many of the newest fit. */
function newest(periods: readonly Period[]): number {
  let bytes = 0;
  const tooMuch = periods.findLastIndex((period) => {
    bytes += period.bytes;
    return bytes > MAX_BYTES;
  });
  return periods.length - tooMuch - 1;
}

/** Makes the oldest periods less detailed, until all of them fit. @returns those that are */
function fitted(periods: readonly Period[]): Period[] {
  let bytes = periods.reduce((sum, period) => sum + period.bytes, 0);
  for (const most of NAMED) {
    for (const period of periods) {
      if (bytes <= MAX_BYTES) return [...periods];
      bytes -= period.bytes;
      period.keepNames(most);
      bytes += period.bytes;
    }
  }
  return periods.slice(periods.length - newest(periods));
}

/**
 * Puts counts away: totals, a day of minutes, a month of hours. If too large, older minutes become hours sooner, and
 * less busy types of older hours merge. One row written.
 */
export function writePutAway(
  sql: SqlStorage,
  { version, sequence, totals, points, since }: PutAway,
  now: number,
): void {
  const isRecent = ({ at }: Point) => at > now - KEEP_MINUTES_MS;
  const ofMinutes = periodsOf(gathered(points.filter(isRecent), MINUTE_MS), MINUTE_MS);
  const split = ofMinutes.length - newest(ofMinutes);
  const older = points.filter((point) => !isRecent(point) && point.at > now - KEEP_HOURS_MS);
  const early = ofMinutes.slice(0, split).flatMap(({ points: those }) => those);
  const hours = fitted(periodsOf(gathered([...older, ...early], HOUR_MS), HOUR_MS));
  const list = (periods: readonly Period[]) => `[${periods.flatMap(({ texts }) => texts).join(',')}]`;
  const ofTypes = Array.from(totals, ([type, meter]) => ({ at: 0, type, meter }));
  const begun = since === undefined ? '' : `"since":${since},`;
  const counts = `"totals":${list([new Period(ofTypes, 1)])},"hours":${list(hours)},"minutes":${list(ofMinutes.slice(split))}`;
  put(sql, 'meters', { id: ROW.putAway, version, sequence, data: `{${begun}${counts}}` });
}
