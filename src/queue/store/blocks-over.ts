/** Which jobs of blocks are over, as far as other tables tell. */
import type { Fragment } from '../../durable/sql';
import { MAX_SEQUENCE } from '../../job/ids';
import { SPAN } from './archive';

/** What follows the blocks in a query for the keys that they span: of jobs with rows of their own. */
const MOVED_OUT = {
  key: 'jobs.key',
  others: 'jobs WHERE jobs.key >= blocks.first AND jobs.key < blocks.first + blocks.span',
};

/** The sequence number of the first job of a block. */
const SEQUENCE = `(blocks.first & ${MAX_SEQUENCE - 1})`;

/** The same: of completed jobs. */
const COMPLETED = {
  key: "job.value ->> '$.k'",
  others: `archive
  CROSS JOIN json_each(CASE WHEN json_valid(archive.data) THEN archive.data ELSE '[]' END) AS job
  WHERE archive.lo > ${SEQUENCE} - ${SPAN} AND archive.lo < ${SEQUENCE} + blocks.span AND archive.hi >= ${SEQUENCE}
    AND job.type = 'object' AND job.value ->> '$.k' >= blocks.first
    AND job.value ->> '$.k' < blocks.first + blocks.span`,
};

/**
 * Keys of jobs that have rows of their own, and of completed ones, as far as blocks of a table span them. Some may be those of
 * jobs that were never in the block.
 * @param among which blocks: a condition on `blocks`
 */
export function keysOver(sql: SqlStorage, table: string, among: Fragment): { first: number; key: number }[] {
  return [MOVED_OUT, COMPLETED].flatMap(({ key, others }) => {
    const query = `SELECT blocks.first, ${key} AS key FROM ${table} AS blocks CROSS JOIN ${others} AND ${among.sql}`;
    return sql.exec<{ first: number; key: number }>(query, ...among.bindings).toArray();
  });
}
