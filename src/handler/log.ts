/** Log lines of a handler: one JSON object each, bound to the job that runs. */
import { ignoreRejection } from '../job/thrown';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** One line, before it is written. */
export interface LogLine {
  level: LogLevel;
  message: string;
  [field: string]: unknown;
}

/** Takes a finished line. An error that it throws or rejects with is ignored: logging never fails a job. */
export type LogSink = (line: LogLine) => void;

/**
 * Writes lines about one job.
 *
 * @example
 * ctx.log.info('sent', { recipient: 'a@example.com' });
 * // {"level":"info","message":"sent","recipient":"a@example.com","job_id":"…","type":"email.send","attempt":1}
 */
export type Logger = Record<LogLevel, (message: string, fields?: Record<string, unknown>) => void>;

/** Takes what a handler says: level, message and its own fields. */
type Keep = (level: LogLevel, message: string, fields: Record<string, unknown>) => void;

/** Writes a line to the console, at the console's own level. A line that is not JSON is reduced to its text parts. */
export const consoleSink: LogSink = (line) => {
  console[line.level](textOf(line));
};

function textOf(line: LogLine): string {
  try {
    return JSON.stringify(line);
  } catch {
    const flat = Object.entries(line).filter(([, value]) => typeof value === 'string' || typeof value === 'number');
    return JSON.stringify(Object.fromEntries(flat));
  }
}

/** A logger whose lines carry `bound`, which no field replaces. @param keep takes each line without `bound` */
export function createLogger(sink: LogSink, bound: Record<string, unknown>, keep?: Keep): Logger {
  const at =
    (level: LogLevel) =>
    (message: string, fields: Record<string, unknown> = {}): void => {
      try {
        keep?.(level, message, fields);
        ignoreRejection(sink({ ...fields, ...bound, level, message }));
      } catch {
        // A log line must not fail a job.
      }
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
