/** The answers to producers about the jobs that they have enqueued. */
import { enlisted } from '../job/envelope/json-text';
import type { ParsedJob } from '../job/envelope/parse';
import { PolicyRoom, renderJob, renderReceipt, type Variables, writtenBody } from '../job/envelope/render';
import { writeJob } from '../job/envelope/write';
import type { JobBody, Receipt } from '../job/record';
import type { Trace } from '../job/trace';
import type { UnknownMembers } from '../job/unknown-members';
import type { JobEnvelope } from '../job/wire';
import type { EnqueuedJob } from '../rpc/receipts';

/** @param repeated the trace of a repeated request: the job has that of the first one, so this one is left out */
function withoutTrace(envelope: JobEnvelope, repeated: Trace): JobEnvelope {
  if (repeated.traceparent !== envelope.meta.traceparent) return envelope;
  const { traceparent: _, tracestate: __, ...rest } = envelope.meta;
  return { ...envelope, meta: rest };
}

/** The body of the entry, if it is that of the job. */
const bodyAsWritten = ({ record }: EnqueuedJob, entry: ParsedJob | undefined): JobBody | undefined =>
  entry?.job.body === record.body ? entry.body : undefined;

/**
 * The form of the jobs in one answer. Its length follows from the request: whole jobs repeat their entries, jobs that
 * existed already are bounded where they are read, and policies that jobs share by their {@link PolicyRoom}.
 */
export class Telling {
  private readonly room = new PolicyRoom();

  /**
   * @param isBrief only what the sender cannot know is wanted; a job that existed already is shown whole even then
   * @param repeated see {@link withoutTrace}
   */
  constructor(
    private readonly variables: Variables,
    private readonly isBrief = false,
    private readonly repeated?: Trace,
  ) {}

  /** As its sender needs it. @param entry absent: the sender needs the whole job */
  envelope(view: EnqueuedJob, entry?: ParsedJob): JobEnvelope | Receipt {
    if (view.accumulated) return this.accumulated(view);
    return entry && !view.deduplicated && this.isBrief ? this.receipt(view, entry) : this.whole(view, entry);
  }

  /** The job that the entry has become a part of. */
  accumulated(view: EnqueuedJob): Receipt & { accumulated: true } {
    return { ...renderReceipt(view, this.variables, writtenBody(view.record)), accumulated: true };
  }

  receipt(view: EnqueuedJob, entry: ParsedJob): Receipt {
    return renderReceipt(view, this.variables, entry.body);
  }

  whole(view: EnqueuedJob, entry: ParsedJob | undefined): JobEnvelope {
    const envelope = renderJob(view, this.variables, bodyAsWritten(view, entry), this.room);
    return this.isBrief || !this.repeated ? envelope : withoutTrace(envelope, this.repeated);
  }

  text(view: EnqueuedJob, entry: ParsedJob | undefined): string {
    const body = bodyAsWritten(view, entry);
    return body ? writeJob(view, this.variables, body, this.room) : JSON.stringify(this.envelope(view, entry));
  }
}

/** The jobs of a batch, in the order of its entries, how many there are and how many of them are new. */
export function renderBatch(
  views: readonly EnqueuedJob[],
  render: (view: EnqueuedJob, index: number) => JobEnvelope | Receipt,
) {
  const jobs = views.map((view, index) =>
    view.deduplicated ? Object.assign(render(view, index), { deduplicated: true }) : render(view, index),
  );
  return { jobs, ...countsOf(views) };
}

function countsOf(views: readonly EnqueuedJob[]) {
  const deduplicated = views.filter((view) => view.deduplicated).length;
  const accumulated = views.filter((view) => view.accumulated).length;
  return {
    count: views.length,
    enqueued: views.length - deduplicated - accumulated,
    ...(deduplicated > 0 && { deduplicated }),
    ...(accumulated > 0 && { accumulated }),
    failed: 0 as const,
  };
}

/** {@link renderBatch} for whole envelopes, as JSON: most equal their entries. @param members others of the answer */
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
