/** Jobs in messages between objects (at most 32 MiB): a text takes a byte a character, or two if one needs it. */
import { utf8Bytes } from './bytes';
import { payloadTooLarge } from './errors';
import type { JobRecord, NewJob } from './record';
import { columnOf, fromTable, type Table, toTable } from './table';

/** Most of what is stored of the jobs of one request, in bytes. */
export const MAX_JOBS_BYTES = 24 * 1024 * 1024;

/** Characters up to which jobs travel unpacked: twice that in bytes, and once more for members sent beside. */
const MAX_PLAIN_CHARS = 6 * 1024 * 1024;

/** Characters of jobs that existed before, in the answer to one request; a single job always fits. */
export const MAX_EXISTING_CHARS = 8 * 1024 * 1024;

/** Jobs whose bodies lie together, as UTF-8. */
export interface PackedJobs {
  /** Without their bodies. */
  jobs: NewJob[];
  bodies: Uint8Array;
  /** Where each body ends in `bodies`. */
  ends: number[];
}

/** Jobs that travel as columns from this number on; below, that costs more than it saves. */
const SHORTEST_TABLE = 4;

export type SentJobs = NewJob[] | Table<NewJob> | PackedJobs;

const charsOf = (jobs: readonly NewJob[]) => jobs.reduce((sum, { body }) => sum + body.length, 0);

/** Refuses what would not fit into a message, however it is sent. @throws {ApiError} 413 */
export function refuseTooMuch(jobs: readonly NewJob[]): void {
  if (charsOf(jobs) <= MAX_PLAIN_CHARS) return;
  let bytes = 0;
  for (const { body, retry } of jobs) {
    bytes += utf8Bytes(body) + (retry ? 2 * JSON.stringify(retry).length : 0);
  }
  if (bytes > MAX_JOBS_BYTES) throw payloadTooLarge('jobs', bytes, MAX_JOBS_BYTES);
}

function bytesOfTexts(texts: readonly string[]): number {
  // Up to U+00FF a character travels as one byte, if all of its text do.
  const isNarrow = (text: string) => !/[^\0-\xff]/.test(text);
  return texts.reduce((sum, text) => sum + (isNarrow(text) ? 1 : 2) * text.length, 0);
}

/** Refuses texts that do not fit into a message as they are. @throws {ApiError} 413 naming `field` */
export function refuseTooLong(texts: readonly string[], field: string): void {
  const bytes = bytesOfTexts(texts);
  if (bytes > MAX_JOBS_BYTES) throw payloadTooLarge(field, bytes, MAX_JOBS_BYTES);
}

export function pack(jobs: NewJob[]): SentJobs {
  if (charsOf(jobs) <= MAX_PLAIN_CHARS) return jobs.length < SHORTEST_TABLE ? jobs : toTable(jobs);
  const encoder = new TextEncoder();
  const texts = jobs.map(({ body }) => encoder.encode(body));
  const bodies = new Uint8Array(texts.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let end = 0;
  const ends = texts.map((text) => {
    bodies.set(text, end);
    end += text.byteLength;
    return end;
  });
  return { jobs: jobs.map((job) => ({ ...job, body: '' })), bodies, ends };
}

export function unpack(sent: SentJobs): NewJob[] {
  if (Array.isArray(sent)) return sent;
  if (isTable(sent)) return fromTable(sent);
  const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });
  let start = 0;
  return sent.jobs.map((job, index) => {
    const end = sent.ends[index] as number;
    const body = decoder.decode(sent.bodies.subarray(start, end));
    start = end;
    return { ...job, body };
  });
}

/** Do they travel as columns? Then their sender reads columns, too. */
export const isTable = (sent: SentJobs): sent is Table<NewJob> => 'columns' in sent;

export function uniquesIn(sent: SentJobs): (NewJob['unique'] | undefined)[] {
  if (isTable(sent)) return sent.columns.unique ? columnOf(sent, 'unique') : [];
  return ('jobs' in sent ? sent.jobs : sent).map(({ unique }) => unique);
}

/** Characters that an answer repeats of a job, apart from what is short. */
export function charsToTell({ body, result = '', history, progress_data }: JobRecord): number {
  const { errors } = history;
  return body.length + result.length + [errors, progress_data].reduce<number>((sum, value) => sum + charsIn(value), 0);
}

const charsIn = (value: unknown) => (value === undefined ? 0 : JSON.stringify(value).length);

/** 413: the existing jobs are too large for one answer. */
export const tooMuchToTell = (chars: number) =>
  payloadTooLarge('the jobs that exist already', chars, MAX_EXISTING_CHARS, 'characters');
