import { invalidConfiguration } from './errors';

/** A variable's entries, separated by commas or spaces. @throws {ApiError} 500 unless it is text */
export function readListVariable(name: string, value: unknown): string[] {
  if (value === undefined || value === null) return [];
  if (typeof value === 'string') return value.split(/[\s,]+/).filter(Boolean);
  const message = `${name}: must be text, with commas or spaces between its entries.`;
  throw invalidConfiguration(message, { variable: name });
}
