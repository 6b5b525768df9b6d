/** Jobs that do not fit the schema of their type, in the queue that they go to: its setting `schemas` decides what becomes of them. */
import { type SentJobs, unpack } from '../../job/message';
import type { NewJob } from '../../job/record';
import { type SchemaMode, schemasChanged, schemaValidation, warningOf } from '../../job/schemas/misfit';
import { isOutdated } from '../../job/schemas/stamp';
import type { EnqueuedJob } from '../../rpc/receipts';
import type { Configured } from '../store/parts';

/** Jobs of one request that are warned of at most. */
const MAX_WARNED = 10;

/**
 * The jobs that a producer sent.
 * @throws {ApiError} 503 when they were validated by other schemas than those of now; their sender understands that
 */
export function taken(q: Configured, sent: SentJobs): NewJob[] {
  const jobs = unpack(sent);
  const stamp = q.config.defaults?.schemas;
  if (stamp && jobs.some(({ validated }) => isOutdated(validated?.stamp, stamp))) throw schemasChanged();
  return jobs;
}

/** What a schema says counts from the moment on at which the queue has heard of schemas. */
function modeOf({ config: { settings, defaults } }: Configured): SchemaMode {
  return defaults?.schemas === undefined ? 'off' : (settings.schemas ?? 'warn');
}

/** @throws {ApiError} 400 where the queue is strict */
export function refuseMisfit(q: Configured, { type, validated }: NewJob): void {
  if (validated?.misfits && modeOf(q) === 'strict') throw schemaValidation(type, validated.misfits);
}

/** Warns of jobs that were accepted all the same. */
export function warnOfMisfits(q: Configured, enqueued: readonly EnqueuedJob[], jobs: readonly NewJob[]): void {
  if (modeOf(q) !== 'warn') return;
  let left = MAX_WARNED;
  for (const [index, { type, validated }] of jobs.entries()) {
    const job = enqueued[index];
    if (!validated?.misfits || !job || job.deduplicated || left-- <= 0) continue;
    const warning = warningOf(type, validated.misfits);
    job.warning = job.warning === undefined ? warning : `${warning} ${job.warning}`;
  }
}
