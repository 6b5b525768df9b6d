/** What several parts of a queue's interface answer, and the key under which an answer is remembered. */
import type { RequestKey } from '../durable/inbox';
import { type Outcome, valuesOf } from '../job/errors';
import { isTable, type SentJobs } from '../job/message';
import type { Coalesced, JobRecord, LowerLayers } from '../job/record';
import { fromTable, type Table, toTable } from '../job/table';
import type { LimitStanding } from './limits';

/** What the producer needs to build its envelopes: one entry for each job, in the order given. */
export interface EnqueueReceipt {
  jobs: EnqueuedJob[];
}

/** The job that an entry of an enqueue has led to. */
export interface EnqueuedJob {
  /** Its body is empty if it equals that of the entry: the sender has that, and many do not fit into a message. */
  record: JobRecord;
  layers: LowerLayers;
  /** When a job with an empty body starts and expires, epoch ms. Relative times count from the first request. */
  scheduled_at?: number;
  expires_at?: number;
  /** It existed already, and the unique policy of the entry said to leave it at that. */
  deduplicated?: true;
  /** The entry has become a part of this job, stored or of an earlier entry. Its body has no arguments here. */
  accumulated?: true;
  /** What a job with an empty body stands for, if for more than the entry that brought the body. */
  coalesced?: Coalesced;
  /** In the first of a request: the queue is nearly full. */
  pressure?: QueuePressure;
  /** In the first of its type in a request: no handler takes the type, so the job will not run. For humans. */
  warning?: string;
  /** In the only one of a request: where it leaves the key that limits it. */
  standing?: LimitStanding;
}

/** A receipt in a message: as it is, or as columns where the jobs came as columns. */
export type SentReceipt = EnqueueReceipt | { records: Table<JobRecord>; rest: Table<Omit<EnqueuedJob, 'record'>> };

/** @param sent how the jobs came: an older sender reads no columns */
export function packReceipt(receipt: EnqueueReceipt, sent: SentJobs): SentReceipt {
  if (!isTable(sent)) return receipt;
  const rest = receipt.jobs.map(({ record: _, ...others }) => others);
  return { records: toTable(receipt.jobs.map(({ record }) => record)), rest: toTable(rest) };
}

export function unpackReceipt(sent: SentReceipt): EnqueueReceipt {
  if ('jobs' in sent) return sent;
  const jobs = fromTable(sent.rest) as EnqueuedJob[];
  for (const [index, record] of fromTable(sent.records).entries()) (jobs[index] as EnqueuedJob).record = record;
  return { jobs };
}

/** One outcome for each job of a request. */
export interface EachReceipt {
  outcomes: Outcome<EnqueuedJob>[];
  /** The answer is that of an earlier request. */
  replayed?: true;
}

/** {@link EachReceipt} in a message: as it is, or the receipt of those accepted, and the others by their place. */
export type SentEachReceipt = EachReceipt | SentOutcomes;

interface SentOutcomes extends Pick<EachReceipt, 'replayed'> {
  accepted: SentReceipt;
  refused: [index: number, outcome: Outcome<EnqueuedJob>][];
}

/** @param sent see {@link packReceipt} */
export function packOutcomes({ outcomes, ...rest }: EachReceipt, sent: SentJobs): SentEachReceipt {
  if (!isTable(sent)) return { outcomes, ...rest };
  const jobs = valuesOf(outcomes);
  const refused = [...outcomes.entries()].filter(([, { ok }]) => !ok);
  return { accepted: packReceipt({ jobs }, sent), refused, ...rest };
}

export function isAnyAccepted(sent: SentEachReceipt): boolean {
  if ('outcomes' in sent) return sent.outcomes.some(({ ok }) => ok);
  return 'jobs' in sent.accepted ? sent.accepted.jobs.length > 0 : sent.accepted.records.rows > 0;
}

export function unpackOutcomes(sent: SentEachReceipt): EachReceipt {
  if ('outcomes' in sent) return sent;
  const { accepted, refused, ...rest } = sent;
  const outcomes = unpackReceipt(accepted).jobs.map((value): Outcome<EnqueuedJob> => ({ ok: true, value }));
  for (const [index, outcome] of refused) outcomes.splice(index, 0, outcome);
  return { outcomes, ...rest };
}

/** How full a bounded queue is, in the unit of the bound that is nearer. */
export interface QueuePressure {
  /** Jobs that have not ended, or bytes of their bodies. */
  depth: number;
  bound: number;
}

export interface QueueStatus {
  name: string;
  paused: boolean;
  draining: boolean;
  /** Epoch ms of the last change. */
  changed_at: number;
  /** It was in this mode already: nothing was changed. */
  unchanged?: true;
}

/** A request that may be sent again. */
export type IdempotencyKey = RequestKey;

export interface RememberedAnswer<T = EnqueueReceipt> {
  idempotency: IdempotencyKey;
  receipt: T;
}
