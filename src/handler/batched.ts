/** Handlers that take many jobs in one call. The queue gathers these jobs, for a limited time. */
import type { ChunkSettings } from '../job/chunk';
import type { Duration } from '../producer/envelope';
import { durationMs } from './duration';
import { isObject } from './protocol';
import type { BatchedHandler, BatchFunction } from './types';

/** How jobs are gathered for a handler. */
export interface BatchedOptions {
  /** Jobs in a call at most, 1 … 1000; and 4 MiB of them. */
  size: number;
  /** How long the oldest job may wait for others, up to an hour. */
  wait: Duration;
  /** All jobs of a call have the same group. Default: they may have several. */
  by?: 'group' | undefined;
}

/** Under this name a chunked handler is in its object; registered, because bundles may hold several copies of this. */
const BATCH = Symbol.for('tocsin.batch');

export interface Batch {
  settings: ChunkSettings;
  run: BatchFunction;
}

const OPTIONS = ['size', 'wait', 'by'];
const MAX_SIZE = 1_000;
const MAX_WAIT_MS = 3_600_000;

/**
 * Makes a chunked handler: one call gets up to `size` jobs of its type, as soon as that number waits, or the
 * oldest has waited for `wait`.
 *
 * @throws {TypeError} when an option cannot be
 * @example
 * export default defineHandlers({
 *   'rows.insert': batched({ size: 100, wait: '5s', by: 'group' }, async (jobs: readonly Job<[Row]>[], ctx) => {
 *     const saved = await insert(jobs.map(({ args: [row] }) => row));
 *     for (const [n, job] of jobs.entries()) if (!saved[n]) ctx.fail(job, new Error('refused'));
 *   }),
 * });
 */
export function batched<Args extends readonly unknown[] = unknown[], Result = unknown, Env = unknown>(
  options: BatchedOptions,
  run: BatchFunction<Args, Result, Env>,
): BatchedHandler<Args, Result, Env> {
  const settings = settingsOf(options);
  if (typeof run !== 'function') throw new TypeError('batched: the second argument must be a function');
  return { [BATCH]: { settings, run } } as unknown as BatchedHandler<Args, Result, Env>;
}

/** What a chunked handler is made of; undefined for any other value. */
export const batchOf = (handler: unknown): Batch | undefined =>
  isObject(handler) ? (Reflect.get(handler, BATCH) as Batch | undefined) : undefined;

function settingsOf(options: unknown): ChunkSettings {
  if (!isObject(options)) throw new TypeError('batched: the first argument must be an object with size and wait');
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) {
    throw new TypeError(`batched: unknown option ${JSON.stringify(unknown)}; known are ${OPTIONS.join(', ')}`);
  }
  const { size, wait, by } = options;
  if (typeof size !== 'number' || !Number.isInteger(size) || size < 1 || size > MAX_SIZE) {
    throw new TypeError(`batched: size must be a whole number of 1 to ${MAX_SIZE}, not ${String(size)}`);
  }
  const wait_ms = durationMs(wait);
  if (wait_ms === undefined || wait_ms > MAX_WAIT_MS) {
    throw new TypeError(`batched: wait must be a duration of up to an hour, such as "5s", not ${JSON.stringify(wait)}`);
  }
  if (by !== undefined && by !== 'group') {
    throw new TypeError(`batched: by must be "group", or be left out, not ${JSON.stringify(by)}`);
  }
  return by === undefined ? { size, wait_ms } : { size, wait_ms, by };
}
