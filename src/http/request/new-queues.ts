/** Which requests may bring queues into being: any, but a key that is no administrator's only so many of them. */
import { admitQueues } from '../../across/new-queues';
import type { AppContext } from '../context';

/** Characters of it: it lies in the attachment of a socket. */
const MAX_CREATOR = 100;

/** By what the queues count that this caller creates; undefined: it may create any number. */
export function creatorOf(c: AppContext): string | undefined {
  const caller = c.get('caller');
  if (!caller || caller.open || caller.scopes.includes('admin:write')) return undefined;
  return (caller.name ?? caller.key_hint ?? undefined)?.slice(0, MAX_CREATOR);
}

/** Before a request that may create these queues. @throws {ApiError} 429 when its key has created too many today */
export async function mayCreate(c: AppContext, queues: Iterable<string>): Promise<void> {
  await admitQueues(c.env, creatorOf(c), queues);
}
