/** Jobs that arrive many at once: every one is read before any is written. */
import { atIndex, invalidRequest, payloadTooLarge } from '../errors';
import { readObject } from './fields';
import { MAX_BATCH_SIZE } from './names';
import type { ParseContext, ParsedJob } from './parse';

/** The entries of a list of jobs. @throws {ApiError} 400; 413 when they are too many */
export function entriesIn(body: Record<string, unknown>, name: 'jobs' | 'events'): unknown[] {
  const entries = body[name];
  if (!Array.isArray(entries)) throw invalidRequest(name, `${name} is required and must be an array.`);
  if (entries.length === 0) throw invalidRequest(name, `${name} must have at least one entry.`);
  if (entries.length > MAX_BATCH_SIZE) throw payloadTooLarge(name, entries.length, MAX_BATCH_SIZE, name);
  return entries;
}

/** Reads every entry. @param name of their list; empty: the body is it @throws {ApiError} with `details.index` */
export const parseEach = (
  entries: readonly unknown[],
  name: string,
  parse: (entry: Record<string, unknown>, ctx: ParseContext) => ParsedJob,
  ctx: ParseContext,
): ParsedJob[] =>
  entries.map((entry, index) => {
    const path = `${name}[${index}]`;
    try {
      return parse(readObject(entry, path), { ...ctx, path });
    } catch (error) {
      throw atIndex(error, index);
    }
  });
