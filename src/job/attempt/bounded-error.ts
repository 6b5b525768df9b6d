/**
 * How much of a reported error is kept. A text that is too long is cut, never refused, whether a pushed handler or a
 * pulling worker reports it. The report ends an attempt, and refusing it would run the job again.
 */
import { boundedValue } from '../envelope/storable';
import type { ReportedError } from '../record';
import { cut } from '../text';

/** Longest `code`, `type` and class name, in characters. */
export const MAX_ERROR_NAME = 255;
/** Longest message, in characters. */
export const MAX_ERROR_MESSAGE = 8 * 1024;
/** Classes of an error that are looked at. */
const MAX_CLASSES = 32;
/** Largest `details`, in characters of JSON. */
const MAX_DETAILS = 16 * 1024;

/** Longest `stack`, in characters. */
const MAX_STACK = 4 * 1024;

/** The report with every text within its bound. */
export function boundedError<Report extends ReportedError>(report: Report): Report {
  const { code, type, message, classes, details, stack } = report;
  return {
    ...report,
    ...(code !== undefined && { code: cut(code, MAX_ERROR_NAME) }),
    ...(type !== undefined && { type: cut(type, MAX_ERROR_NAME) }),
    ...(message !== undefined && { message: cut(message, MAX_ERROR_MESSAGE) }),
    ...(classes !== undefined && { classes: classes.slice(0, MAX_CLASSES).map((name) => cut(name, MAX_ERROR_NAME)) }),
    ...(details !== undefined && { details: boundedValue(details, MAX_DETAILS) }),
    ...(stack !== undefined && { stack: cut(stack, MAX_STACK) }),
  };
}
