import { readList, readString } from '../../job/envelope/fields';
import { MAX_BATCH_SIZE } from '../../job/envelope/names';
import { invalidRequest, payloadTooLarge } from '../../job/errors';
import type { JsonObject } from './body';

/** A final action must be confirmed. @throws {ApiError} 400 unless `confirm` is true */
export function requireConfirmation(confirm: unknown): void {
  if (confirm === true) return;
  throw invalidRequest('confirm', 'confirm must be true: this cannot be undone.');
}

/** The jobs that a request names, at most 1000. @throws {ApiError} 400; 413 above that, counted in `unit` */
export function readIds(value: unknown, field: string, unit: string): string[] {
  if (Array.isArray(value) && value.length > MAX_BATCH_SIZE) {
    throw payloadTooLarge(field, value.length, MAX_BATCH_SIZE, unit);
  }
  return readList(MAX_BATCH_SIZE, readString)(value, field);
}

/** `atomic`: all or none. `partial`, the default: as many as possible. @throws {ApiError} 400 */
export function readAtomicity({ atomicity }: JsonObject): 'atomic' | 'partial' {
  if (atomicity === undefined || atomicity === null) return 'partial';
  if (atomicity === 'atomic' || atomicity === 'partial') return atomicity;
  throw invalidRequest('atomicity', 'atomicity must be "partial" or "atomic".');
}
