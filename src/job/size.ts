/** How large jobs are on their way, in bytes: a message between objects holds 32 MiB, and an isolate 128 MB. */
import { utf8Bytes } from './bytes';
import type { JobView } from './record';

/** Texts up to this many characters are not worth counting. */
const SHORT = 1024;

/** Beside its texts a job takes no more than this. */
const MEMBERS = 1024;

/** What one answer carries at most, unless a single job is larger. A text may take twice its bytes in a message. */
export const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** Maximum bytes of one claim, unless a single job is larger: memory holds some six times as much. */
export const MAX_CLAIM_BYTES = 4 * 1024 * 1024;

/** Maximum bytes of one page, unless a single job is larger: several pages may be in flight. */
export const MAX_PAGE_BYTES = 2 * 1024 * 1024;

/** Bytes of a text in UTF-8; of a short one, an upper bound. */
export const bytesOf = (text: string): number => (text.length <= SHORT ? 3 * text.length : utf8Bytes(text));

/** Items in order, in groups of at most `max` bytes and `most` items, or of one. @param joins may it follow a group? */
export function* grouped<T>(
  items: Iterable<T>,
  sizeOf: (item: T) => number,
  max: number,
  most = Number.POSITIVE_INFINITY,
  joins: (group: readonly [T, ...T[]], item: T) => boolean = () => true,
): Generator<[T, ...T[]]> {
  let group: [T, ...T[]] | undefined;
  let total = 0;
  for (const item of items) {
    const size = sizeOf(item);
    if (group && (total + size > max || group.length === most || !joins(group, item))) {
      yield group;
      group = undefined;
      total = 0;
    }
    if (group) group.push(item);
    else group = [item];
    total += size;
  }
  if (group) yield group;
}

/** Bytes of the jobs in one outbox message, unless a single one is larger: a row holds 2 MB. */
const MAX_OUTBOX_BYTES = 512 * 1024;

/** Jobs by the outbox message that carries them. @param sent what it has of one */
export const byMessage = <T>(jobs: Iterable<T>, sent: (job: T) => unknown): Generator<[T, ...T[]]> =>
  grouped(jobs, (job) => bytesOf(JSON.stringify(sent(job))), MAX_OUTBOX_BYTES);

/** Bytes of all that travels with a job: its body, result, error history, progress, checkpoint and steps. */
export function bytesOfView({ record }: JobView): number {
  const { body, result, history, progress_data, checkpoint, steps } = record;
  const shown = JSON.stringify([history, progress_data, checkpoint]);
  return MEMBERS + bytesOf(body) + bytesOf(shown) + bytesOf(result ?? '') + bytesOf(steps ?? '');
}

/** The first of these, at most `limit`. Asks for no more than it gives. */
export function first<T>(items: Iterable<T>, limit: number): T[] {
  const found: T[] = [];
  if (limit > 0) for (const item of items) if (found.push(item) === limit) break;
  return found;
}
