/** Enqueues a validated batch into the queues it names. */
import { v7 as uuidv7 } from 'uuid';
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { ApiError, atIndex, duplicate, type Outcome, payloadTooLarge } from '../job/errors';
import { routeCandidate, routeOf } from '../job/ids';
import { charsToTell, MAX_EXISTING_CHARS, pack, tooMuchToTell } from '../job/message';
import type { NewJob } from '../job/record';
import { noteAwake } from '../rpc/awake-queues';
import { MAX_QUEUES_AT_ONCE } from '../rpc/directory';
import type { IdPlace } from '../rpc/ids';
import type { QueueApi } from '../rpc/queue';
import { type EnqueuedJob, type EnqueueReceipt, type IdempotencyKey, unpackReceipt } from '../rpc/receipts';
import { queueObject } from '../rpc/stubs';
import { allOrNothing, type Participants } from './all-or-nothing';
import { directoryRest } from './directory-backoff';
import { noteIds } from './ids';
import { homesOf } from './locate';

/** The queue in whose object this runs: it asks itself without a call. */
export interface Here {
  queue: string;
  object: Pick<QueueApi, 'enqueue' | 'recall' | 'spendRate'>;
}

export function takerOf(env: Env, queue: string, here: Here | undefined): Here['object'] {
  if (here?.queue !== queue) return queueObject(env, queue);
  noteAwake(queue);
  return here.object;
}

export interface BatchEntry {
  queue: string;
  job: NewJob;
}

export interface BatchGroup {
  queue: string;
  jobs: NewJob[];
  indexes: number[];
}

/** Refuses jobs for more queues than one request may ask, before it asks any. @throws {ApiError} 413 */
export function refuseTooManyQueues(entries: readonly BatchEntry[]): void {
  if (entries.length <= MAX_QUEUES_AT_ONCE) return;
  const { size } = new Set(entries.map(({ queue }) => queue));
  if (size > MAX_QUEUES_AT_ONCE) throw payloadTooLarge('jobs', size, MAX_QUEUES_AT_ONCE, 'queues');
}

/** Groups the entries of a batch by queue, in order. @param entries missing ones are left out, places stay */
export function groupByQueue(entries: readonly (BatchEntry | undefined)[]): BatchGroup[] {
  const groups = new Map<string, BatchGroup>();
  let last: BatchGroup | undefined;
  for (const [index, entry] of entries.entries()) {
    if (!entry) continue;
    const { queue, job } = entry;
    if (last?.queue !== queue) {
      last = groups.get(queue) ?? { queue, jobs: [], indexes: [] };
      groups.set(queue, last);
    }
    last.jobs.push(job);
    last.indexes.push(index);
  }
  return [...groups.values()];
}

/** Refuses client-chosen ids that another queue has, or that are used twice. @throws {ApiError} 409 `duplicate` */
export async function refuseTakenIds(env: Env, entries: readonly BatchEntry[]): Promise<void> {
  if (entries.every(({ job }) => job.id === undefined)) return;
  const seen = new Set<string>();
  for (const [index, { job }] of entries.entries()) {
    if (job.id === undefined) continue;
    if (seen.has(job.id)) throw duplicate(job.id, 'available', { index });
    seen.add(job.id);
  }
  const taken = await reserveIds(env, entries);
  for (const [index, { job }] of entries.entries()) {
    const state = job.id === undefined ? undefined : taken.get(job.id);
    if (state !== undefined) throw duplicate(job.id as string, state, { index });
  }
}

/** Notes chosen ids that do not name their job's queue. @returns ids that another queue has, with their jobs' states */
export async function reserveIds(
  env: Env,
  entries: readonly { queue: string; job: Pick<NewJob, 'id'> }[],
): Promise<Map<string, string>> {
  const places = entries.flatMap(({ queue, job }) => (job.id === undefined ? [] : [{ id: job.id, queue }]));
  if (places.length === 0) return new Map();
  const ids = places.map(({ id }) => id);
  const strangers = places.filter((place) => !seemsHome(place));
  const [homes, noted] = await Promise.all([knownHomes(env, ids), noteIds(env, strangers)]);
  const displaced = places.filter((place) => seemsHome(place) && homes.get(place.id) !== place.queue);
  const others = [...noted, ...(await noteIds(env, displaced))];
  const rivals = places.flatMap(({ id, queue }) => {
    const home = homes.get(id);
    return home === undefined || home === queue ? [] : [{ id, queue: home }];
  });
  const taken = await statesOf(env, [...rivals, ...others]);
  const doubtful = new Set(others.map(({ id }) => id));
  const free = places.filter(({ id }) => doubtful.has(id) && !taken.has(id));
  await noteIds(env, free, true);
  return taken;
}

/** As {@link homesOf}. Enqueues continue when the directory cannot be asked: then every id is noted. */
async function knownHomes(env: Env, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const note = (error: unknown) => console.error('tocsin: the directory could not be asked about ids:', error);
  return (await directoryRest(env).ask(() => homesOf(env, ids), note)) ?? new Map();
}

/** Does the id name this queue, unless another queue with the same hash of its name was there first? */
const seemsHome = ({ id, queue }: IdPlace): boolean => routeOf(id) === routeCandidate(queue, 0);

/** The states of those of these jobs that are where they may be. */
async function statesOf(env: Env, places: readonly IdPlace[]): Promise<Map<string, string>> {
  const states = new Map<string, string>();
  await inParallel([...Map.groupBy(places, ({ queue }) => queue)], async ([queue, group]) => {
    const { jobs, omitted } = await queueObject(env, queue).getMany(group.map(({ id }) => id));
    for (const { record } of jobs) states.set(record.id, record.state);
    for (const id of omitted) states.set(id, 'available');
  });
  return states;
}

export interface BatchOptions {
  /** UUIDv7 under which fingerprints are reserved; the id of the batch, if it needs one. */
  ticket?: string | undefined;
  /** Jobs that the decision cancels; then even one queue prepares and decides. */
  replaced?: readonly IdPlace[] | undefined;
  /** Adds the existing jobs that entries stand for. */
  complete?: ((jobs: readonly EnqueuedJob[]) => EnqueuedJob[]) | undefined;
  /** The answer is remembered under this key, by the first queue. */
  idempotency?: IdempotencyKey | undefined;
  here?: Here | undefined;
}

/** Enqueues every group, or none; jobs in batch order. @throws {ApiError} with the entry's place in the batch */
export async function enqueueAcross(
  env: Env,
  groups: readonly BatchGroup[],
  { ticket, replaced, complete, idempotency, here }: BatchOptions = {},
): Promise<EnqueuedJob[]> {
  const finish = (receipts: readonly EnqueueReceipt[]) => {
    const jobs = inBatchOrder(groups, receipts);
    return tellable(complete ? complete(jobs) : jobs);
  };
  const [first, ...rest] = groups;
  if (!first) return finish([]);
  // A queue that remembers its answer must know all of it.
  const isAlone = rest.length === 0 && !replaced && !(idempotency && complete);
  if (isAlone) {
    // An answer that stays in the object need not be packed.
    const sent = here?.queue === first.queue ? first.jobs : pack(first.jobs);
    const receipt = await takerOf(env, first.queue, here).enqueue(sent, ticket, idempotency);
    return finish([unpackReceipt(accepted(first, receipt))]);
  }
  const others = rest.map(({ queue }) => queue);
  const participants: Participants = { batch: ticket ?? uuidv7(), coordinator: first.queue, others };
  const { jobs } = await allOrNothing<EnqueueReceipt>(env, participants, {
    prepare: async () => ({ agreed: true, answer: { jobs: finish(await prepare(env, groups, participants)) } }),
    replaced,
    once: idempotency,
  });
  return jobs;
}

/**
 * Has every queue prepare its share. A queue that does not exist only checks it, and is created last; if another then
 * refuses, an empty queue may remain. @throws {ApiError} the first refusal, in the order of the groups
 */
async function prepare(
  env: Env,
  groups: readonly BatchGroup[],
  { batch, coordinator }: Participants,
): Promise<EnqueueReceipt[]> {
  const checked = await inParallel(groups, ({ queue, jobs }) =>
    queueObject(env, queue).prepareBatchIfExists(batch, coordinator, pack(jobs)),
  );
  const receipts = acceptedAll(groups, checked);
  const prepared = await inParallel([...groups.entries()], async ([at, { queue, jobs }]) => {
    const receipt = receipts[at];
    return receipt
      ? { ok: true as const, value: receipt }
      : queueObject(env, queue).prepareBatch(batch, coordinator, pack(jobs));
  });
  return acceptedAll(groups, prepared);
}

const acceptedAll = <T>(groups: readonly BatchGroup[], outcomes: readonly Outcome<T>[]): T[] =>
  outcomes.map((outcome, at) => accepted(groups[at] as BatchGroup, outcome));

/** @throws {ApiError} a queue's refusal, with the entry's place in the batch instead of the group */
function accepted<T>({ indexes }: BatchGroup, outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value;
  const error = new ApiError(outcome.error);
  const at = outcome.error.details?.index ?? (indexes.length === 1 ? 0 : undefined);
  throw typeof at === 'number' ? atIndex(error, indexes[at] as number) : error;
}

/** The remembered answer of a batch travels to the queue that decides. @throws {ApiError} 413 */
function tellable(jobs: EnqueuedJob[]): EnqueuedJob[] {
  const chars = jobs.length > 1 ? jobs.reduce((sum, { record }) => sum + charsToTell(record), 0) : 0;
  if (chars > MAX_EXISTING_CHARS) throw tooMuchToTell(chars);
  return jobs;
}

function inBatchOrder(groups: readonly BatchGroup[], receipts: readonly EnqueueReceipt[]): EnqueuedJob[] {
  const jobs: EnqueuedJob[] = [];
  for (const [at, { jobs: own }] of receipts.entries()) {
    for (const [place, job] of own.entries()) jobs[groups[at]?.indexes[place] ?? 0] = job;
  }
  return jobs;
}
