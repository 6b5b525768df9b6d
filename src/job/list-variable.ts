/** Variables of the deployment that are lists. */
import { invalidConfiguration } from './errors';

/**
 * The entries of a variable whose text separates them by commas or spaces; none when it is not set.
 * @throws {ApiError} 500 `invalid_configuration` for anything but text: a rule that is overlooked would not hold
 */
export function readListVariable(name: string, value: unknown): string[] {
  if (value === undefined || value === null) return [];
  if (typeof value === 'string') return value.split(/[\s,]+/).filter(Boolean);
  const message = `${name}: must be text, with commas or spaces between its entries.`;
  throw invalidConfiguration(message, { variable: name });
}
