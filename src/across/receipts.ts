/** The answers to producers about the jobs that they have enqueued. */
import { enlisted } from '../job/envelope/json-text';
import type { ParsedJob } from '../job/envelope/parse';
import { type Envelope, renderJob, renderReceipt, type Variables, writtenBody } from '../job/envelope/render';
import { writeJob } from '../job/envelope/write';
import { charsToTell } from '../job/message';
import type { JobBody } from '../job/record';
import type { Trace } from '../job/trace';
import type { UnknownMembers } from '../job/unknown-members';
import type { EnqueuedJob } from '../rpc/receipts';

/**
 * The envelope of an entry's job, which is that of another job when the entry was a duplicate.
 * @param repeated the trace of a repeated request: the job has that of the first one, so this one is left out
 */
function renderEnqueued(
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

/** The body of the entry, if it is that of the job. */
function bodyAsWritten({ record }: EnqueuedJob, entry: ParsedJob | undefined): JobBody | undefined {
  return entry?.job.body === record.body ? entry.body : undefined;
}

/**
 * Approximate characters of envelopes in one answer, after which jobs are shown briefly, whatever was asked for: those
 * of the largest request, and what the server adds to a thousand jobs.
 */
const MAX_WHOLE_CHARS = 18 * 1024 * 1024;

/**
 * The form of the jobs in one answer. Whole jobs repeat the content of their entries and show a retry policy that many
 * may have in common. So one answer could have many times the size of its request.
 */
export class Telling {
  private chars = 0;

  /**
   * @param isBrief only what the sender cannot know is wanted; a job that existed already is shown whole even then
   * @param repeated see {@link renderEnqueued}
   */
  constructor(
    private readonly variables: Variables,
    private readonly isBrief = false,
    private readonly repeated?: Trace,
  ) {}

  /** @param entry absent: the sender needs the whole job */
  envelope(view: EnqueuedJob, entry?: ParsedJob): Envelope {
    const { variables } = this;
    if (view.accumulated) {
      return { ...renderReceipt(view, variables, writtenBody(view.record)), accumulated: true };
    }
    if (entry && !view.deduplicated && (this.isBrief || this.isFull)) return renderReceipt(view, variables, entry.body);
    const envelope = renderEnqueued(view, entry, variables, this.isBrief ? undefined : this.repeated);
    if (this.isFull) delete envelope.retry_effective;
    this.chars += charsToTell(view.record) + charsOfPolicy(envelope.retry_effective);
    return envelope;
  }

  /** The same as JSON. */
  text(view: EnqueuedJob, entry: ParsedJob | undefined): string {
    const body = this.isFull ? undefined : bodyAsWritten(view, entry);
    if (!body) return JSON.stringify(this.envelope(view, entry));
    const text = writeJob(view, this.variables, body);
    this.chars += text.length;
    return text;
  }

  private get isFull(): boolean {
    return this.chars > MAX_WHOLE_CHARS;
  }
}

/** Of policies that jobs have in common. */
const policyChars = new WeakMap<object, number>();

function charsOfPolicy(policy: unknown): number {
  if (typeof policy !== 'object' || policy === null) return 0;
  const known = policyChars.get(policy);
  if (known !== undefined) return known;
  const chars = JSON.stringify(policy).length;
  policyChars.set(policy, chars);
  return chars;
}

/** The jobs of a batch, in the order of its entries, how many there are and how many of them are new. */
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
  const accumulated = views.filter((view) => view.accumulated).length;
  return {
    count: views.length,
    enqueued: views.length - deduplicated - accumulated,
    ...(deduplicated > 0 && { deduplicated }),
    ...(accumulated > 0 && { accumulated }),
    failed: 0,
  };
}

/**
 * The result of {@link renderBatch} for whole envelopes, as JSON: most jobs equal their entries, which are text
 * already.
 * @param members the other members of the answer
 */
export function writeBatch(
  views: readonly EnqueuedJob[],
  parsed: readonly ParsedJob[],
  variables: Variables,
  members: Record<string, unknown>,
): string {
  const telling = new Telling(variables);
  const jobs = views.map((view, index) => {
    const text = telling.text(view, parsed[index]);
    return view.deduplicated ? `${text.slice(0, -1)},"deduplicated":true}` : text;
  });
  return enlisted('{"jobs":[', jobs, `],${JSON.stringify({ ...countsOf(views), ...members }).slice(1)}`);
}

/** Different warnings in one answer, at most. */
const MAX_WARNINGS = 20;

/** A warning, or a job that may have one. */
export type Warned = string | Pick<EnqueuedJob, 'warning'>;

/** The warnings for producers, once each. @param unknown members of their request */
export function warningTexts(about: readonly Warned[], unknown?: UnknownMembers): string[] {
  const others = about.flatMap((one) => (typeof one === 'string' ? one : (one.warning ?? [])));
  const texts = [...(unknown?.warnings ?? []), ...others];
  return texts.length === 0 ? texts : [...new Set(texts)].slice(0, MAX_WARNINGS);
}

/** The fullest of the nearly full queues. */
export function fullestOf(jobs: readonly EnqueuedJob[]): EnqueuedJob['pressure'] {
  const pressures = jobs.flatMap(({ pressure }) => pressure ?? []);
  return pressures.sort((a, b) => b.depth / b.bound - a.depth / a.bound)[0];
}
