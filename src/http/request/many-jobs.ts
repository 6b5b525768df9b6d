/** Checks of requests about many jobs. An overlooked condition would extend an operation to more jobs, or to all. */
import { readList, readString } from '../../job/envelope/fields';
import { MAX_BATCH_SIZE } from '../../job/envelope/names';
import { invalidRequest, payloadTooLarge } from '../../job/errors';
import type { AppContext } from '../context';
import type { JsonObject } from './body';
import { isCondition } from './filter/from-body';

/**
 * Refuses unknown members and query parameters, where no filter may mean everything.
 * @param members known members of the body
 * @param query known parameters
 * @throws {ApiError} 400 naming the first one
 */
export function refuseUnknown(c: AppContext, body: JsonObject, members: readonly string[], query: string[] = []): void {
  const known = [...members, 'idempotency_key'];
  const member = Object.keys(body).find((name) => !known.includes(name));
  if (member !== undefined) {
    throw invalidRequest(member, `${member}: is not known here; conditions go into ${members.join(' or ')}.`);
  }
  const parameter = Object.keys(c.req.query()).find((name) => ![...query, 'wait', 'access_token'].includes(name));
  if (parameter !== undefined) throw invalidRequest(parameter, `${parameter}: is not a parameter of this operation.`);
}

/**
 * Refuses conditions outside the filter, or in the query. Other unknown members are ignored, as everywhere.
 * @throws {ApiError} 400 naming the first one
 */
export function refuseConditionsOutsideFilter(c: AppContext, body: JsonObject): void {
  const outside =
    Object.keys(body).find((name) => isCondition(name) && body[name] !== null) ??
    Object.keys(c.req.query()).find(isCondition);
  if (outside === undefined) return;
  throw invalidRequest(outside, `${outside}: a condition belongs in filter; here it would be ignored.`);
}

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
