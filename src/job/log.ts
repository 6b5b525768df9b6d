import { utf8Bytes } from './bytes';
import { defined, type Reader, readInteger, readList, readObject, readString, readWord } from './envelope/fields';
import { readMembers, required } from './envelope/members';
import { boundedValue } from './envelope/storable';
import { cut } from './text';
import type { JobLogLine } from './wire';

export type LogLine = JobLogLine;

const LEVELS: readonly LogLine['level'][] = ['debug', 'info', 'warn', 'error'];

/** Lines that are kept of a job, of all its attempts. */
export const MAX_LOG_LINES = 100;
/** Bytes of JSON that they take together. */
export const MAX_LOG_BYTES = 32 * 1024;
/** Lines that one report may bring; of these the newest are kept. */
export const MAX_REPORTED_LINES = 1000;
/** Longest message in characters, and largest `fields` in characters of JSON. */
const MAX_MESSAGE = 4096;
const MAX_FIELDS = 8192;
const MAX_TIME = 8.64e15;

/** A line is counted whenever one is added to it. */
const counted = new WeakMap<LogLine, number>();

export function bytesOfLine(line: LogLine): number {
  const known = counted.get(line);
  if (known !== undefined) return known;
  const bytes = utf8Bytes(JSON.stringify(line)) + 1;
  counted.set(line, bytes);
  return bytes;
}

/** The recorded names that a run did not reach, where the line says so. */
export function driftOf({ level, fields }: LogLine): string[] | undefined {
  const drift = level === 'warn' ? fields?.drift : undefined;
  return Array.isArray(drift) ? drift.filter((name) => typeof name === 'string') : undefined;
}

/** The newest lines, within what is kept. Each run of a job may warn of the same drift: the last one is kept. */
export function newestLines(lines: readonly LogLine[]): LogLine[] {
  const kept: LogLine[] = [];
  let bytes = 0;
  const drifts = new Set<string>();
  for (let at = lines.length - 1; at >= 0 && kept.length < MAX_LOG_LINES; at--) {
    const line = lines[at] as LogLine;
    const drift = driftOf(line)?.join();
    if (drift !== undefined && drifts.has(drift)) continue;
    if (drift !== undefined) drifts.add(drift);
    const size = bytesOfLine(line);
    // One that is too long by itself is the only one that is lost.
    if (size > MAX_LOG_BYTES) continue;
    bytes += size;
    if (bytes > MAX_LOG_BYTES) break;
    kept.push(line);
  }
  return kept.reverse();
}

const readLineMembers = readMembers({
  at: readInteger(0, MAX_TIME),
  level: readWord(LEVELS),
  message: required(readString),
  fields: readObject,
});

/** Reads one line; texts that are too long are cut. @param now its time when it has none */
function readLine(now: number): Reader<LogLine> {
  return (value, field) => {
    const { at = now, level = 'info', message, fields } = readLineMembers(value, field);
    return defined({ at, level, message: cut(message, MAX_MESSAGE), fields: boundedValue(fields, MAX_FIELDS) });
  };
}

/** Reads the lines of a report. @throws {ApiError} 400 */
export function readLines(now: number): Reader<LogLine[]> {
  return readList(MAX_REPORTED_LINES, readLine(now));
}

/** The lines that a handler says: one that is none is left out, because its job must not suffer from it. */
export function heardLines(value: unknown, now: number): LogLine[] {
  if (!Array.isArray(value)) return [];
  const read = readLine(now);
  return value.slice(-MAX_LOG_LINES).flatMap((line: unknown) => {
    try {
      return [read(line, 'log')];
    } catch {
      return [];
    }
  });
}
