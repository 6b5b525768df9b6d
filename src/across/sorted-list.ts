/** Lists in another order than creation: they read every match, so they are refused beyond a number of jobs. */
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { defined } from '../job/envelope/fields';
import { type ApiError, invalidRequest, unsupported, unwrap } from '../job/errors';
import type { Selection } from '../job/filter';
import { inOrder } from '../job/order';
import type { JobView } from '../job/record';
import { bytesOfView } from '../job/size';
import type { SortedEntry, SortKey } from '../rpc/operations';
import { queueObject } from '../rpc/stubs';
import { badCursor, MAX_WHOLE_PAGE, type Paging, pageTooLarge } from './paging';
import { queuesOf } from './queues';

const MAX_LOOKED = 100_000;

const MAX_DEPTH = 10_000;

/** Queues read at a time: each may give as many entries as the depth of the page. */
const WIDTH = 5;

export interface SortOrder {
  sort: SortKey;
  descending: boolean;
}

interface Placed extends SortedEntry {
  queue: string;
}

/** Reads one page. @param render what to keep of each job @throws {ApiError} 400: too far in; 422: too many jobs */
export async function listSorted<T>(
  env: Env,
  selection: Selection,
  { sort, descending }: SortOrder,
  paging: Paging,
  render: (view: JobView) => T,
): Promise<{ items: T[]; total: number }> {
  const { filter } = selection;
  if (paging.cursor !== undefined) throw badCursor();
  const depth = paging.offset + paging.limit;
  if (depth > MAX_DEPTH) {
    throw invalidRequest('page', `page: a sorted list ends at its ${MAX_DEPTH}th job; narrow it with a filter.`);
  }
  const compare = inOrder(descending);
  let first: Placed[] = [];
  let total = 0;
  let looked = 0;
  await inParallel(
    await queuesOf(env, selection),
    async (queue) => {
      let before: number | undefined;
      do {
        const request = defined({ filter, sort, descending, limit: depth, before });
        const part = unwrap(await queueObject(env, queue).sorted(request));
        total += part.matched;
        looked += part.looked;
        first = [...first, ...part.entries.map((entry) => ({ ...entry, queue }))].sort(compare).slice(0, depth);
        before = part.next;
        if (looked > MAX_LOOKED || (before !== undefined && looked === MAX_LOOKED)) throw tooMany(sort);
      } while (before !== undefined);
    },
    WIDTH,
  );
  return { items: await readAll(env, first.slice(paging.offset), render), total };
}

/** The jobs of these entries, in order. A job that has gone meanwhile is left out. */
async function readAll<T>(env: Env, entries: readonly Placed[], render: (view: JobView) => T): Promise<T[]> {
  const found = new Map<string, T>();
  let bytes = 0;
  for (const [queue, group] of Map.groupBy(entries, (entry) => entry.queue)) {
    for (let left = group.map(({ id }) => id); left.length > 0; ) {
      const { jobs, omitted } = await queueObject(env, queue).getMany(left);
      for (const view of jobs) {
        bytes += bytesOfView(view);
        if (bytes > MAX_WHOLE_PAGE) throw pageTooLarge(entries.length);
        found.set(view.record.id, render(view));
      }
      left = omitted;
    }
  }
  return entries.flatMap(({ id }) => found.get(id) ?? []);
}

const NARROWER = 'Narrow the list by queue and state, or omit sort and order: newest first has no such bound.';

function tooMany(sort: SortKey): ApiError {
  const message = `Sorting reads every job that may match, here more than ${MAX_LOOKED}.`;
  return unsupported(message, { field: 'sort', sort, max_jobs: MAX_LOOKED }, NARROWER);
}
