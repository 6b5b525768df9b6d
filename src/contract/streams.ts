/** Output streams of a job: chunks that its handler writes while it runs, kept as long as the job. */
import type { AttemptName } from './common';
import { get, JOB_REPORTS, type Media, post } from './route';

/** `open` until the job has ended. */
type StreamState = 'open' | 'completed' | 'failed' | 'cancelled';

export interface JobStream {
  name: string;
  /** Rises with each execution of the writer. The stream has what the last one wrote. */
  run: number;
  chunks: number;
  bytes: number;
  /** The step that writes. Absent: the handler, outside of steps. */
  step?: string;
}

export interface JobStreams {
  job_id: string;
  streams: JobStream[];
}

/** A page of a stream, up to 1 MiB. */
export interface StreamPage {
  job_id: string;
  name: string;
  state: StreamState;
  /** Null: the stream has not begun. If it is not the run of `after`, the chunks are from the beginning. */
  run: number | null;
  /** Texts, or other JSON. */
  chunks: unknown[];
  /** Pass it as `after` for what follows; null: the job has ended, and this is all. */
  next: string | null;
}

/** A chunk: the event `chunk`. Its id is the place to come back to. */
export interface StreamChunk {
  chunk: unknown;
}

/** The writer executes again: the event `reset`. Forget what came before. */
export interface StreamReset {
  run: number;
}

/** The job has ended, and with it the stream: the event `end`. */
export interface StreamEnd {
  state: Exclude<StreamState, 'open'>;
}

/** Chunks to write, with the attempt that writes them. */
export interface StreamWrite extends AttemptName {
  /** The number of the first of these chunks: the writer counts from 0. What is known already is passed over. */
  first: number;
  /** Texts or other JSON, up to 256 KiB each and 1 MiB together. */
  chunks: unknown[];
  /** Counts the executions of the writer within this attempt, from 0 (default). A higher one starts over. */
  execution?: number;
  /** The step that writes. Absent: the handler, outside of steps. */
  step?: string;
  /** Write now, rather than within a second: for the last chunks. Costs a row. */
  flush?: boolean;
}

/** The chunks are written. */
export interface StreamWritten {
  job_id: string;
  name: string;
  run: number;
  /** The number of the next chunk. */
  next: number;
}

interface StreamQuery {
  /** The id of a chunk: only what follows. Default 0: everything. The header `Last-Event-ID` means the same. */
  after?: string;
}

/** Below `/ojs/v1`. */
export const streams = {
  /** Lists the output streams of a job. */
  list: get<{ 200: JobStreams; errors: 404 }>('/jobs/:id/streams', { token: 'read', bound: 'job' }),
  /** Follows an output stream until its job ends. With `Accept: application/json`: a page of it. */
  show: get<{
    query: StreamQuery;
    fromServer: StreamChunk | StreamReset | StreamEnd;
    200: StreamPage | Media<'text/event-stream'>;
    errors: 404;
  }>('/jobs/:id/streams/:name', { token: 'read', bound: 'job' }),
  /** Writes chunks of an output stream. */
  write: post<{ body: StreamWrite; 200: StreamWritten; errors: 404 | 409 | 413 }>(
    '/jobs/:id/streams/:name',
    JOB_REPORTS,
  ),
};
