/** Paged lists as one sequence: the next page is requested when the caller has consumed the last one. */
import { type Moment, momentText } from '../producer/job';
import { wireName } from '../producer/names';
import { listOf, member } from './answers';
import { checked, pathTo, type Requests } from './requests';
import type { Send } from './transport';

export interface ListOptions {
  /** Entries in one request, 1 … 200. Default 100. */
  pageSize?: number | undefined;
  /** Stop after this many entries. */
  limit?: number | undefined;
}

const PAGE_SIZE = 100;

export interface ListRequest {
  path: string;
  /** The query parameters of the list, made when it is read. */
  conditions?: (() => URLSearchParams) | undefined;
  member: string;
}

/** Entries of a list with cursors. Each is returned at most once, even if entries move meanwhile. */
export async function* byCursor<T>(send: Send, list: ListRequest, options: ListOptions): AsyncGenerator<T> {
  const parameters = new URLSearchParams(list.conditions?.());
  yield* pages<T>(send, list, options, parameters, (page) => {
    const cursor = member(member(page, 'pagination'), 'nextCursor');
    if (typeof cursor !== 'string') return false;
    parameters.set('cursor', cursor);
    return true;
  });
}

/** Entries of a list that is read by offset. Entries created or deleted meanwhile may shift the pages. */
export async function* byOffset<T>(send: Send, list: ListRequest, options: ListOptions): AsyncGenerator<T> {
  const parameters = new URLSearchParams(list.conditions?.());
  let offset = 0;
  yield* pages<T>(send, list, options, parameters, (_, entries) => {
    offset += entries.length;
    parameters.set('offset', String(offset));
    return entries.length > 0;
  });
}

/** @param turn writes the way to the next page into `parameters`; false: there is none */
async function* pages<T>(
  send: Send,
  { path, member: name }: ListRequest,
  { pageSize = PAGE_SIZE, limit = Number.POSITIVE_INFINITY }: ListOptions,
  parameters: URLSearchParams,
  turn: (page: unknown, entries: readonly T[]) => boolean,
): AsyncGenerator<T> {
  parameters.set('limit', String(Math.max(1, Math.min(pageSize, limit))));
  let left = limit;
  while (left > 0) {
    const page = await send('GET', `${path}?${parameters}`);
    const entries = listOf<T>(page, name, 'the list');
    for (const entry of entries) {
      if (left-- <= 0) return;
      yield entry;
    }
    if (member(member(page, 'pagination'), 'hasMore') !== true || !turn(page, entries)) return;
  }
}

type Condition = string | number | boolean | Date | readonly string[] | undefined;

/** The conditions of a list: those of a query, checked against these names. */
export function matching<T extends { [Name in keyof T]: Condition }>(query: T, names: Record<keyof T, unknown>) {
  return () => parametersFrom({ ...checked(query, names) } as Record<string, Condition>);
}

/** Query parameters of those conditions that have a value; `since` and `until` are moments. */
export function parametersFrom(conditions: Readonly<Record<string, Condition>>): URLSearchParams {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(conditions)) {
    const isMoment = name === 'since' || name === 'until';
    const text = isMoment ? momentText(value as Moment | undefined, name) : value;
    if (text !== undefined) parameters.set(wireName(name), Array.isArray(text) ? text.join(',') : String(text));
  }
  return parameters;
}

/** The calls that every collection has. @param listed the member of a page with its entries @param read gets one */
export const collection = <One, Listed = One>(
  requests: Requests,
  path: string,
  listed: string,
  read: (answer: unknown) => One,
) => ({
  list: (options: ListOptions = {}) => byCursor<Listed>(requests.safely, { path, member: listed }, options),
  get: async (id: string) => read(await requests.safely('GET', path + pathTo`/${id}`)),
  delete: async (id: string) => await requests.remove(path + pathTo`/${id}`),
});
