/** Pages of lists, and the cursors that lead from one page to the next. */
import { bytesOfBase64Url, unpaddedBase64UrlOf } from '../job/bytes';
import { isObject } from '../job/envelope/fields';
import { type ApiError, invalidRequest, unsupported } from '../job/errors';
import { MAX_ANSWER_BYTES } from '../job/size';

/** Bytes of a numbered page: it cannot end early, or the next number would skip jobs. */
export const MAX_WHOLE_PAGE = 2 * MAX_ANSWER_BYTES;

export interface Paging {
  limit: number;
  offset: number;
  /** From a former page; decoded by the list that made it. */
  cursor?: string;
  page?: number;
  /** Jobs looked at without a match at most, if that is less than the list's own bound. */
  most?: number;
}

/** Is the page numbered? Then it is given as a whole. */
export const isNumbered = ({ page, offset }: Paging): boolean => page !== undefined || offset > 0;

export interface PagePlace {
  total: number;
  hasMore: boolean;
  /** Leads to the next page, if there is one. */
  nextCursor: string | null;
}

/** The name or id after which a list continues. @throws {ApiError} 400 for a cursor of another list */
export function readAfter({ cursor }: Paging): string | undefined {
  if (cursor === undefined) return undefined;
  const { after } = decodeCursor(cursor);
  if (typeof after !== 'string') throw badCursor();
  return after;
}

/** Packs a position into an opaque text. */
export const encodeCursor = (position: Record<string, unknown>): string =>
  unpaddedBase64UrlOf(new TextEncoder().encode(JSON.stringify(position)));

/** Unpacks {@link encodeCursor}. @throws {ApiError} 400 when the text was not made by it */
export function decodeCursor(cursor: string): Record<string, unknown> {
  try {
    const position: unknown = JSON.parse(new TextDecoder().decode(bytesOfBase64Url(cursor)));
    if (isObject(position)) return position;
  } catch {
    // Falls through: whatever is wrong with it, it is not one of ours.
  }
  throw badCursor();
}

/** 422 for a page of this many jobs, larger than {@link MAX_WHOLE_PAGE}. @param orElse the client's alternative */
export function pageTooLarge(limit: number, orElse = ''): ApiError {
  const message = `A page of these ${limit} jobs would have more than ${MAX_WHOLE_PAGE} bytes.`;
  return unsupported(message, { limit, max_bytes: MAX_WHOLE_PAGE }, `Ask for fewer jobs per page${orElse}.`);
}

/** 400 for a cursor that does not belong to this list. */
export const badCursor = () => invalidRequest('cursor', 'cursor is not one of this list.');
