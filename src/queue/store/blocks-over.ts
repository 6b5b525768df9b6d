/** Which jobs of blocks are over, as far as other tables tell. */
import type { Fragment } from '../../durable/sql';
import { MAX_SEQUENCE, sequenceOf } from '../../job/ids';
import { SPAN } from './archive';
import { ARCHIVED, damagedChunk } from './damaged-chunks';

/** What follows the blocks in a query for the keys that they span: of jobs with rows of their own. */
const MOVED_OUT = {
  key: 'jobs.key',
  others: 'jobs WHERE jobs.key >= blocks.first AND jobs.key < blocks.first + blocks.span',
};

/** The sequence number of the first job of a block. */
const SEQUENCE = `(blocks.first & ${MAX_SEQUENCE - 1})`;

/** The same: of completed jobs. No key: the chunk has jobs that cannot be read. */
const COMPLETED = {
  key: "CASE job.type WHEN 'object' THEN job.value ->> '$.k' END",
  others: `archive CROSS JOIN json_each(${ARCHIVED}) AS job
  WHERE archive.lo > ${SEQUENCE} - ${SPAN} AND archive.lo < ${SEQUENCE} + blocks.span AND archive.hi >= ${SEQUENCE}
    AND (job.type <> 'object' OR (job.value ->> '$.k' >= blocks.first AND job.value ->> '$.k' < blocks.first + blocks.span))`,
};

/** A job that is over, and where its block begins. */
type Over = { first: number; key: number };

/**
 * Keys of jobs with rows of their own, and of completed jobs, that blocks of a table span, each once. Some may never
 * have been in the block.
 * @param among which blocks: a condition on `blocks`
 */
export function keysOver(sql: SqlStorage, table: string, among: Fragment): Over[] {
  const from = (what: string, others: string) =>
    `SELECT blocks.first, ${what} FROM ${table} AS blocks CROSS JOIN ${others} AND ${among.sql}`;
  const moved = sql.exec<Over>(from(`${MOVED_OUT.key} AS key`, MOVED_OUT.others), ...among.bindings).toArray();
  type Completed = { first: number; span: number; chunk: number; key: number | null };
  const what = `blocks.span, archive.chunk, ${COMPLETED.key} AS key`;
  const completed = sql.exec<Completed>(from(what, COMPLETED.others), ...among.bindings).toArray();
  const lost = completed.filter(({ key }) => key === null);
  if (lost.length === 0) return [...moved, ...(completed as Over[])];
  const known = [...moved, ...(completed.filter(({ key }) => key !== null) as Over[])];
  const keys = new Map(known.map(({ first, key }) => [key, first]));
  for (const { first, span, chunk } of lost) {
    for (const sequence of damagedChunk(sql, chunk)?.sequences ?? []) {
      const key = first - sequenceOf(first) + sequence;
      if (key >= first && key < first + span) keys.set(key, first);
    }
  }
  return Array.from(keys, ([key, first]) => ({ first, key }));
}
