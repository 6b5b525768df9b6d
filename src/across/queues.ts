/** Which queues one request asks: at most some, so lists continue, and requests about all queues must name them. */
import type { Env } from '../config';
import { defined } from '../job/envelope/fields';
import { type ApiError, unsupported } from '../job/errors';
import { type BusiestQueues, type KnownQueue, MAX_QUEUES_AT_ONCE, type QueueListRequest } from '../rpc/directory';
import { directoryObject } from '../rpc/stubs';
import { encodeCursor, type PagePlace, type Paging, readAfter } from './paging';

/** The names of the next queues after this one, as many as may be asked at once. @param named only among these */
export async function nextQueues(
  env: Env,
  after: string | undefined,
  named?: readonly string[],
): Promise<{ names: string[]; more: boolean }> {
  if (named) {
    const rest = [...new Set(named)].sort().filter((name) => after === undefined || name > after);
    return { names: rest.slice(0, MAX_QUEUES_AT_ONCE), more: rest.length > MAX_QUEUES_AT_ONCE };
  }
  const request = { limit: MAX_QUEUES_AT_ONCE, ...(after !== undefined && { after }) };
  const { queues, more } = await directoryObject(env).list(request);
  return { names: queues.map(({ name }) => name), more };
}

/** A page of the queues, by name. @throws {ApiError} 400 for a cursor of another list */
export async function listKnown(
  env: Env,
  paging: Paging,
  meant: Pick<QueueListRequest, 'part' | 'names'>,
): Promise<PagePlace & { queues: KnownQueue[] }> {
  const { limit, offset } = paging;
  const request = defined({ ...meant, limit, offset, after: readAfter(paging) });
  const { queues, total, more } = await directoryObject(env).list(request);
  const last = queues.at(-1)?.name;
  return { queues, total, hasMore: more, nextCursor: last === undefined ? null : encodeCursor({ after: last }) };
}

/** Names of all queues that exist. @throws {ApiError} 422 when there are too many to ask them all */
export async function knownQueues(env: Env): Promise<string[]> {
  const { names, more } = await nextQueues(env, undefined);
  if (more) throw tooManyQueues();
  return names;
}

/** All queues; if they are too many for one request, the busiest of them, and how many were left out. */
export async function busiestQueues(env: Env): Promise<BusiestQueues> {
  const names = await knownIfFew(env);
  return names ? { names, leftOut: 0 } : await directoryObject(env).busiest();
}

/** Names of all queues that exist; undefined when there are too many to ask them all. */
export async function knownIfFew(env: Env): Promise<string[] | undefined> {
  const { names, more } = await nextQueues(env, undefined);
  return more ? undefined : names;
}

/** The queues that a selection names, else all. @throws {ApiError} 422 if they are too many */
export async function queuesOf(env: Env, { queues }: { queues?: readonly string[] | undefined }): Promise<string[]> {
  if (!queues) return knownQueues(env);
  const names = [...new Set(queues)];
  if (names.length > MAX_QUEUES_AT_ONCE) throw tooManyQueues();
  return names;
}

export async function* allQueues(env: Env): AsyncGenerator<KnownQueue[]> {
  let after: string | undefined;
  for (;;) {
    const request = { limit: MAX_QUEUES_AT_ONCE, ...(after !== undefined && { after }) };
    const { queues, more } = await directoryObject(env).list(request);
    yield queues;
    after = queues.at(-1)?.name;
    if (!more) return;
  }
}

const tooManyQueues = (): ApiError =>
  unsupported(
    `This would read more than ${MAX_QUEUES_AT_ONCE} queues with one request.`,
    { field: 'queue', max_queues: MAX_QUEUES_AT_ONCE },
    'Name the queues to read.',
  );
