/** Which jobs of blocks are over, as far as other tables show. */
import type { Fragment } from '../../durable/sql';
import { MAX_SEQUENCE, sequenceOf } from '../../job/ids';
import { SPAN, windowsOf } from './archive';
import { ARCHIVED, damagedChunk, keysOf } from './damaged-chunks';

/** What follows the blocks in a query for the keys that they span: of jobs with rows of their own. */
const MOVED_OUT = {
  key: 'jobs.key',
  others: 'jobs WHERE jobs.key >= blocks.first AND jobs.key < blocks.first + blocks.span',
};

const SEQUENCE = `(blocks.first & ${MAX_SEQUENCE - 1})`;

/** {@link MOVED_OUT} for completed jobs. No key: the chunk has unreadable jobs. */
const COMPLETED = {
  key: "CASE job.type WHEN 'object' THEN job.value ->> '$.k' END",
  others: `archive CROSS JOIN json_each(${ARCHIVED}) AS job
  WHERE archive.lo > ${SEQUENCE} - ${SPAN} AND archive.lo < ${SEQUENCE} + blocks.span AND archive.hi >= ${SEQUENCE}
    AND (job.type <> 'object' OR (job.value ->> '$.k' >= blocks.first AND job.value ->> '$.k' < blocks.first + blocks.span))`,
};

/** A job that is over, and where its block begins. */
type Over = { first: number; key: number };

/** Blocks that are known, as a table for {@link keysOver}: rows of no table are read. */
export function spansOf(blocks: readonly { first: number; span: number }[]): Fragment {
  const [only] = blocks;
  if (only && blocks.length === 1) {
    return { sql: '(SELECT ? AS first, ? AS span)', bindings: [only.first, only.span] };
  }
  const spans = JSON.stringify(blocks.map(({ first, span }) => [first, span]));
  return { sql: '(SELECT value ->> 0 AS first, value ->> 1 AS span FROM json_each(?))', bindings: [spans] };
}

/**
 * Keys of jobs with own rows, and of completed ones, that blocks span, each once; some were never in the block.
 * @param blocks a table of `first` and `span` @param within may any of their jobs be in the archive?
 */
export function keysOver(sql: SqlStorage, blocks: Fragment, within = { archive: true }): Over[] {
  const from = (what: string, others: string) =>
    `SELECT blocks.first, ${what} FROM ${blocks.sql} AS blocks CROSS JOIN ${others}`;
  const moved = sql.exec<Over>(from(`${MOVED_OUT.key} AS key`, MOVED_OUT.others), ...blocks.bindings).toArray();
  if (!within.archive) return moved;
  type Completed = { first: number; span: number; chunk: number; key: number | null };
  const what = `blocks.span, archive.chunk, ${COMPLETED.key} AS key`;
  const completed = sql.exec<Completed>(from(what, COMPLETED.others), ...blocks.bindings).toArray();
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

/** Ranges of numbers that are looked for in one statement. */
const WINDOWS = 10_000;

/**
 * Keys of those that have completed; reads each chunk once, and none completed before any job was due.
 * @param jobs none of them has completed before it was due, epoch ms
 */
export function completedAmong(sql: SqlStorage, jobs: readonly { key: number; at: number }[]): number[] {
  const windows = windowsOf(jobs);
  const chunks = new Set<number>();
  for (let from = 0; from < windows.length; from += WINDOWS) {
    const found = sql.exec<{ chunk: number }>(
      `SELECT DISTINCT archive.chunk FROM json_each(?) AS near CROSS JOIN archive
       WHERE archive.lo > (near.value ->> 0) - ${SPAN} AND archive.lo <= (near.value ->> 1)
         AND archive.hi >= (near.value ->> 0) AND archive.ended_at >= (near.value ->> 2)`,
      JSON.stringify(windows.slice(from, from + WINDOWS)),
    );
    for (const { chunk } of found) chunks.add(chunk);
  }
  const completed = sql.exec<{ chunk: number; key: number | null }>(
    `SELECT archive.chunk, ${COMPLETED.key} AS key FROM json_each(?) AS near
     CROSS JOIN archive ON archive.chunk = near.value CROSS JOIN json_each(${ARCHIVED}) AS job`,
    JSON.stringify([...chunks]),
  );
  return Array.from(completed).flatMap(({ chunk, key }) => {
    if (key !== null) return [key];
    const damaged = damagedChunk(sql, chunk);
    return damaged ? keysOf(damaged) : [];
  });
}
