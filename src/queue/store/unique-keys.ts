/** The table of unique jobs: a row per job with its fingerprint. Writing or deleting a unique job costs two rows. */
import { column, LIMIT, rows } from '../../durable/sql';
import { MAX_SEQUENCE } from '../../job/ids';
import type { JobBody } from '../../job/record';
import { scopeOf } from '../../job/unique/policy';
import type { UniquePlace } from '../../rpc/uniques';
import { type JobRow, readableBody } from './job-row';

export function knownFingerprints(sql: SqlStorage, fingerprints: readonly string[]): string[] {
  const known = 'SELECT DISTINCT fingerprint FROM unique_keys WHERE fingerprint IN (SELECT value FROM json_each(?))';
  return column(sql, known, JSON.stringify(fingerprints));
}

/** Jobs with one fingerprint that are looked at; if a policy lets more of them wait, the newest decide. */
export const MAX_RIVALS = 100;

/** Keys of the jobs with this fingerprint, newest first: more than {@link MAX_RIVALS}, so that a cleanup gets ahead. */
export function rivalKeys(sql: SqlStorage, fingerprint: string): number[] {
  const newest = `SELECT key FROM unique_keys WHERE fingerprint = ? ORDER BY (key & ${MAX_SEQUENCE - 1}) DESC ${LIMIT}`;
  return column(sql, newest, fingerprint, 2 * MAX_RIVALS);
}

export function uniqueKeysAfter(sql: SqlStorage, after: UniquePlace | undefined, limit: number): UniquePlace[] {
  const { fingerprint, key } = after ?? { fingerprint: '', key: 0 };
  const next = `SELECT fingerprint, key FROM unique_keys WHERE (fingerprint, key) > (?, ?) ORDER BY fingerprint, key ${LIMIT}`;
  return rows<{ fingerprint: string; key: number }>(sql, next, fingerprint, key, limit);
}

/** A unique job was written: it may conflict from now on. One row written. */
export function remember(sql: SqlStorage, fingerprint: string, key: number): void {
  sql.exec('INSERT OR IGNORE INTO unique_keys (fingerprint, key) VALUES (?, ?)', fingerprint, key).toArray();
}

export function fingerprintIn(row: Pick<JobRow, 'body'>): string | undefined {
  // Most jobs are not unique, and parsing is not free.
  return row.body.includes('"fingerprint":') ? readableBody(row)?.fingerprint : undefined;
}

/** {@link fingerprintIn} if jobs of other queues count too: a lock object knows the owner. */
export function globalFingerprintIn(row: Pick<JobRow, 'body'>): string | undefined {
  const body = row.body.includes('"fingerprint":') ? readableBody(row) : undefined;
  return body?.fingerprint !== undefined && scopeOf(body.unique) === 'global' ? body.fingerprint : undefined;
}

/** A stored job is deleted for good. One row written if it was a unique one. */
export function forgetRow(sql: SqlStorage, row: Pick<JobRow, 'key' | 'body'>): void {
  const fingerprint = fingerprintIn(row);
  if (fingerprint !== undefined) forgetKey(sql, fingerprint, row.key);
}

export function forgetKey(sql: SqlStorage, fingerprint: string, key: number): void {
  sql.exec('DELETE FROM unique_keys WHERE fingerprint = ? AND key = ?', fingerprint, key).toArray();
}

export function forgetCompleted(sql: SqlStorage, jobs: readonly { k: number; b: JobBody }[]): void {
  for (const { k, b } of jobs) if (b.fingerprint !== undefined) forgetKey(sql, b.fingerprint, k);
}
