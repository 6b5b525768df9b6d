/** Which requests may create queues: any. But the number is bounded for keys that are not administrators. */
import { admitQueues } from '../../across/new-queues';
import type { AppContext } from '../context';

/** Its maximum length: it is kept in the attachment of a socket. */
const MAX_CREATOR = 100;

/** The caller under which the queues that it creates are counted; undefined: unbounded. */
export function creatorOf(c: AppContext): string | undefined {
  const caller = c.get('caller');
  if (!caller || caller.open || caller.scopes.includes('admin:write')) return undefined;
  return (caller.name ?? caller.key_hint ?? undefined)?.slice(0, MAX_CREATOR);
}

/**
 * Call before a request that may create these queues. @throws {ApiError} 429 when its key has created too many today
 */
export async function mayCreate(c: AppContext, queues: Iterable<string>): Promise<void> {
  await admitQueues(c.env, creatorOf(c), queues);
}
