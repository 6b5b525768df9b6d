/** Bounds of a reported error. Longer texts are cut, never refused: refusing the report would run the job again. */
import { boundedValue } from '../envelope/storable';
import type { ReportedError } from '../record';
import { cut } from '../text';

export const MAX_ERROR_NAME = 255;
export const MAX_ERROR_MESSAGE = 8 * 1024;
const MAX_CLASSES = 32;
const MAX_DETAILS = 16 * 1024;

const MAX_STACK = 4 * 1024;

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
