/** The failed jobs of many queues in groups of equal failures: how many, and when the first and the last. */
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { defined, isObject } from '../job/envelope/fields';
import { isQueueName } from '../job/envelope/names';
import { unwrap } from '../job/errors';
import { FAILURE_STATES, type FailureGroup, type FailuresPlace, type FailuresRequest } from '../rpc/failures';
import { queueObject } from '../rpc/stubs';
import { badCursor, decodeCursor, encodeCursor } from './paging';
import { busiestQueues, queuesOf } from './queues';

/** Jobs looked at for one answer, in all queues; and the minimum for each queue. */
const MAX_LOOKED = 20_000;
const LEAST_OF_QUEUE = 500;

/** Queues asked at a time. */
const WIDTH = 10;

export interface FailureSelection extends Omit<FailuresRequest, 'from' | 'budget'> {
  /** Absent: all queues. */
  queues?: readonly string[];
}

export interface FailureGroupAcross extends FailureGroup {
  count: number;
  /** The queues that have some, those with most first. */
  queues: string[];
}

export interface FailuresFound {
  groups: FailureGroupAcross[];
  /** Jobs looked at, including those of the answers before. */
  searched: number;
  /** Queues that were not asked, because there are too many: those that change least. */
  leftOut: number;
  /** The cursor of the remaining failures; null: these were all. */
  cursor: string | null;
}

/**
 * Groups the newest failures of each queue. @param cursor of an incomplete answer: groups of the rest
 * @throws {ApiError} 400 for a cursor of another list; 422 when more queues are named than may be asked
 */
export async function findFailures(env: Env, selection: FailureSelection, cursor?: string): Promise<FailuresFound> {
  const { queues: named, ...request } = selection;
  const start = cursor === undefined ? undefined : readCursor(cursor);
  const { names: queues, leftOut } = start
    ? { names: [...start.places.keys()].filter((name) => named?.includes(name) !== false), leftOut: start.leftOut }
    : named
      ? { names: await queuesOf(env, { queues: named }), leftOut: 0 }
      : await busiestQueues(env);
  const budget = Math.max(LEAST_OF_QUEUE, Math.floor(MAX_LOOKED / Math.max(1, queues.length)));
  const groups = new Map<string, FailureGroupAcross & { counts: Map<string, number> }>();
  const rest: [string, FailuresPlace][] = [];
  let searched = start?.searched ?? 0;
  await inParallel(
    queues,
    async (queue) => {
      const from = start?.places.get(queue);
      const object = queueObject(env, queue);
      const asked = defined({ ...request, budget, from });
      // An object of the version before knows no groups, and must not leave them out.
      const part = unwrap(await (asked.groups ? object.failureGroups(asked) : object.failures(asked)));
      searched += part.looked;
      if (part.next) rest.push([queue, part.next]);
      for (const group of part.groups) {
        const known = groups.get(group.fingerprint);
        const count = FAILURE_STATES.reduce((sum, state) => sum + group[state], 0);
        if (known) merge(known, group);
        const merged = known ?? { ...group, count: 0, queues: [], counts: new Map<string, number>() };
        merged.count += count;
        merged.counts.set(queue, count);
        groups.set(group.fingerprint, merged);
      }
    },
    WIDTH,
  );
  const found = [...groups.values()].map(({ counts, ...group }) => ({
    ...group,
    queues: [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).map(([name]) => name),
  }));
  return {
    groups: found,
    searched,
    leftOut,
    cursor: rest.length === 0 ? null : encodeCursor({ places: rest, searched, leftOut }),
  };
}

function merge(known: FailureGroup, other: FailureGroup): void {
  for (const state of FAILURE_STATES) known[state] += other[state];
  known.first_seen_at = Math.min(known.first_seen_at, other.first_seen_at);
  if (other.last_seen_at <= known.last_seen_at) return;
  const { last_seen_at, job_id, failure } = other;
  Object.assign(known, { last_seen_at, job_id, failure });
}

function readCursor(cursor: string): { places: Map<string, FailuresPlace>; searched: number; leftOut: number } {
  const { places, searched, leftOut = 0 } = decodeCursor(cursor);
  if (!Array.isArray(places) || typeof searched !== 'number' || typeof leftOut !== 'number') throw badCursor();
  for (const entry of places) {
    const [queue, place] = Array.isArray(entry) ? (entry as unknown[]) : [];
    if (typeof queue !== 'string' || !isQueueName(queue) || !isPlace(place)) throw badCursor();
  }
  return { places: new Map(places as [string, FailuresPlace][]), searched, leftOut };
}

function isPlace(value: unknown): value is FailuresPlace {
  if (!isObject(value)) return false;
  if (value.state === 'retrying') return value.before === undefined || Number.isSafeInteger(value.before);
  if (value.state !== 'dead' && value.state !== 'discarded') return false;
  const { at } = value;
  return at === undefined || (isObject(at) && Number.isSafeInteger(at.at) && Number.isSafeInteger(at.key));
}
