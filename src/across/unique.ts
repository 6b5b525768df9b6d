/**
 * Enqueues jobs that are unique across queues: reserves fingerprints, asks the queues that may have such jobs, plans
 * those conflicts, and enqueues the rest under the ticket; each queue plans its own conflicts.
 */
import { v7 as uuidv7 } from 'uuid';
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { atIndex, duplicate } from '../job/errors';
import type { JobView, UniquePolicy } from '../job/record';
import { type Candidate, ConflictPlanner, isEarlierEntry, type Placement } from '../job/unique/conflicts';
import type { IdPlace } from '../rpc/ids';
import type { Wanted } from '../rpc/locks';
import type { UniqueConflicts, UniqueQuestion } from '../rpc/queue';
import type { EnqueuedJob, IdempotencyKey } from '../rpc/receipts';
import { queueObject } from '../rpc/stubs';
import { type BatchEntry, type BatchGroup, enqueueAcross, groupByQueue } from './batch';
import { Reservations } from './reservation';

/** The policy of an entry, if it looks across queues. */
export const globalPolicy = ({ job }: BatchEntry): UniquePolicy | undefined =>
  job.unique?.scope === 'global' ? job.unique : undefined;

/** Enqueues all entries (at least one), or none. @returns a job for each, in order @throws {ApiError} with `index` */
export async function enqueueReserved(
  env: Env,
  entries: readonly BatchEntry[],
  idempotency: IdempotencyKey | undefined,
): Promise<EnqueuedJob[]> {
  const coordinator = (entries[0] as BatchEntry).queue;
  const reservations = new Reservations(env, uuidv7(), coordinator);
  try {
    const wanted = entries.flatMap((entry) => {
      const policy = globalPolicy(entry);
      return policy ? [{ fingerprint: policy.fingerprint, queue: entry.queue }] : [];
    });
    let existing: EnqueuedJob | undefined;
    const policy = entries.length === 1 ? globalPolicy(entries[0] as BatchEntry) : undefined;
    const mayPeek = policy?.on_conflict === 'reject' || policy?.on_conflict === 'ignore';
    const holders = await reservations.reserve(
      wanted,
      mayPeek
        ? async (seen) => {
            existing = await existingDuplicate(env, policy, seen);
            return existing !== undefined;
          }
        : undefined,
    );
    if (!holders) return existing ? [existing] : [];
    const resolution = resolveConflicts(
      entries,
      await askHolders(env, entries, wanted, holders, reservations),
      Date.now(),
    );
    const groups = coordinatedBy(coordinator, groupByQueue(resolution.entries));
    const { replaced, complete } = resolution;
    const enqueue = () =>
      enqueueAcross(env, groups, {
        ticket: reservations.ticket,
        ...(replaced.length > 0 && { replaced }),
        complete,
        idempotency,
      });
    return groups.length === 0 ? complete([]) : await reservations.use(enqueue);
  } finally {
    await reservations.release();
  }
}

/** The ticket is given up at its coordinator, so that queue takes part even when it gets none of the jobs. */
function coordinatedBy(coordinator: string, groups: BatchGroup[]): BatchGroup[] {
  if (groups.length === 0) return groups;
  const own = groups.find(({ queue }) => queue === coordinator) ?? { queue: coordinator, jobs: [], indexes: [] };
  return [own, ...groups.filter((group) => group !== own)];
}

type Answers = ReadonlyMap<number, UniqueConflicts[]>;

/** Asks every queue that can have a fingerprint, except the one its entry goes to. */
async function askHolders(
  env: Env,
  entries: readonly BatchEntry[],
  wanted: readonly Wanted[],
  holders: readonly Wanted[],
  reservations: Reservations,
): Promise<Answers> {
  const holdersOf = Map.groupBy(holders, ({ fingerprint }) => fingerprint);
  const all = entries.flatMap((entry, index) => {
    const policy = globalPolicy(entry);
    const queues = new Set(policy && holdersOf.get(policy.fingerprint)?.map(({ queue }) => queue));
    queues.delete(entry.queue);
    return policy ? [...queues].map((queue) => ({ queue, index, policy })) : [];
  });
  const questions = Map.groupBy(all, ({ queue }) => queue);
  const given = new Map<number, UniqueConflicts[]>();
  const vacant: Wanted[] = [];
  const isWanted = new Set(wanted.map(({ fingerprint, queue }) => `${fingerprint} ${queue}`));
  await inParallel([...questions], async ([queue, asked]) => {
    const answers = await queueObject(env, queue).uniqueConflicts(asked.map(({ policy }) => questionOf(policy)));
    for (const [at, { index, policy }] of asked.entries()) {
      const answer = answers[at] as UniqueConflicts;
      given.set(index, [...(given.get(index) ?? []), answer]);
      const { fingerprint } = policy;
      if (!answer.known && !isWanted.has(`${fingerprint} ${queue}`)) vacant.push({ fingerprint, queue });
    }
  });
  reservations.foundVacant(vacant);
  return given;
}

function questionOf({ fingerprint, states, period_ms }: UniquePolicy): UniqueQuestion {
  return { fingerprint, states, ...(period_ms !== undefined && { period_ms }) };
}

/** Looks into the queues without a reservation: a conflict seen suffices to refuse or ignore a duplicate. */
async function existingDuplicate(
  env: Env,
  policy: UniquePolicy,
  holders: readonly Wanted[],
): Promise<EnqueuedJob | undefined> {
  const answers = await inParallel(holders, ({ queue }) =>
    queueObject(env, queue).uniqueConflicts([questionOf(policy)]),
  );
  const [seen] = answers.flat().flatMap(({ blocking }) => blocking);
  if (seen && policy.on_conflict === 'reject') throw duplicate(seen.record.id, seen.record.state);
  return seen && { ...seen, deduplicated: true };
}

interface Resolution {
  /** The rest to enqueue, each in its place. */
  entries: (BatchEntry | undefined)[];
  /** Jobs of other queues that are replaced. */
  replaced: IdPlace[];
  /** One job for each entry, given those that were enqueued. */
  complete: (enqueued: readonly EnqueuedJob[]) => EnqueuedJob[];
}

interface RemoteJob extends Candidate {
  view?: JobView;
}

/** Applies policies across queues, in order. @param now epoch ms @throws {ApiError} 409, 503, with `details.index` */
function resolveConflicts(entries: readonly BatchEntry[], answers: Answers, now: number): Resolution {
  const queueOf = (index: number) => entries[index]?.queue;
  // Entries of one queue are left to that queue.
  const planner = new ConflictPlanner<RemoteJob>(now, (index, earlier) => queueOf(index) !== queueOf(earlier));
  const superseded = new Set<number>();
  const replaced = new Map<string, IdPlace>();
  const placements = entries.map(({ job }, index) => {
    try {
      const candidates = (answers.get(index) ?? []).flatMap(remoteJobs).filter(({ id }) => !replaced.has(id));
      const placement = planner.place(
        job,
        candidates.sort((a, b) => (b.createdAt ?? 0) - (a.createdAt ?? 0)),
      );
      for (const job of 'replaces' in placement ? placement.replaces : []) {
        if (isEarlierEntry(job)) superseded.add(job.index);
        else if (job.view) replaced.set(job.id, { id: job.id, queue: job.view.record.queue });
      }
      return placement;
    } catch (error) {
      throw atIndex(error, index);
    }
  });
  return {
    entries: placements.map((placement, index) => {
      if ('existing' in placement) return undefined;
      const { queue } = entries[index] as BatchEntry;
      return { queue, job: superseded.has(index) ? { ...placement.job, superseded: true } : placement.job };
    }),
    replaced: [...replaced.values()],
    complete: (enqueued) => withExisting(enqueued, placements),
  };
}

function remoteJobs({ undecided, blocking }: UniqueConflicts): RemoteJob[] {
  const jobs = blocking.map((view): RemoteJob => {
    const { id, state, created_at: createdAt, body, attempt, due_at: dueAt, history } = view.record;
    const hasRun = attempt > 0 || history.snoozed !== undefined;
    return { key: id, id, state, createdAt, body, hasRun, dueAt, view };
  });
  const inDoubt = { key: '', id: '', state: 'undecided', createdAt: undefined, body: '' } as const;
  return undecided ? [...jobs, { ...inDoubt, hasRun: false, dueAt: undefined }] : jobs;
}

/** Adds the jobs that entries stand for to those that were enqueued. */
function withExisting(enqueued: readonly EnqueuedJob[], placements: readonly Placement<RemoteJob>[]): EnqueuedJob[] {
  const jobs = [...enqueued];
  // In order, because an entry may stand for an earlier one that stands for another job itself.
  for (const [index, placement] of placements.entries()) {
    if (!('existing' in placement)) continue;
    const { existing } = placement;
    const job = isEarlierEntry(existing) ? jobs[existing.index] : existing.view;
    if (job) jobs[index] = { ...job, deduplicated: true };
  }
  return jobs;
}
