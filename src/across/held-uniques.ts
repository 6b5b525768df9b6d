/** Unique jobs that conflict with new ones, over all queues: by the name of the queue, then by fingerprint. */
import type { Env } from '../config';
import { invalidRequest } from '../job/errors';
import { queueObject } from '../rpc/stubs';
import type { HeldUnique, UniquePlace } from '../rpc/uniques';
import { badCursor, decodeCursor, encodeCursor, type PagePlace, type Paging } from './paging';
import { nextQueues } from './queues';

/** How deep a numbered page may be; beyond that, the list is read with its cursor. */
const MAX_DEPTH = 2_000;

/** Jobs looked at once the page is full, to count them all; and for a page that does not fill. */
const MAX_COUNTED = 5_000;
const MAX_LOOKED = 20_000;

export type HeldInQueue = HeldUnique & { queue: string };

/** A page; `atLeast`: not all were counted. */
export type HeldPage = PagePlace & { items: HeldInQueue[]; atLeast: boolean };

/** Where a page begins: after this job of this queue. */
interface Start {
  queue: string;
  place: UniquePlace;
}

/** After every fingerprint, which consist of hexadecimal digits. */
const AFTER_ALL: UniquePlace = { fingerprint: '~', key: 0 };

/** @param named only these queues @throws {ApiError} 400 for a page too far in, or a cursor of another list */
export async function listHeldUniques(
  env: Env,
  named: readonly string[] | undefined,
  paging: Paging,
): Promise<HeldPage> {
  const wanted = paging.offset + paging.limit;
  if (wanted > MAX_DEPTH) {
    throw invalidRequest('page', `page: numbered pages end at the ${MAX_DEPTH}th job; use cursor to continue.`);
  }
  const start = readStart(paging);
  const rest = await nextQueues(env, start?.queue, named);
  const queues = start ? [start.queue, ...rest.names] : rest.names;
  const items: HeldInQueue[] = [];
  let [total, looked] = [0, 0];
  let seen: Start | undefined;
  const mustStop = () => looked > (total > wanted ? MAX_COUNTED : MAX_LOOKED);
  for (const queue of queues) {
    let after = start?.queue === queue ? start.place : undefined;
    do {
      if (mustStop()) break;
      const part = await queueObject(env, queue).heldUniques(MAX_DEPTH, after);
      for (const item of part.items) if (total++ < wanted) items.push({ ...item, queue });
      looked += part.looked;
      after = part.next;
      seen = { queue, place: after ?? AFTER_ALL };
    } while (after);
  }
  const isAll = !rest.more && !mustStop();
  const shown = items.slice(paging.offset);
  const last = shown.at(-1);
  // A page that could not be filled continues where looking stopped.
  const end = total >= wanted && last ? { queue: last.queue, place: last } : seen;
  return {
    items: shown,
    total,
    atLeast: !isAll || start !== undefined,
    hasMore: total > wanted || !isAll,
    nextCursor: end ? encodeCursor({ queue: end.queue, unique: end.place.fingerprint, key: end.place.key }) : null,
  };
}

function readStart({ cursor }: Paging): Start | undefined {
  if (cursor === undefined) return undefined;
  const { queue, unique, key } = decodeCursor(cursor);
  if (typeof queue !== 'string' || typeof unique !== 'string' || typeof key !== 'number') throw badCursor();
  return { queue, place: { fingerprint: unique, key } };
}
