/** Pushed jobs, as the documents have it: which may be handed over, and what becomes of them when their handler has answered. */
import { holds, same } from './agree';
import { isBegun, type Model, type ModelJob } from './model';
import type { Text } from './texts';

/** Jobs that a queue pushes at once. */
const CONCURRENCY = 10;
/** How long a handler has, ms, unless its job says otherwise; and the queue waits for it, beyond that. */
export const LIMIT_MS = 30_000;
const LEASE_BEYOND_MS = 10_000;
const WORKER = 'push_sim';

/** Pauses after a target did not take a call, ms, and how many of them stop it. */
const PAUSE_MS = { first: 100, stopped: 60_000 };
const STOPS_AFTER = 5;

/** What a handler says of a run when it ends. */
export interface OutcomeOrder {
  how: 'completed' | 'failed' | 'final' | 'retry-in' | 'kill' | 'snoozed' | 'nonsense' | 'unsaid';
  /** Of a snooze. */
  in: number;
  signal: boolean;
  mark: number;
  /** What it says beside. */
  checkpoint?: Text | undefined;
  progress?: boolean | undefined;
}

/** How a whole call ends: as its answer says of each job, or for all of them alike. */
export type Trouble = 'refused' | 'not-running' | 'fails' | 'busy' | 'dies' | 'too-late' | 'nonsense';

/** Delivery errors of the target in a row. */
export interface Health {
  errors: number;
  /** It gets no call before, epoch ms. */
  until: number;
}

export function noteCall(health: Health, isTaken: boolean, now: number): void {
  health.errors = isTaken ? 0 : health.errors + 1;
  const pause = health.errors < STOPS_AFTER ? PAUSE_MS.first * 2 ** (health.errors - 1) : PAUSE_MS.stopped;
  health.until = isTaken ? 0 : now + pause;
}

/** A death forgets all but a stop. Nobody waits for the answers any more, so that all runs end with their leases. */
export function restarted(health: Health, model: Model): void {
  for (const { lease } of model.jobs) if (lease?.pushed) lease.timeoutAt = Number.POSITIVE_INFINITY;
  if (health.errors < STOPS_AFTER) Object.assign(health, { errors: 0, until: 0 });
  else health.errors = STOPS_AFTER;
}

/** A job that was handed over, as the product has it. */
export interface Handed {
  id: string;
  delivery: string;
  attempt: number;
}

/** Where a job stands that was handed over. */
export interface Terms {
  now: number;
  health: Health;
  /** Jobs that run at the target already, since the object lives. */
  running: number;
  /** Those handed over that take a place: their calls are made. */
  placed: number;
  /** How many of them the Worker wants at once; 0: it does not say. */
  concurrency: number;
  /** Is a job given out, to whomever? */
  isTaken(id: string): boolean;
}

/** These jobs were handed to the target. @returns those that must travel alone */
export function handOver(model: Model, handed: readonly Handed[], terms: Terms): Set<string> {
  const { now, health } = terms;
  holds(!model.paused, () => 'a paused queue pushed');
  holds(now >= health.until, () => `pushed at ${now} to a target that rests until ${health.until}`);
  const most = Math.min(CONCURRENCY, terms.concurrency || CONCURRENCY);
  holds(terms.running + terms.placed <= most, () => `${terms.running} run, and ${terms.placed} were pushed`);
  const alone = new Set<string>();
  const jobs = handed.map((one) => {
    const job = model.jobs.find(({ id }) => id === one.id);
    if (!job) throw new Error(`${one.id} was pushed, which nobody knows`);
    holds(
      job.state === 'waiting' && job.availableAt <= now,
      () => `${job.id} was pushed at ${now}, which is ${JSON.stringify(job)}`,
    );
    const { limit } = job.order;
    const room = limit && model.room(limit, now);
    if (room)
      holds((isBegun(job) ? room.runs : room.starts) > 0, () => `${job.id} was pushed without room for ${limit}`);
    same(one.attempt, job.attempt + 1, `attempt of ${job.id}`);
    if (isSuspect(job) || one.attempt >= Math.max(1, job.order.maxAttempts)) alone.add(one.delivery);
    return job;
  });
  expectOrder(model, jobs, terms);
  for (const [at, job] of jobs.entries()) claim(model, job, (handed[at] as Handed).delivery, now);
  return alone;
}

/** None that may start is left behind one that has come later. */
function expectOrder(model: Model, jobs: readonly ModelJob[], { now, isTaken }: Terms): void {
  const left = model
    .available(now)
    .filter((job) => !jobs.includes(job) && job.order.limit === null && job.expiresAt > now && !isTaken(job.id));
  for (const job of jobs) {
    const before = left.find((other) => rank(other, job) < 0);
    holds(before === undefined, () => `${before?.id} was passed over by ${job.id}`);
  }
}

function rank(a: ModelJob, b: ModelJob): number {
  return b.order.priority - a.order.priority || a.availableAt - b.availableAt;
}

function claim(model: Model, job: ModelJob, delivery: string, now: number): void {
  model.claim(job, WORKER, 0, now);
  const limit = job.order.timeout || LIMIT_MS;
  const lease = job.lease as NonNullable<ModelJob['lease']>;
  lease.expiresAt = lease.timeoutAt = now + limit + LEASE_BEYOND_MS;
  lease.pushed = { delivery, limit };
}

/** May it have killed its Worker, or its call? */
export function isSuspect(job: ModelJob): boolean {
  return job.attempt > 0 && job.lostBy !== undefined;
}

/** The run of a delivery has ended. @returns whether that counts: it was still the run of its job */
export function settle(model: Model, job: ModelJob, delivery: string, outcome: OutcomeOrder, now: number): boolean {
  if (job.lease?.pushed?.delivery !== delivery) {
    // A success that comes too late counts all the same while the job waits.
    if (outcome.how === 'completed' && job.late === delivery && job.state === 'waiting' && job.availableAt > now) {
      delete job.result;
      model.complete(job, now);
    }
    return false;
  }
  const { how, in: after, signal, mark, checkpoint } = outcome;
  // What is said beside an outcome that makes no sense does.
  if (how !== 'unsaid' && checkpoint) job.checkpoint = checkpoint;
  const { backoff } = job.order;
  switch (how) {
    case 'completed':
      delete job.result;
      model.complete(job, now);
      break;
    case 'snoozed':
      model.snooze(job, now, { in: after, signal, mark });
      break;
    case 'failed':
    case 'final':
    case 'retry-in':
      job.error = {};
      model.fail(job, now, { delay: how === 'retry-in' ? 777 : backoff, final: how === 'final' });
      break;
    case 'kill':
      job.error = {};
      deadBy(model, job, 'killed', now);
      break;
    default:
      delete job.error;
      model.fail(job, now, { delay: backoff });
  }
  return true;
}

/** The whole call came to nothing. @param alone nothing else was in it */
export function suffer(model: Model, job: ModelJob, delivery: string, trouble: Trouble, now: number): void {
  if (job.lease?.pushed?.delivery !== delivery) return;
  const { backoff } = job.order;
  delete job.error;
  switch (trouble) {
    case 'not-running':
      // Nobody tried anything: it stands where it stood.
      job.attempt--;
      delete job.lease;
      job.state = 'waiting';
      break;
    case 'refused':
      deadBy(model, job, 'target_rejected', now);
      break;
    case 'busy':
      model.fail(job, now, { delay: Math.max(backoff, 2_000) });
      break;
    default:
      model.fail(job, now, { delay: backoff });
      if (trouble === 'dies') job.lostBy = 'crash';
      if (trouble === 'too-late') job.lostBy = 'timeout';
  }
}

/** It ends as a dead letter, whatever it wanted. */
function deadBy(model: Model, job: ModelJob, reason: string, now: number): void {
  model.fail(job, now, { delay: 0, final: true });
  job.reason = reason;
  job.dead = true;
  if (!model.keepsDead) job.state = 'gone';
}
