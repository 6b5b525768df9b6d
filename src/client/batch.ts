/** Gathers enqueues into batches. A refused job gets its error, and the others of its batch are sent again. */
import type { JobEnvelope } from '../producer/envelope';
import { ConflictError, errorFor, InvalidJobError, type TocsinError } from '../producer/errors';
import type { PreparedJob } from '../producer/job';

/** Most bytes of a request body that a batch grows to; the server takes 16 MiB. */
const MAX_BODY_BYTES = 8 * 1024 * 1024;
/** After this many refusals the rest of a batch is sent job by job. */
const MAX_REFUSALS = 8;
/** Requests under way at once when jobs go one by one. */
const PARALLEL = 6;

const encoder = new TextEncoder();

/** Resolves with an envelope for each job, in order, or rejects for all of them. */
export type SendJobs = (jobs: PreparedJob[]) => Promise<JobEnvelope[]>;

interface Waiting {
  job: PreparedJob;
  resolve: (envelope: JobEnvelope) => void;
  reject: (error: unknown) => void;
}

export class Batcher {
  #waiting: Waiting[] = [];

  /** @param maxBatch jobs in a request, 1 … 1000 @param schedule calls its argument when the batch is due */
  constructor(
    private readonly send: SendJobs,
    private readonly maxBatch: number,
    private readonly schedule: (flush: () => void) => void,
  ) {}

  add(job: PreparedJob): Promise<JobEnvelope> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ job, resolve, reject });
      if (this.#waiting.length === 1) this.schedule(() => this.#flush());
    });
  }

  #flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const batch of split(waiting, this.maxBatch)) void this.#deliver(batch, 0);
  }

  /** Sends a batch until every entry has its outcome. Never rejects. */
  async #deliver(batch: Waiting[], refusals: number): Promise<void> {
    if (batch.length > 1 && refusals >= MAX_REFUSALS) return await this.#oneByOne(batch);
    try {
      const envelopes = await this.send(batch.map((entry) => entry.job));
      batch.forEach((entry, index) => void entry.resolve(envelopes[index] as JobEnvelope));
    } catch (error) {
      if (batch.length > 1 && isAboutOneJob(error)) await this.#withoutCulprit(batch, error, refusals + 1);
      else for (const entry of batch) entry.reject(error);
    }
  }

  async #withoutCulprit(batch: Waiting[], error: TocsinError, refusals: number): Promise<void> {
    const index = error.details.index;
    const culprit = typeof index === 'number' ? batch[index] : undefined;
    if (culprit) {
      culprit.reject(withoutIndex(error));
      const others = batch.filter((entry) => entry !== culprit);
      return await this.#deliver(others, refusals);
    }
    const half = Math.ceil(batch.length / 2);
    await Promise.all([this.#deliver(batch.slice(0, half), refusals), this.#deliver(batch.slice(half), refusals)]);
  }

  async #oneByOne(batch: Waiting[]): Promise<void> {
    const rest = [...batch];
    const lane = async (): Promise<void> => {
      for (let entry = rest.shift(); entry; entry = rest.shift()) await this.#deliver([entry], 0);
    };
    await Promise.all(Array.from({ length: PARALLEL }, lane));
  }
}

/** Batches of one queue: jobs with ids apart, for they may be sent again; jobs under an idempotency key alone. */
function split(waiting: Waiting[], maxBatch: number): Waiting[][] {
  const batches: Waiting[][] = [];
  const open = new Map<string, { batch: Waiting[]; bytes: number }>();
  for (const entry of waiting) {
    if (entry.job.idempotencyKey !== undefined) {
      batches.push([entry]);
      continue;
    }
    const key = `${entry.job.id === undefined ? 'new' : 'known'} ${entry.job.queue}`;
    const bytes = bytesOf(entry.job.json);
    let group = open.get(key);
    if (!group || group.batch.length >= maxBatch || group.bytes + bytes > MAX_BODY_BYTES) {
      group = { batch: [], bytes: 0 };
      open.set(key, group);
      batches.push(group.batch);
    }
    group.batch.push(entry);
    group.bytes += bytes;
  }
  return batches;
}

/** Bytes of a text in UTF-8; of a short one, an upper bound, which costs nothing. */
export const bytesOf = (text: string): number => (text.length <= 1024 ? 3 * text.length : encoder.encode(text).length);

/** Was one of the jobs refused, rather than all of the request? */
const isAboutOneJob = (error: unknown): error is TocsinError =>
  error instanceof InvalidJobError || error instanceof ConflictError;

/** The error of a batch of one, as if the job had been sent alone. */
export const asIfAlone = (error: unknown): unknown => (isAboutOneJob(error) ? withoutIndex(error) : error);

function withoutIndex(error: TocsinError): TocsinError {
  const { index, ...details } = error.details;
  const prefix = `jobs[${String(index)}].`;
  if (typeof details.field === 'string' && details.field.startsWith(prefix)) {
    details.field = details.field.slice(prefix.length);
  }
  const { status, code, requestId, retryable, hint } = error;
  return errorFor(error.message.replaceAll(prefix, ''), { status, code, requestId, retryable, hint, details });
}
