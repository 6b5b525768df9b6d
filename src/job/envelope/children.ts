/** Jobs that the handler of another job enqueues: read as any producer's, and marked with whose they are. */

import { storableText } from '../attempt/notes';
import { eventualOutcomeOf, type Outcome, payloadTooLarge, unwrap } from '../errors';
import { refuseTooMuch } from '../message';
import { isObject, readList, readObject, withinBytes } from './fields';
import { MAX_BATCH_SIZE, MAX_ENVELOPE_BYTES } from './names';
import { type ParsedJob, parseJob, withFingerprint } from './parse';

export interface Parent {
  id: string;
  meta: Record<string, unknown>;
}

export const PARENT_ID = 'parent_id';
const TRACE = 'traceparent';

/** Reads the jobs. @throws {ApiError} 400, 413, 422 with `details.index` of the first wrong one */
export async function parseChildren(value: unknown, parent: Parent, now: number): Promise<ParsedJob[]> {
  const children = readList(Number.POSITIVE_INFINITY, readObject)(value, 'enqueue');
  if (children.length > MAX_BATCH_SIZE) throw payloadTooLarge('enqueue', children.length, MAX_BATCH_SIZE, 'jobs');
  const parsed = (await parseEachChild(children, parent, now)).map(unwrap);
  refuseTooMuch(parsed.map(({ job }) => job));
  return parsed;
}

/** Reads each job, or says what is wrong with it, with `details.index`. */
export const parseEachChild = (
  children: readonly Record<string, unknown>[],
  parent: Parent,
  now: number,
): Promise<Outcome<ParsedJob>[]> =>
  Promise.all(
    children.map((child, index) => {
      const path = `enqueue[${index}]`;
      return eventualOutcomeOf(async () => {
        return await withFingerprint(parseChild(child, parent, now, path));
      }, index);
    }),
  );

/** Reads one job. @param path of it in the request @throws {ApiError} 400, 413, 422 */
export function parseChild(child: Record<string, unknown>, parent: Parent, now: number, path: string): ParsedJob {
  withinBytes(storableText(child, path), MAX_ENVELOPE_BYTES, path);
  return parseJob(withParent(child, parent), { now, path });
}

/** The child with its parent's id in `meta`, and the parent's trace unless it has one of its own. */
function withParent(child: Record<string, unknown>, { id, meta }: Parent): Record<string, unknown> {
  const options = isObject(child.options) ? child.options : {};
  const own = options.meta ?? child.meta ?? {};
  // The reader of the job refuses anything but an object.
  if (!isObject(own)) return child;
  const trace = TRACE in own || typeof meta[TRACE] !== 'string' ? {} : { [TRACE]: meta[TRACE] };
  return { ...child, options: { ...options, meta: { ...own, ...trace, [PARENT_ID]: id } } };
}
