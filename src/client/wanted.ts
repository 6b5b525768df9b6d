/** What a worker that runs asks for: jobs of which types, from which queues, and how many. */
import type { Registry } from '../handler/registry';
import type { Wanted } from './pull-types';
import type { FetchOptions } from './puller';

/** Most jobs that a fetch brings. */
const MAX_COUNT = 100;

/** Most types that a fetch may name. */
const MAX_TYPES = 1000;

/** Longest settings of handlers, in characters of JSON; the server takes 64 KiB. */
const MAX_HANDLERS_CHARS = 48 * 1024;

const TOO_MANY =
  'The handlers have too many retry settings: the policies of the queues are used, and jobs come one by one.';

/** The handlers' types, if few enough to name, and their retries. @param leavesOthers takes no other types */
export function wantedBy(registry: Registry, leavesOthers: boolean, complain: (error: unknown) => void): Wanted {
  const all = leavesOthers ? registry.typeNames() : undefined;
  const types = all && all.length <= MAX_TYPES ? all : undefined;
  const handlers = registry.settings(types === undefined);
  const fits = handlers.length <= MAX_TYPES && JSON.stringify(handlers).length <= MAX_HANDLERS_CHARS;
  if (!fits) complain(new TypeError(TOO_MANY));
  return { ...(types && { types }), ...(fits && { handlers }) };
}

export type Source = Pick<FetchOptions, 'queues' | 'count' | 'counts'>;

/** @param open the queues to fetch from @param room for more jobs, in all @returns undefined: there is no room */
export function sourceOf(
  own: readonly string[],
  open: readonly string[],
  room: number,
  roomIn: (queue: string) => number,
): Source | undefined {
  const rooms = open.flatMap((queue) => (roomIn(queue) > 0 ? [[queue, roomIn(queue)] as const] : []));
  if (room <= 0 || rooms.length === 0) return undefined;
  const all = rooms.reduce((sum, [, one]) => sum + one, 0);
  const count = Math.min(room, MAX_COUNT, all);
  const limited = rooms.length > 1 ? rooms.filter(([, one]) => one < count) : [];
  return {
    count,
    ...(rooms.length < own.length && { queues: rooms.map(([queue]) => queue) }),
    ...(limited.length > 0 && { counts: Object.fromEntries(limited) }),
  };
}
