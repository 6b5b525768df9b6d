/** The log lines of a run that its queue does not have yet: the last ones, within bounds. */
import { safely } from '../job/thrown';
import type { JobLogLine } from '../job/wire';
import type { LogLevel } from './log';
import { clip } from './text';

export interface LogEntry extends JobLogLine {}

/** The queue keeps no more of a job: the newest lines, and their JSON in bytes. */
const MAX_LINES = 100;
const MAX_BYTES = 32_768;
/** Longest message of a line, in characters. */
const MAX_MESSAGE = 4_096;
/** Largest fields of a line, in characters of JSON. */
const MAX_FIELDS = 8_192;

export class Journal {
  #lines: { entry: LogEntry; bytes: number }[] = [];
  #bytes = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param send takes lines while the run continues; absent: at its end @param afterMs how long they are gathered */
  constructor(
    private readonly send?: (lines: LogEntry[]) => void,
    private readonly afterMs = 0,
  ) {}

  /** Adds a line; the oldest ones make room. */
  add(entry: LogEntry): void {
    const bytes = new TextEncoder().encode(JSON.stringify(entry)).length;
    this.#lines.push({ entry, bytes });
    this.#bytes += bytes;
    while (this.#lines.length > MAX_LINES || this.#bytes > MAX_BYTES) this.#bytes -= this.#lines.shift()?.bytes ?? 0;
    if (this.send) this.#timer ??= setTimeout(() => this.send?.(this.take()), this.afterMs);
  }

  take(): LogEntry[] {
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#lines.map(({ entry }) => entry);
    this.#lines = [];
    this.#bytes = 0;
    return lines;
  }
}

/** A line within its bounds. Fields that are not JSON, or too large, are left out and said so. */
export function logEntry(at: number, level: LogLevel, message: unknown, fields: Record<string, unknown>): LogEntry {
  const text = clip(String(message), MAX_MESSAGE);
  if (Object.keys(fields).length === 0) return { at, level, message: text };
  return { at, level, message: text, fields: bounded(fields) };
}

function bounded(fields: Record<string, unknown>): Record<string, unknown> {
  const json = safely(() => JSON.stringify(fields), undefined);
  if (json === undefined) return { truncated: true, reason: 'not JSON' };
  return json.length > MAX_FIELDS ? { truncated: true, original_length: json.length } : JSON.parse(json);
}
