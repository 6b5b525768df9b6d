/** Jobs in answers. */
import { usableConfig } from '../../config';
import type { ParsedJob } from '../../job/envelope/parse';
import { type Envelope, flatten, renderJob, renderReceipt } from '../../job/envelope/render';
import type { JobBody, JobView } from '../../job/record';
import type { Trace } from '../../job/trace';
import type { EnqueuedJob } from '../../rpc/receipts';
import { type AppContext, json } from '../context';

/** The envelope of a job. */
export function envelopeOf(c: AppContext, view: JobView): Envelope {
  return renderJob(view, usableConfig(c.env).retryVariables);
}

/** Answers a job under `job`, and flat for clients that look there. */
export function answerJob(c: AppContext, view: JobView): Response {
  const envelope = envelopeOf(c, view);
  return json(c, { job: envelope, ...flatten(envelope) });
}

/**
 * The envelope of an entry's job, which is that of another job when the entry was a duplicate.
 * @param repeated the trace of a request that only repeats an earlier one: the job has that of the earlier one, so this one
 *   is not told
 */
export function renderEnqueued(
  view: EnqueuedJob,
  entry: ParsedJob | undefined,
  variables: Parameters<typeof renderJob>[1],
  repeated?: Trace,
): Envelope {
  const asWritten = entry !== undefined && entry.job.body === view.record.body;
  const envelope = renderJob(view, variables, asWritten ? entry.body : undefined);
  const meta = envelope.meta as JobBody['meta'];
  if (repeated === undefined || meta.traceparent !== repeated.traceparent) return envelope;
  const { traceparent: _, tracestate: __, ...rest } = meta;
  return { ...envelope, meta: rest };
}

/** As {@link renderEnqueued}, without what the entry brought. A job that existed already is told whole. */
export function renderBriefly(
  view: EnqueuedJob,
  entry: ParsedJob | undefined,
  variables: Parameters<typeof renderJob>[1],
): Envelope {
  if (!entry || view.deduplicated) return renderEnqueued(view, entry, variables);
  return renderReceipt(view, variables, entry.body);
}

/** The headers for an answer to an enqueue; none where nothing is limited. */
export function limitHeaders(jobs: readonly EnqueuedJob[]): Record<string, string> {
  const standing = jobs[0]?.standing;
  return {
    ...pressureHeaders(jobs),
    ...(standing && {
      'X-RateLimit-Limit': String(standing.limit),
      'X-RateLimit-Remaining': String(standing.remaining),
      'X-RateLimit-Reset': String(Math.ceil(standing.resets_at / 1000)),
    }),
  };
}

/** Different warnings in one answer, at most. */
const MAX_WARNINGS = 20;

/** What producers are warned of, once each: members of the body, and headers (RFC 7234, 5.5). Both empty where all is well. */
export function warningsOf(jobs: readonly Pick<EnqueuedJob, 'warning'>[]): {
  members: { warnings?: string[] };
  headers: Record<string, string>;
} {
  const warnings = [...new Set(jobs.flatMap(({ warning }) => warning ?? []))].slice(0, MAX_WARNINGS);
  if (warnings.length === 0) return { members: {}, headers: {} };
  return {
    members: { warnings },
    headers: { Warning: warnings.map((text) => `299 - ${quotedString(text)}`).join(', ') },
  };
}

/** A text in a header: what is not printable ASCII shows as a question mark. */
function quotedString(text: string): string {
  return `"${text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}

/** How full the fullest of the queues is, of those that are nearly full. */
function pressureHeaders(jobs: readonly EnqueuedJob[]): Record<string, string> {
  const pressures = jobs.flatMap(({ pressure }) => pressure ?? []);
  const [fullest] = pressures.sort((a, b) => b.depth / b.bound - a.depth / a.bound);
  if (!fullest) return {};
  return {
    'X-OJS-Queue-Depth': String(fullest.depth),
    'X-OJS-Queue-Bound': String(fullest.bound),
    'X-OJS-Queue-Pressure': String(Math.min(1, Math.round((100 * fullest.depth) / fullest.bound) / 100)),
  };
}
