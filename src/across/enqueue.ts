/**
 * Enqueues jobs whose unique policy looks across queues: reserves their fingerprints, asks the queues that may have such
 * jobs, applies each policy, and enqueues what is left under the reservation's ticket. Policies that name the queue need
 * none of this; the queue itself applies them.
 */
import { v7 as uuidv7 } from 'uuid';
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { ApiError, duplicate, type Outcome, unwrap } from '../job/errors';
import type { JobView, UniquePolicy } from '../job/record';
import { type JobState, TERMINAL_STATES } from '../job/states';
import { blocks, initialState, keepSchedule } from '../job/unique';
import { LOCKED } from '../queue/jobs/lock';
import { duplicateOfEntry, UNDECIDED, undecided } from '../queue/jobs/rivals';
import type { Wanted } from '../rpc/locks';
import type { IdempotencyKey } from '../rpc/operations';
import type { EnqueuedJob, UniqueQuestion, UniqueRivals } from '../rpc/queue';
import { queueObject } from '../rpc/stubs';
import { type BatchGroup, type Entry, enqueueAcross, groupByQueue } from './batch';
import { Reservations } from './reservation';

/** How often an enqueue is tried again that depends on a batch or a move under way, and how long it waits at first, ms. */
const TRIES = 6;
const PAUSE_MS = 20;

/**
 * Enqueues all entries, or none. A batch under way that decides about them is over in a moment, as a rule, and waited for.
 * @param numbered name the entry's place in errors
 * @returns one job for each entry, in order
 */
export async function enqueueEntries(
  env: Env,
  entries: readonly Entry[],
  numbered: boolean,
  idempotency?: IdempotencyKey,
): Promise<Outcome<EnqueuedJob[]>> {
  let outcome = await enqueueOnce(env, entries, idempotency);
  for (let tries = 1; tries < TRIES && dependsOnOthers(outcome); tries++) {
    // At random, so that two batches that met do not meet again.
    await scheduler.wait(PAUSE_MS * 2 ** tries * Math.random());
    outcome = await enqueueOnce(env, entries, idempotency);
  }
  if (outcome.ok || numbered) return outcome;
  const { index: _, ...details } = outcome.error.details ?? {};
  return { ok: false, error: { ...outcome.error, details } };
}

/** Is a job in its way, or one that it replaces, part of something that is being decided, or on its way to another queue? */
function dependsOnOthers(outcome: Outcome<unknown>): boolean {
  const reason = outcome.ok ? undefined : outcome.error.details?.reason;
  return reason === UNDECIDED || reason === LOCKED;
}

async function enqueueOnce(
  env: Env,
  entries: readonly Entry[],
  idempotency: IdempotencyKey | undefined,
): Promise<Outcome<EnqueuedJob[]>> {
  if (entries.some((entry) => globalPolicy(entry) !== undefined)) return enqueueReserved(env, entries, idempotency);
  return enqueueAcross(env, groupByQueue(entries), undefined, idempotency && { idempotency });
}

function globalPolicy({ job }: Entry): UniquePolicy | undefined {
  return job.unique?.scope === 'global' ? job.unique : undefined;
}

async function enqueueReserved(
  env: Env,
  entries: readonly Entry[],
  idempotency: IdempotencyKey | undefined,
): Promise<Outcome<EnqueuedJob[]>> {
  const coordinator = (entries[0] as Entry).queue;
  const reservations = new Reservations(env, uuidv7(), coordinator);
  // Until something is on its way it is certain that nothing came of it.
  let settled = true;
  try {
    const wanted = entries.flatMap((entry) => {
      const policy = globalPolicy(entry);
      return policy ? [{ fingerprint: policy.fingerprint, queue: entry.queue }] : [];
    });
    let existing: EnqueuedJob | undefined;
    const policy = entries.length === 1 ? globalPolicy(entries[0] as Entry) : undefined;
    const mayPeek = policy?.on_conflict === 'reject' || policy?.on_conflict === 'ignore';
    const holders = await reservations.reserve(
      wanted,
      mayPeek
        ? async (seen) => {
            existing = await jobInTheWay(env, policy, seen);
            return existing !== undefined;
          }
        : undefined,
    );
    if (!holders) return { ok: true, value: existing ? [existing] : [] };
    const plan = new Plan(entries, await askHolders(env, entries, wanted, holders, reservations), Date.now());
    const groups = coordinatedBy(coordinator, groupByQueue(plan.entries));
    settled = groups.length === 0;
    const complete = (jobs: readonly EnqueuedJob[]) => plan.complete(jobs);
    const outcome = await enqueueAcross(
      env,
      groups,
      {
        ticket: reservations.ticket,
        ...(plan.cancels.length > 0 && { beforeDeciding: () => cancelAll(env, plan.cancels) }),
      },
      idempotency && { idempotency, complete },
    );
    settled = true;
    return outcome.ok ? { ok: true, value: complete(outcome.value) } : outcome;
  } catch (error) {
    if (error instanceof ApiError) return { ok: false, error: error.data };
    throw error;
  } finally {
    await reservations.release(settled);
  }
}

/** The ticket is given up at its coordinator, so that queue takes part even when none of the jobs is left for it. */
function coordinatedBy(coordinator: string, groups: BatchGroup[]): BatchGroup[] {
  if (groups.length === 0) return groups;
  const own = groups.find(({ queue }) => queue === coordinator) ?? { queue: coordinator, jobs: [], indexes: [] };
  return [own, ...groups.filter((group) => group !== own)];
}

/** Answers of other queues, by entry. */
type Rivals = Map<number, UniqueRivals[]>;

/** Asks every queue that may hold a fingerprint, except the one its entry goes to. */
async function askHolders(
  env: Env,
  entries: readonly Entry[],
  wanted: readonly Wanted[],
  holders: readonly Wanted[],
  reservations: Reservations,
): Promise<Rivals> {
  const queuesOf = new Map<string, Set<string>>();
  for (const { fingerprint, queue } of holders) {
    queuesOf.set(fingerprint, (queuesOf.get(fingerprint) ?? new Set()).add(queue));
  }
  const questions = new Map<string, { index: number; policy: UniquePolicy }[]>();
  for (const [index, entry] of entries.entries()) {
    const policy = globalPolicy(entry);
    for (const queue of policy ? (queuesOf.get(policy.fingerprint) ?? []) : []) {
      if (!policy || queue === entry.queue) continue;
      questions.set(queue, [...(questions.get(queue) ?? []), { index, policy }]);
    }
  }
  const rivals: Rivals = new Map();
  const vacant: Wanted[] = [];
  const isWanted = new Set(wanted.map(({ fingerprint, queue }) => `${fingerprint} ${queue}`));
  await inParallel([...questions], async ([queue, asked]) => {
    const answers = await queueObject(env, queue).uniqueRivals(asked.map(({ policy }) => questionOf(policy)));
    for (const [at, { index, policy }] of asked.entries()) {
      const answer = answers[at] as UniqueRivals;
      rivals.set(index, [...(rivals.get(index) ?? []), answer]);
      const { fingerprint } = policy;
      if (!answer.known && !isWanted.has(`${fingerprint} ${queue}`)) vacant.push({ fingerprint, queue });
    }
  });
  reservations.foundVacant(vacant);
  return rivals;
}

function questionOf({ fingerprint, states, period_ms }: UniquePolicy): UniqueQuestion {
  return { fingerprint, states, ...(period_ms !== undefined && { period_ms }) };
}

/**
 * Looks into the queues without a reservation, while others have it. A job that is seen in the way was in the way at that
 * moment, which is all that refusing or ignoring a duplicate takes.
 */
async function jobInTheWay(
  env: Env,
  policy: UniquePolicy,
  holders: readonly Wanted[],
): Promise<EnqueuedJob | undefined> {
  const answers = await inParallel(holders, ({ queue }) => queueObject(env, queue).uniqueRivals([questionOf(policy)]));
  const [seen] = answers.flat().flatMap(({ blocking }) => blocking);
  if (seen && policy.on_conflict === 'reject') throw duplicate(seen.record.id, seen.record.state);
  return seen && { ...seen, deduplicated: true };
}

/** Cancels jobs that are replaced. One that has ended by now is out of the way as well. */
async function cancelAll(env: Env, jobs: readonly JobView[]): Promise<void> {
  await inParallel(jobs, async ({ record: { id, queue } }) => {
    const outcome = await queueObject(env, queue).cancel(id);
    if (!outcome.ok && outcome.error.status !== 404 && outcome.error.code !== 'conflict') unwrap(outcome);
  });
}

/** An earlier entry of the batch, in another queue. */
interface Sibling {
  index: number;
  queue: string;
  state: JobState;
}

/** Applies the policies that look across queues, in the order of the entries. */
class Plan {
  /** What is left to enqueue, each in its place. */
  readonly entries: (Entry | undefined)[] = [];
  /** Jobs of other queues that are replaced. */
  readonly cancels: JobView[] = [];
  /** What the other entries stand for: an existing job, or the entry in that place. */
  private readonly existing = new Map<number, JobView | number>();
  private readonly siblings = new Map<string, Sibling[]>();

  /**
   * @param now epoch ms
   * @throws {ApiError} 409 `duplicate`, 503 in doubt, with `details.index`
   */
  constructor(
    entries: readonly Entry[],
    private readonly rivals: Rivals,
    private readonly now: number,
  ) {
    for (const [index, entry] of entries.entries()) {
      try {
        this.entries.push(this.place(entry, index));
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        throw new ApiError({ ...error.data, details: { ...error.data.details, index } });
      }
    }
  }

  /** One job for each entry, given those that were enqueued. */
  complete(enqueued: readonly EnqueuedJob[]): EnqueuedJob[] {
    const jobs = [...enqueued];
    // In order, because an entry may stand for an earlier one that stands for another job itself.
    for (const index of [...this.existing.keys()].sort((a, b) => a - b)) {
      const target = this.existing.get(index);
      const job = typeof target === 'number' ? jobs[target] : target;
      if (job) jobs[index] = { ...job, deduplicated: true };
    }
    return jobs;
  }

  private place(entry: Entry, index: number): Entry | undefined {
    const policy = globalPolicy(entry);
    if (!policy) return entry;
    const siblings = (this.siblings.get(policy.fingerprint) ?? []).filter(
      ({ queue, state }) => queue !== entry.queue && blocks(policy, { state, createdAt: this.now }, this.now),
    );
    const strangers = this.strangers(index);
    const sibling = siblings.at(-1);
    const stranger = strangers[0];
    if ((sibling ?? stranger) === undefined) return this.take(entry, index, policy);
    if (policy.on_conflict === 'reject') {
      if (sibling) throw duplicateOfEntry(sibling.index, sibling.state);
      throw duplicate(stranger?.record.id ?? '', stranger?.record.state ?? '');
    }
    if (policy.on_conflict === 'ignore') {
      this.existing.set(index, sibling?.index ?? (stranger as JobView));
      return undefined;
    }
    const replaced = sibling ? this.entries[sibling.index]?.job.body : stranger?.record.body;
    for (const { index: earlier } of siblings) this.supersede(earlier, policy.fingerprint);
    this.cancels.push(...strangers.filter(({ record }) => !TERMINAL_STATES.includes(record.state)));
    const keeps = policy.on_conflict === 'replace_except_schedule' && replaced !== undefined;
    return this.take(keeps ? { ...entry, job: keepSchedule(entry.job, replaced) } : entry, index, policy);
  }

  private take(entry: Entry, index: number, { fingerprint }: UniquePolicy): Entry {
    const sibling: Sibling = { index, queue: entry.queue, state: initialState(entry.job, this.now) };
    this.siblings.set(fingerprint, [...(this.siblings.get(fingerprint) ?? []), sibling]);
    return entry;
  }

  private supersede(index: number, fingerprint: string): void {
    const entry = this.entries[index];
    if (entry) this.entries[index] = { ...entry, job: { ...entry.job, superseded: true } };
    for (const sibling of this.siblings.get(fingerprint) ?? [])
      if (sibling.index === index) sibling.state = 'cancelled';
  }

  /** Jobs of other queues in the way of this entry, newest first, without those an earlier entry replaces. */
  private strangers(index: number): JobView[] {
    const answers = this.rivals.get(index) ?? [];
    if (answers.some((answer) => answer.undecided)) throw undecided();
    const gone = new Set(this.cancels.map(({ record }) => record.id));
    return answers
      .flatMap(({ blocking }) => blocking)
      .filter(({ record }) => !gone.has(record.id))
      .sort((a, b) => b.record.created_at - a.record.created_at);
  }
}
