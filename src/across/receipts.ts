/** What producers are told of the jobs that they have enqueued. */
import type { ParsedJob } from '../job/envelope/parse';
import { type Envelope, renderJob, renderReceipt, type Variables } from '../job/envelope/render';
import { writeJob } from '../job/envelope/write';
import type { JobBody } from '../job/record';
import type { Trace } from '../job/trace';
import type { EnqueuedJob } from '../rpc/receipts';

/**
 * The envelope of an entry's job, which is that of another job when the entry was a duplicate.
 * @param repeated the trace of a request that only repeats an earlier one: the job has that of the earlier one, so this one
 *   is not told
 */
export function renderEnqueued(
  view: EnqueuedJob,
  entry: ParsedJob | undefined,
  variables: Variables,
  repeated?: Trace,
): Envelope {
  const envelope = renderJob(view, variables, bodyAsWritten(view, entry));
  const meta = envelope.meta as JobBody['meta'];
  if (repeated === undefined || meta.traceparent !== repeated.traceparent) return envelope;
  const { traceparent: _, tracestate: __, ...rest } = meta;
  return { ...envelope, meta: rest };
}

/** The body that the entry brought, if it is that of the job. */
function bodyAsWritten({ record }: EnqueuedJob, entry: ParsedJob | undefined): JobBody | undefined {
  return entry?.job.body === record.body ? entry.body : undefined;
}

/** As {@link renderEnqueued}, without what the entry brought. A job that existed already is told whole. */
export function renderBriefly(view: EnqueuedJob, entry: ParsedJob | undefined, variables: Variables): Envelope {
  if (!entry || view.deduplicated) return renderEnqueued(view, entry, variables);
  return renderReceipt(view, variables, entry.body);
}

/** The jobs of a batch, in the order of its entries, and how many of them are new. */
export function renderBatch(
  views: readonly EnqueuedJob[],
  render: (view: EnqueuedJob, index: number) => Envelope,
): Record<string, unknown> {
  const jobs = views.map((view, index) => {
    const envelope = render(view, index);
    if (view.deduplicated) envelope.deduplicated = true;
    return envelope;
  });
  return { jobs, ...countsOf(views) };
}

function countsOf(views: readonly EnqueuedJob[]): Record<string, number> {
  const deduplicated = views.filter((view) => view.deduplicated).length;
  return { enqueued: views.length - deduplicated, ...(deduplicated > 0 && { deduplicated }), failed: 0 };
}

/**
 * What {@link renderBatch} makes of whole envelopes, as JSON: most jobs say what their entries said, and that is text already.
 * @param members beside it
 */
export function writeBatch(
  views: readonly EnqueuedJob[],
  parsed: readonly ParsedJob[],
  variables: Variables,
  members: Record<string, unknown>,
): string {
  const jobs = views.map((view, index) => {
    const body = bodyAsWritten(view, parsed[index]);
    const text = body ? writeJob(view, variables, body) : JSON.stringify(renderJob(view, variables));
    return view.deduplicated ? `${text.slice(0, -1)},"deduplicated":true}` : text;
  });
  return `{"jobs":[${jobs.join(',')}],${JSON.stringify({ ...countsOf(views), ...members }).slice(1)}`;
}

/** Different warnings in one answer, at most. */
const MAX_WARNINGS = 20;

/** What producers are warned of, once each. */
export function warningTexts(jobs: readonly Pick<EnqueuedJob, 'warning'>[]): string[] {
  return [...new Set(jobs.flatMap(({ warning }) => warning ?? []))].slice(0, MAX_WARNINGS);
}

/** The fullest of the queues, of those that are nearly full. */
export function fullestOf(jobs: readonly EnqueuedJob[]): EnqueuedJob['pressure'] {
  const pressures = jobs.flatMap(({ pressure }) => pressure ?? []);
  return pressures.sort((a, b) => b.depth / b.bound - a.depth / a.bound)[0];
}
