/** Fingerprints: what is equal as JSON has the same one. */

import { hexOf, sha256Of } from '../bytes';
import { isRawNumber } from '../envelope/exact';

/** JSON in which equal values are equal text: members sorted as RFC 8785 has it, text in Unicode NFC. */
export function canonicalJson(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.normalize('NFC'));
  if (typeof value !== 'object' || value === null || isRawNumber(value)) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const members = Object.entries(value).map(
    ([name, member]) => [name.normalize('NFC'), name, canonicalJson(member)] as const,
  );
  // Two names that normalise to the same one are distinguished by how they were written.
  members.sort(([a, rawA], [b, rawB]) => compare(a, b) || compare(rawA, rawB));
  return `{${members.map(([name, , member]) => `${JSON.stringify(name)}:${member}`).join(',')}}`;
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** SHA-256 of the canonical JSON, 64 hexadecimal digits. */
export const fingerprintOf = async (dimensions: Record<string, unknown>): Promise<string> =>
  hexOf(await sha256Of(canonicalJson(dimensions)));
