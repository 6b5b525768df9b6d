/** Requests for operations on all jobs that match a filter: with or without a key, on each job or on all or none. */
import { actOnMatches } from '../../across/act-on-matches';
import { countMatches } from '../../across/counts';
import { type OperateOptions, type OperationSummary, operate } from '../../across/operations';
import type { OperationPreview } from '../../contract/common';
import { optional, readBoolean } from '../../job/envelope/fields';
import type { Selection } from '../../job/filter';
import type { BulkAction, BulkAnswer } from '../../rpc/operations';
import { type Answer, type AppContext, json } from '../context';
import type { JsonObject } from '../request/body';
import { within } from '../request/bounds';
import { filterFromBody } from '../request/filter/read';
import { beginKeyed, REPLAYED } from '../request/idempotency';
import { integerParam } from '../request/query';
import { locationOf, renderPreview } from './render';

/** An operation that takes longer continues after the answer; seconds. */
const MAX_WAIT_S = 20;

/** How long the answer may wait for the end of an operation, ms: `wait` in seconds, 0 … 20, default 20. */
export const readWaitMs = (c: AppContext): number => (integerParam(c, 'wait', 0, MAX_WAIT_S) ?? MAX_WAIT_S) * 1000;

/** The answer to a request for a preview, else undefined. @throws {ApiError} 400 for `dry_run`, and as `select` */
export async function previewOf(
  c: AppContext,
  action: BulkAction,
  body: JsonObject,
  select: (now: number) => Selection,
): Promise<Answer<OperationPreview> | undefined> {
  if (optional(body, 'dry_run', readBoolean) !== true) return undefined;
  return json(c, renderPreview(action, await countMatches(c.env, action, within(c, select(Date.now())))));
}

/** {@link previewOf} for jobs named by `filter`. @throws {ApiError} as it does, and as {@link operateByFilter} */
export const previewByFilter = (c: AppContext, action: BulkAction, body: JsonObject): ReturnType<typeof previewOf> =>
  previewOf(c, action, body, (now) => {
    return filterFromBody(body.filter, now);
  });

interface Begun {
  summary: OperationSummary;
  headers: Record<string, string>;
}

/**
 * The operation of a request: begun, or, under an idempotency key, continued.
 * @param body the request, which may contain the key
 * @param select reads which jobs are meant, with ages counted from `now`. If an earlier request began the operation,
 * `until` is that time, so that later events do not count. Both epoch ms.
 * @returns the result up to now, and the headers of the answer
 * @throws {ApiError} 400 naming the member; 409 when the key was used for another request
 */
export async function operateOn(
  c: AppContext,
  action: BulkAction,
  body: JsonObject,
  select: (now: number, until?: number) => Selection,
  options: Pick<OperateOptions, 'items'> = {},
): Promise<Begun> {
  select(Date.now());
  const keyed = (await beginKeyed(c, body))?.operation;
  // Ages count from the beginning.
  const asked = keyed ? select(keyed.started_at, keyed.replayed ? keyed.started_at : undefined) : select(Date.now());
  const selection = within(c, asked);
  const summary = await operate(c.env, action, selection, readWaitMs(c), { ...options, keyed });
  return { summary, headers: { ...locationOf(summary), ...(keyed?.replayed && REPLAYED) } };
}

/** {@link operateOn} for jobs named by `filter`. @throws {ApiError} 400 also for a condition outside the filter */
export const operateByFilter = (
  c: AppContext,
  action: BulkAction,
  body: JsonObject,
  options: Pick<OperateOptions, 'items'> = {},
): Promise<Begun> => operateOn(c, action, body, (now) => filterFromBody(body.filter, now), options);

/** Acts on all jobs that match the `filter`, or on none. @throws {ApiError} those of {@link operateByFilter}; 422 */
export async function allOrNoneByFilter(
  c: AppContext,
  action: BulkAction,
  body: JsonObject,
): Promise<BulkAnswer & { replayed: boolean }> {
  filterFromBody(body.filter, Date.now());
  const keyed = await beginKeyed(c, body);
  const selection = within(c, filterFromBody(body.filter, keyed?.operation.started_at ?? Date.now()));
  const answer = await actOnMatches(c.env, action, selection, keyed);
  return { ...answer, replayed: answer.applied && keyed?.operation.replayed === true };
}
