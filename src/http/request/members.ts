/** Refuses members of a body that the contract of its route does not name. */
import { invalidRequest } from '../../job/errors';
import { suggestion } from '../../job/near-miss';
import { cut } from '../../job/text';

/** Members by name: may they be null? */
export type KnownMembers = ReadonlyMap<string, boolean>;

const MAX_NAME = 64;

/** @throws {ApiError} 400 naming the first member that is not known, or null where that means nothing */
export function refuseMembers(body: Record<string, unknown>, known: KnownMembers): void {
  for (const [name, value] of Object.entries(body)) {
    const mayBeNull = known.get(name);
    if (mayBeNull === undefined) throw unknownName(name, 'is not a member of this request', [...known.keys()]);
    if (value !== null || mayBeNull) continue;
    throw invalidRequest(name, `${name} must not be null: leave it out, or give it a value.`);
  }
}

/** The error for a name that is not among `known`, with the one probably meant. @param path with a dot at its end */
export function unknownName(name: string, what: string, known: readonly string[], path = '') {
  const field = path + cut(name, MAX_NAME);
  const others = known.length === 0 ? 'it has none' : `there are ${known.join(', ')}`;
  return invalidRequest(field, `${field} ${what}; ${others}.${suggestion(name, known)}`);
}
