/** Whole queues as files: out of a deployment, and into one. */
import { get, type Media, post } from './route';

/** What an export takes along. */
export interface ExportQuery {
  /** With jobs that have ended, which are left out otherwise. Dead letters are always there. */
  ended?: boolean;
}

/** How a file is imported. */
export interface ImportQuery {
  /**
   * The queue may have other jobs. A job that it has is left out. Its settings stay. Parts are not counted: each job
   * that is not there comes in.
   */
  merge?: boolean;
  /** Checks the file, and only says what would be imported. */
  dry_run?: boolean;
  /** The hash of the first part of the file, where the request begins with a later one. */
  file?: string;
  /** Lines of the file between its header and the first part of the request, for messages about lines. */
  after_line?: number;
}

/** What an import has come to. */
export interface Imported {
  queue: string;
  dry_run: boolean;
  /** Parts that the request had, and the number of the last one; 0: it had none. */
  parts: number;
  last_part: number;
  /** It had the end of the file. */
  complete: boolean;
  /** Jobs that came in. */
  imported: number;
  /** Jobs that were there already, or in parts that were imported before. */
  known: number;
  /** Jobs whose ids take a row each: they were chosen by producers, or their numbers are not free here. */
  id_rows: number;
  /** Schedules that came in. */
  schedules: number;
  /**
   * What could not be taken over, and how often: `id_in_another_queue`, `schedule_exists` (one of that name, which is
   * different), `settings` (the queue has its own, because of `merge`).
   */
  not_kept: Record<string, number>;
}

/** Below `/ojs/v1/admin`. */
export const exports = {
  /**
   * Reads a whole queue: its settings, its jobs in the order of their numbers, its schedules. Nothing is redacted, so a
   * key that is not shown everything may not read it.
   */
  read: get<{ query: ExportQuery; 200: Media<'application/x-ndjson'>; errors: 403 | 404 | 409 }>(
    '/queues/:name/export',
    { scope: 'admin:export' },
  ),
  /**
   * Takes the parts of a file, each whole and once it was checked. A file whose import was cut off continues
   * behind its last part. Needs an empty queue, unless `merge` is said.
   */
  write: post<{
    query: ImportQuery;
    body: Media<'application/x-ndjson'>;
    200: Imported;
    errors: 403 | 409 | 422;
  }>('/queues/:name/import', { audit: 'queue.import', scope: 'admin:export' }),
};
