/** The table of what was counted, and the texts of `meters.ts` wherever they ride. */
import { put, rows } from '../../durable/sql';
import { add, type Meter, newMeter, packed, unpacked } from '../../job/metrics/meter';
import { gathered, HOUR_MS, KEEP_HOURS_MS, KEEP_MINUTES_MS, MINUTE_MS, type Point } from '../../job/metrics/series';
import { STATE } from './columns';

/** What has the text: a row of `meters` for itself, or one that was written anyway. */
export type Carrier = { by: 'lease' | 'chunk' | 'joined' | 'row' } | { by: 'job'; key: number };

/** Types counted by name; the jobs of further ones are counted together. Labels of metrics must be few. */
export const MAX_TYPES = 200;
export const OTHER_TYPES = '_other';

/** What belongs to no type: rows that the queue writes for itself. */
export const NO_TYPE = '';

/** Is this the name of no single type? */
export const isSpecial = (type: string): boolean => type === NO_TYPE || type === OTHER_TYPES;

/** The rows of the table. */
const ROW = { text: 0, putAway: 1 } as const;

/** Points of a minute, and of an hour, that are kept at most: a row holds 2 MB. */
const MAX_POINTS = 6_000;

/** A point as it is stored: where its time is, its type, and the pairs of its meter. */
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

/** What was counted. */
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

function parsed(data: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(data);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    // A damaged record must not stop its queue: what it counted is lost.
    return {};
  }
}

/** Where the newest text may be. Each reads few rows: those that say what runs, and the last of each kind. */
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
      JOIN jobs ON jobs.key = entry.value ->> 0 WHERE json_valid(leases.data) AND jobs.meters IS NOT NULL
      ORDER BY jobs.meters ->> '$.v' DESC LIMIT 1`,
  },
  ...[STATE.cancelled, STATE.discarded, STATE.dead].flatMap((state) =>
    [0, 1].map((kept) => ({
      by: 'job' as const,
      // Of those that ended in the same millisecond the last may be any.
      query: `SELECT meters AS data, key FROM (SELECT meters, key FROM jobs
        WHERE state = ${state} AND (keep_until IS NULL) = ${kept} AND ended_at IS NOT NULL ORDER BY ended_at DESC LIMIT 20)
        WHERE meters IS NOT NULL ORDER BY meters ->> '$.v' DESC LIMIT 1`,
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

/** A text in a row of its own. One row written. */
export function writeText(sql: SqlStorage, version: number, text: string): void {
  put(sql, 'meters', { id: ROW.text, version, sequence: null, data: text });
}

/** Since when there is what was put away; undefined: nothing was. */
export function putAwayAt(sql: SqlStorage): Pick<PutAway, 'version' | 'sequence'> | undefined {
  type Row = { version: number; sequence: number | null };
  return rows<Row>(sql, `SELECT version, sequence FROM meters WHERE id = ${ROW.putAway}`)[0];
}

/** All that was put away. */
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
  // A new life of the object knows the types of late only, so there may be too many together.
  const nameOf = (type: string) =>
    totals.has(type) || isSpecial(type) || totals.size < MAX_TYPES ? type : OTHER_TYPES;
  const named = lately.map((point) => {
    const type = nameOf(point.type);
    totals.set(type, add(totals.get(type) ?? newMeter(), point.meter));
    return type === point.type ? point : { ...point, type };
  });
  return { ...rest, totals, points: [...points, ...named] };
}

/**
 * Puts away what was counted: totals, the minutes of a day, the hours of a month. Where many types make very many points, the
 * older minutes become hours sooner. One row written.
 */
export function writePutAway(
  sql: SqlStorage,
  { version, sequence, totals, points, since }: PutAway,
  now: number,
): void {
  const all = points.sort((a, b) => a.at - b.at);
  const isMinute = (point: Point, index: number) =>
    point.at > now - KEEP_MINUTES_MS && index >= all.length - MAX_POINTS;
  const minutes = gathered(all.filter(isMinute), MINUTE_MS);
  const older = all.filter((point, index) => !isMinute(point, index) && point.at > now - KEEP_HOURS_MS);
  const hours = gathered(older, HOUR_MS).slice(-MAX_POINTS);
  const list = (kept: readonly Point[], periodMs: number) =>
    `[${kept
      .map((point) => pointText(point, periodMs))
      .filter(Boolean)
      .join(',')}]`;
  const ofTypes = Array.from(totals, ([type, meter]) => ({ at: 0, type, meter }));
  const begun = since === undefined ? '' : `"since":${since},`;
  const data = `{${begun}"totals":${list(ofTypes, 1)},"hours":${list(hours, HOUR_MS)},"minutes":${list(minutes, MINUTE_MS)}}`;
  put(sql, 'meters', { id: ROW.putAway, version, sequence, data });
}
