/** Pages of lists: `limit` with `cursor` or `offset`, or `page` with `per_page`. */
import { encodeCursor, type PagePlace, type Paging, readAfter } from '../../across/paging';
import type { Extent, Pagination } from '../../contract/common';
import { also } from '../../ojs/names';
import type { AppContext } from '../context';
import { integerParam, textParam } from './query';

/** Beyond this, a list is read with its cursor. */
const MAX_OFFSET = 100_000;

/** Default pages: 50 at a time, or in operators' lists 20. */
export type PagingStyle = 'limit' | 'page';

/** Reads the paging parameters; values out of bounds are clamped. @throws {ApiError} 400 for other than integers */
export function readPaging(c: AppContext, style: PagingStyle = 'limit'): Paging {
  const page = integerParam(c, 'page', 1, MAX_OFFSET);
  const perPage = integerParam(c, 'per_page', 1, 100);
  if (page !== undefined || perPage !== undefined) {
    const limit = perPage ?? 20;
    return { limit, offset: ((page ?? 1) - 1) * limit, page: page ?? 1 };
  }
  const cursor = textParam(c, 'cursor');
  return {
    limit: integerParam(c, 'limit', 1, 200) ?? (style === 'page' ? 20 : 50),
    offset: integerParam(c, 'offset', 0, MAX_OFFSET) ?? 0,
    ...(cursor !== undefined && { cursor }),
  };
}

/** The `pagination` member of a list, with the keys of both styles. */
export const pagination = (paging: Paging, { total, hasMore, nextCursor }: PagePlace): Pagination =>
  also('Pagination', {
    total,
    limit: paging.limit,
    offset: paging.offset,
    page: paging.page ?? Math.floor(paging.offset / paging.limit) + 1,
    has_more: hasMore,
    next_cursor: hasMore ? nextCursor : null,
  });

/** The members of a list besides its items. @param page `atLeast`: `total` is a lower bound; `searched`: by a search */
export function listMembers(
  paging: Paging,
  page: PagePlace & { atLeast?: boolean; searched?: number },
): Extent & { total: number; pagination: Pagination } {
  const exact: Extent = page.atLeast ? { total_is_exact: false } : {};
  return { total: page.total, ...exact, ...searchMembers(page), pagination: pagination(paging, page) };
}

/** The progress of a search: jobs looked at, and where to continue if these were not all. */
export function searchMembers({
  searched,
  hasMore,
  nextCursor,
}: Omit<PagePlace, 'total'> & { searched?: number }): Pick<Extent, 'searched' | 'more' | 'cursor'> {
  if (searched === undefined) return {};
  return { searched, more: hasMore, cursor: hasMore ? nextCursor : null };
}

/** A page of a complete list, in its order, and the page's position. */
export function pageOf<T>(all: readonly T[], { offset, limit }: Paging): PagePlace & { items: T[] } {
  const items = all.slice(offset, offset + limit);
  return { items, total: all.length, hasMore: all.length > offset + items.length, nextCursor: null };
}

/**
 * A page of a complete list, in the order of its names. Its cursor is the last name shown, so that pages do not shift
 * when entries come and go.
 * @throws {ApiError} 400 for a cursor of another list
 */
export function pageByName<T>(sorted: readonly T[], nameOf: (item: T) => string, paging: Paging) {
  const after = readAfter(paging);
  const passed = after === undefined ? 0 : sorted.filter((item) => nameOf(item) <= after).length;
  const start = passed + paging.offset;
  const items = sorted.slice(start, start + paging.limit);
  const last = items.at(-1);
  const hasMore = sorted.length > start + items.length;
  const nextCursor = last === undefined ? null : encodeCursor({ after: nameOf(last) });
  const total = sorted.length;
  return { items, total, pagination: pagination(paging, { total, hasMore, nextCursor }) };
}
