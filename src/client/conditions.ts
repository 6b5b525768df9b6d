/** Conditions of a query. One that is overlooked would extend the request to more jobs, or to all. */
import { InvalidJobError } from '../producer/errors';

/**
 * The query, once each condition exists and has a value. @param names all conditions; the compiler checks that
 * @throws {InvalidJobError} for a name that is not a condition, and for undefined, null, NaN or an empty list
 */
export function checked<T extends object>(query: T, names: Readonly<Record<keyof T, unknown>>): T {
  for (const [name, value] of Object.entries(query)) {
    if (!Object.hasOwn(names, name)) {
      throw invalid(`${name.slice(0, 64)} is not a condition; there are ${Object.keys(names).join(', ')}.`, name);
    }
    if (Array.isArray(value) && value.length === 0) throw invalid(`${name} must not be an empty list.`, name);
    if (value !== undefined && value !== null && !Number.isNaN(value)) continue;
    throw invalid(`${name} must have a value: leave it out to choose regardless of it.`, name);
  }
  return query;
}

/** The error for an invalid query, before anything is sent. */
export function invalid(message: string, field: string): InvalidJobError {
  return new InvalidJobError(message, { status: 0, code: 'invalid_request', retryable: false, details: { field } });
}
