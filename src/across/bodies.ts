/** Puts the bodies back into the jobs of a receipt: the queue has returned only what it decided. */
import { parseExactly } from '../job/envelope/exact';
import type { JobBody, NewJob } from '../job/record';
import type { EnqueuedJob } from '../rpc/receipts';

/** @param sent the content of each entry, in the order of the jobs @param jobs unshared: their bodies are set */
export function withBodies(sent: readonly NewJob[], jobs: EnqueuedJob[]): EnqueuedJob[] {
  // A unique entry may stand for the job of an earlier entry, which has the body.
  const known = sent.some(({ unique }) => unique !== undefined) ? new Map<string, string>() : undefined;
  for (const [index, job] of jobs.entries()) {
    const { record } = job;
    if (record.body !== '') continue;
    record.body = known?.get(record.id) ?? bodyAsKept(sent[index] as NewJob, job);
    known?.set(record.id, record.body);
  }
  return jobs;
}

export const withBody = (sent: NewJob, job: EnqueuedJob): EnqueuedJob => withBodies([sent], [job])[0] as EnqueuedJob;

/** The body with the queue's times: those of the first request in a repeated answer, or of the job it replaces. */
function bodyAsKept(sent: NewJob, { scheduled_at, expires_at, coalesced }: EnqueuedJob): string {
  if (sent.scheduledAt === scheduled_at && sent.expiresAt === expires_at && !coalesced) return sent.body;
  const { scheduled_at: _, expires_at: __, ...body } = parseExactly(sent.body) as JobBody;
  return JSON.stringify({ ...body, coalesced, scheduled_at, expires_at });
}
