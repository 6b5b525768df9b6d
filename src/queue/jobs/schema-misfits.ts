/** Jobs that do not match the schema of their type: the `schemas` setting of their queue decides about them. */
import { type SentJobs, unpack } from '../../job/message';
import type { NewJob } from '../../job/record';
import type { EnqueuedJob } from '../../rpc/receipts';
import { type SchemaMode, schemasChanged, schemaValidation, warningOf } from '../../schemas/misfit';
import { isOutdated } from '../../schemas/stamp';
import type { Configured } from '../store/parts';

const MAX_WARNED = 10;

/** The jobs that a producer sent. @throws {ApiError} 503 if validated by outdated schemas; their sender handles that */
export function taken(q: Configured, sent: SentJobs): NewJob[] {
  const jobs = unpack(sent);
  const stamp = q.config.defaults?.schemas;
  if (stamp && jobs.some(({ validated }) => isOutdated(validated?.stamp, stamp))) throw schemasChanged();
  return jobs;
}

/** A schema applies from the moment on at which the queue received it. */
const modeOf = ({ config: { settings, defaults } }: Configured): SchemaMode =>
  defaults?.schemas === undefined ? 'off' : (settings.schemas ?? 'warn');

/** @throws {ApiError} 400 if the queue is strict */
export function refuseMisfit(q: Configured, { type, validated }: NewJob): void {
  if (validated?.misfits && modeOf(q) === 'strict') throw schemaValidation(type, validated.misfits);
}

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
