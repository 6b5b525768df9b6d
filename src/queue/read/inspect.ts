/** Conditions beyond SQL: a job's text and failure group, one job at a time. Reads count towards bounds. */
import { type Failure, fingerprintOfFailure, MAX_LOOKED_AT } from '../../job/failures/fingerprint';
import { failureOf } from '../../job/failures/last';
import type { JobFilter } from '../../job/filter';
import { saysAll, searcherFor } from '../../job/search';
import type { JobRow } from '../store/job-row';
import { type ArchivedJob, idOf, idOfArchived } from '../store/rows';

/** Reading this many characters counts as much as looking at one more job. */
const CHARS_PER_JOB = 1024;

/** The columns of a row that this needs. Others were not read. */
export type InspectedRow = Pick<JobRow, 'key'> &
  Partial<Pick<JobRow, 'type' | 'alias' | 'created_at' | 'body'>> & { failure?: string | null };

export interface Inspection {
  /** Columns to select beside `key`. */
  columns: string;
  fits(row: InspectedRow): boolean;
  /** {@link fits} for a completed job. @param json of it */
  fitsArchived(json: string): boolean;
  /** What it costs to look at this row, in jobs. */
  costOf(row: InspectedRow): number;
}

/** JSON of a row's last failure, in SQL: class, code, message, time and reason; null where there is none. */
export const FAILURE = `CASE WHEN json_valid(history) THEN json_array(history ->> '$.error.type', history ->> '$.error.code',
  substr(history ->> '$.error.message', 1, ${MAX_LOOKED_AT}), history ->> '$.error.occurred_at', history ->> '$.reason') END`;

export interface FoundFailure extends Failure {
  /** Epoch ms, when the attempt failed. */
  occurred_at?: number;
}

/** Reads {@link FAILURE}. @returns undefined for a job that has not failed */
export function foundFailure(type: string, json: string | null | undefined): FoundFailure | undefined {
  if (json === null || json === undefined) return undefined;
  const [error_type, code, message, at, reason] = JSON.parse(json) as unknown[];
  if (error_type === null && code === null && reason === null) return undefined;
  const failure = failureOf(type, { type: error_type, code, message }, reason);
  return { ...failure, ...(typeof at === 'number' && { occurred_at: at }) };
}

/** The part of this filter that must be checked in this way; undefined without one. */
export function inspectionOf(filter: JobFilter, route: number): Inspection | undefined {
  const { words, error_words, fingerprints } = filter;
  if (!words && !error_words && !fingerprints) return undefined;
  const says = words && searcherFor(words);
  const errorSays = error_words && saysAll(error_words);
  const groups = fingerprints && new Set(fingerprints);
  return {
    columns: `type, ${FAILURE} AS failure${says ? ', alias, created_at, body' : ''}`,
    fits(row) {
      const { type = '', alias = null, created_at = 0, body = '', key } = row;
      const failure = foundFailure(type, row.failure);
      const error = failure ? [failure.message, failure.error_type, failure.code] : [];
      if (groups && !(failure && groups.has(fingerprintOfFailure(failure)))) return false;
      if (errorSays && !errorSays(error)) return false;
      return !says || says({ id: idOf(route, { alias, created_at, key }), type, body, error });
    },
    fitsArchived(json) {
      // Its failures were followed by a success.
      if (groups || errorSays || !says) return false;
      const job = JSON.parse(json) as ArchivedJob;
      return says({ id: idOfArchived(route, job), type: job.t, body: JSON.stringify(job.b), error: [] });
    },
    costOf: ({ body = '', failure }) => 1 + (body.length + (failure?.length ?? 0)) / CHARS_PER_JOB,
  };
}
