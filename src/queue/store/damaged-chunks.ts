/**
 * Unreadable archive chunks. Their jobs have completed and must never run again; only the chunk shows it. Their
 * numbers are read from what is left, or all that it spans count as over.
 */
import { rows } from '../../durable/sql';
import { RANK_BIT, sequenceOf } from '../../job/ids';

/** The array that `archive.data` is; an array of one `null` if it is none. */
export const ARCHIVED = `CASE WHEN json_valid(archive.data)
  THEN CASE json_type(archive.data) WHEN 'array' THEN archive.data ELSE '[null]' END ELSE '[null]' END`;

export interface DamagedChunk {
  chunk: number;
  lo: number;
  hi: number;
  jobs: number;
  sequences: readonly number[];
}

/** Chunks that were found in this life of a database, and those not reported yet. */
const found = new WeakMap<SqlStorage, { known: Set<number>; unreported: DamagedChunk[] }>();

/** The beginning of an archived job: its number, and what follows that. */
const NUMBERED = /\{"k":(\d{1,16}),"[at]":/g;

/** An unreadable chunk, or a partly readable one. Undefined: there is no chunk of that number. */
export function damagedChunk(sql: SqlStorage, chunk: number): DamagedChunk | undefined {
  type Row = Omit<DamagedChunk, 'sequences'> & { data: string };
  const [row] = rows<Row>(sql, 'SELECT chunk, lo, hi, jobs, data FROM archive WHERE chunk = ?', chunk);
  if (!row) return undefined;
  const { data, ...about } = row;
  const { lo, hi, jobs } = about;
  const named = new Set(Array.from(data.matchAll(NUMBERED), ([, number]) => sequenceOf(Number(number))));
  const within = [...named].filter((sequence) => sequence >= lo && sequence <= hi);
  const all = () => Array.from({ length: hi - lo + 1 }, (_, index) => lo + index);
  const damaged = { ...about, sequences: within.length >= jobs ? within : all() };
  note(sql, damaged);
  return damaged;
}

function note(sql: SqlStorage, damaged: DamagedChunk): void {
  const { known, unreported } = found.get(sql) ?? { known: new Set(), unreported: [] };
  found.set(sql, { known, unreported });
  if (known.has(damaged.chunk)) return;
  known.add(damaged.chunk);
  unreported.push(damaged);
}

/** The chunks that were found since the last call. */
export const takeDamaged = (sql: SqlStorage): DamagedChunk[] => found.get(sql)?.unreported.splice(0) ?? [];

/** The keys that jobs with these numbers may have. */
export const keysOf = ({ sequences }: DamagedChunk): number[] => [
  ...sequences,
  ...sequences.map((sequence) => RANK_BIT + sequence),
];
