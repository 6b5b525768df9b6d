/**
 * What a queue promises, without saying how: a plain list of jobs and rules. It shares no code with the product, so that
 * the two can only agree by both being right.
 */

import { type CronBook, emptyBook } from './model-crons';
import { crowdedBy, isStrict } from './model-groups';
import { depthOf, idle, noteStart, queueOf, settingsOf, victims } from './model-queue';
import { accumulate, inDoubt, inTheWay, outdatedBy, successor, type UniqueOrder } from './model-unique';
import type { ErrorTexts, JobTexts, Text } from './texts';

/** What a step may ask of a new job. Times in ms. */
export interface JobOrder {
  priority: number;
  /** 0: at once. */
  delay: number;
  /** 0: never expires. */
  ttl: number;
  pending: boolean;
  maxAttempts: number;
  backoff: number;
  /** Execution limit; 0: the default of 30 minutes. */
  timeout: number;
  deadLetter: boolean;
  /** The key it counts under; null: none. */
  limit: LimitKey | null;
  /** What it must not exist beside; null: anything goes. */
  unique: UniqueOrder | null;
  /** Absent: it says little. */
  texts?: JobTexts | undefined;
  /** It has an id of its own, so it becomes a part of no other job. */
  isNamed?: boolean;
  /** Of several types; absent: of the one that most have. */
  kind?: JobKind | undefined;
  /** Whose job it is. */
  group?: string | undefined;
}

export type JobKind = 'x' | 'y';

export type LimitKey = 'narrow' | 'rated' | 'spaced';

/** What each key allows. */
const LIMITS: Record<LimitKey, { concurrency?: number; rate?: [limit: number, period: number]; apart?: number }> = {
  narrow: { concurrency: 1 },
  rated: { concurrency: 3, rate: [2, 5_000] },
  spaced: { apart: 400 },
};

export type ModelState = 'waiting' | 'pending' | 'active' | 'completed' | 'cancelled' | 'discarded' | 'gone';

export interface ModelJob {
  /** Empty until it is known what the product has called it. */
  id: string;
  order: JobOrder;
  /** The entry whose fire it is, and the time it stands for, unless it was triggered. */
  fire?: { cron: string; tick: number | undefined };
  createdAt: number;
  /** The start that was asked for, if it was delayed. */
  scheduledAt: number | undefined;
  /** Somebody has had it. */
  wasHandedOut?: boolean;
  /** It had ended, or was to be retried, and an operator ran it again. */
  wasRedriven?: boolean;
  /** It was given another time. */
  wasMoved?: boolean;
  /** The enqueues that it stands for, if for several, and when the first of them came. */
  calls?: number;
  since?: number;
  /** Newcomers that are a part of it, in order. */
  parts?: JobOrder[];
  /** Ended, and outdone: new jobs are no longer compared with it. */
  forgotten?: boolean;
  state: ModelState;
  /** When it becomes available, while it waits. */
  availableAt: number;
  attempt: number;
  failures: number;
  expiresAt: number;
  reason?: string;
  dead: boolean;
  endedAt: number;
  /** Of one that was pushed: its delivery, and how long its handler has, ms. */
  lease?: {
    worker: string;
    startedAt: number;
    expiresAt: number;
    visibility: number;
    timeoutAt: number;
    pushed?: { delivery: string; limit: number };
    /** It has a chunk in common with others. */
    isShared?: true;
  };
  /** Attempt that completed it. */
  completedBy?: number;
  /** Worker that completed it. */
  ranBy?: string | undefined;
  /** Attempt that the last failure ended, when a report ended it. */
  failedBy?: number;
  /** Attempt that was given back last. */
  requeuedBy?: number;
  /** What is said of its last delivery, in the name of none: of which attempt, and until when it is known. */
  told?: { attempt: number; until: number; isLost?: boolean };
  /** The delivery that took too long: its success still counts while the job waits. */
  late?: string | undefined;
  /** How its last attempt was lost, if it was. */
  lostBy?: 'crash' | 'timeout';
  /** Attempt that its handler ended to go on later, until it does. */
  snoozedBy?: number;
  /** The attempt that goes on by the next claim: its start counted before. */
  begun?: number;
  /** Where the order is strict: all others of its group wait for its end. */
  holds?: boolean;
  /** It holds on to that also if it is given a later time. */
  holdsOn?: boolean;
  /** It goes on when the signal comes. */
  waitsForSignal?: boolean;
  hasSignal?: boolean;
  /** Steps on record. */
  marks?: Set<number>;
  /** Those of them that are long, with their lengths in KiB. */
  long?: Record<number, number>;
  /** Lines that accepted reports have logged. */
  logged?: Set<string>;
  /** What redrives have added to what it says of itself: bytes by name. */
  added?: Record<string, number>;
  /** The batch that is being decided about it: nothing else may happen to it. One that is `gone` comes to be by that. */
  undecided?: string;
  /** A dead letter on its way to another queue: nothing else may happen to it. */
  isMoving?: boolean;
  /** The step of a workflow that it is. */
  step?: { workflow: string; step: number };
  /** What was said of the last attempt that failed. */
  error?: ErrorTexts | undefined;
  result?: Text | undefined;
  checkpoint?: Text | undefined;
}

const MINUTE = 60_000;
const DAY = 86_400_000;
/** Completed jobs are removed together: one may stay for so long beyond its time, ms. */
const REMOVED_WITHIN = 3_600_000;

const RETENTION = { completed: 7 * DAY, cancelled: 7 * DAY, discarded: 30 * DAY, dead: 180 * DAY };

/** Does it go on with an attempt whose start counted before? */
export const isBegun = ({ begun, attempt }: ModelJob): boolean => begun === attempt + 1;

/** The end of a job of a workflow. */
export interface StepEnd {
  id: string;
  workflow: string;
  step: number;
  state: ModelState;
  at: number;
}

/** What becomes of jobs that are enqueued together: one may be refused, for another or until that is decided. */
export type Placement =
  | { refused: number; by: ModelJob; isInDoubt?: true }
  /** For none of them there is room. */
  | { full: number }
  /** Of this group so many wait already. */
  | { crowded: { group: string; waiting: number; limit: number } }
  | { draining: true }
  | { placed: { job: ModelJob; existing: boolean; accumulated?: boolean }[] };

export class Model {
  jobs: ModelJob[] = [];
  crons: CronBook = emptyBook();
  paused = false;
  /** Are dead letters kept? */
  keepsDead = true;
  /** Starts of each key, and what an operator allows in its place. */
  keys: Record<LimitKey, { starts: number[]; override?: { concurrency: number; expiresAt: number } }> = {
    narrow: { starts: [] },
    rated: { starts: [] },
    spaced: { starts: [] },
  };

  /** Has the product discarded this job? Asked only where it may choose. */
  isDropped: (job: ModelJob) => boolean = () => false;
  /** Is a job there that may have been removed by now? */
  isThere: (job: ModelJob) => boolean = () => false;

  /** What areas of the simulation know beside, by their names: plain data. */
  parts = new Map<string, unknown>();

  /** All there is, to come back to. */
  save(): Pick<Model, 'jobs' | 'crons' | 'paused' | 'keys' | 'parts'> {
    const { jobs, crons, paused, keys, parts } = this;
    return structuredClone({ jobs, crons, paused, keys, parts });
  }

  /** What an area knows. Ask for it again in each step: a fault puts back what was there before. */
  part<T>(name: string, fresh: () => T): T {
    if (!this.parts.has(name)) this.parts.set(name, fresh());
    return this.parts.get(name) as T;
  }

  /** How many more jobs of the key may run now, and how many of these may begin an attempt. */
  room(key: LimitKey, now: number): { runs: number; starts: number } {
    const { starts, override } = this.keys[key];
    const overridden = override && override.expiresAt > now ? override.concurrency : undefined;
    const { concurrency = Number.POSITIVE_INFINITY, rate, apart } = LIMITS[key];
    const running = this.jobs.filter((job) => job.state === 'active' && job.order.limit === key).length;
    const last = starts.at(-1);
    const runs = Math.max(0, (overridden ?? concurrency) - running);
    const begins = Math.max(
      0,
      Math.min(
        runs,
        rate ? rate[0] - starts.filter((start) => start > now - rate[1]).length : Number.POSITIVE_INFINITY,
        apart !== undefined ? Number(last === undefined || last + apart <= now) : Number.POSITIVE_INFINITY,
      ),
    );
    return { runs, starts: begins };
  }

  /** Treats what is due as due: leases and limits that ran out, then waiting jobs that expired. */
  tidy(now: number): void {
    const overdue = this.jobs
      .filter((job) => job.lease && Math.min(job.lease.expiresAt, job.lease.timeoutAt) <= now)
      .sort((a, b) => end(a) - end(b));
    for (const job of overdue) {
      const lease = job.lease as NonNullable<ModelJob['lease']>;
      this.fail(job, now, lease.expiresAt < lease.timeoutAt ? { delay: 0 } : { delay: job.order.backoff });
      job.lostBy = 'timeout';
      const isTold = lease.pushed !== undefined && lease.timeoutAt <= lease.expiresAt;
      if (isTold) job.late = lease.pushed?.delivery;
      else delete job.failedBy;
      if (job.told) job.told.isLost = !isTold;
    }
    for (const job of this.jobs) this.expire(job, now);
  }

  /** One that was given back in a transaction may be too old to start, as a claim in the same one has found. */
  expireIfFound(job: ModelJob, now: number): void {
    if (job.state === 'waiting' && job.expiresAt <= now && this.isDropped(job)) this.expire(job, now);
  }

  private expire(job: ModelJob, now: number): void {
    if (job.undecided !== undefined || job.expiresAt > now) return;
    if (job.state !== 'waiting' && job.state !== 'pending') return;
    this.endJob(job, 'discarded', now);
    job.reason = 'expired';
  }

  /**
   * Enqueues jobs: all of them or, when a policy refuses one, none.
   * @param from what the times in the orders count from
   */
  enqueue(orders: readonly JobOrder[], now: number, from = now): Placement {
    if (queueOf(this).draining) return { draining: true };
    const crowded = crowdedBy(this, orders);
    if (crowded) return { crowded };
    const { maxDepth = Number.POSITIVE_INFINITY, overflow } = settingsOf(this);
    const mayBeUndone = orders.length > 1 && orders.some(({ unique }) => unique);
    const before = mayBeUndone || Number.isFinite(maxDepth) ? this.save() : undefined;
    const depth = depthOf(this);
    const running = this.jobs.filter(({ state }) => state === 'active').length;
    // As they are before the new ones come and others go for them.
    const waiting = Number.isFinite(maxDepth) ? idle(this).map((job) => ({ ...job })) : [];
    const outdated = outdatedBy(this, orders, now);
    const placed: { job: ModelJob; existing: boolean; accumulated?: boolean }[] = [];
    const replaced = new Set<string>();
    for (const [index, order] of orders.entries()) {
      const doubtful = inDoubt(this, order);
      if (doubtful) {
        if (before) Object.assign(this, before);
        return { refused: index, by: doubtful, isInDoubt: true };
      }
      const rivals = inTheWay(this, order, now);
      const [newest] = rivals;
      const conflict = order.unique?.conflict;
      if (newest && conflict === 'reject') {
        if (before) Object.assign(this, before);
        return { refused: index, by: newest };
      }
      if (newest && (conflict === 'ignore' || conflict === 'leading')) {
        placed.push({ job: newest, existing: true });
        continue;
      }
      const asked = order.delay > 0 ? from + order.delay : undefined;
      if (conflict === 'accumulate') {
        const found = order.isNamed ? undefined : accumulate(this, order, rivals, asked, now);
        // It makes no room for what it has become.
        if (found?.isChanged) replaced.add(found.into.id);
        if (found?.hasRoom) placed.push({ job: found.into, existing: false, accumulated: true });
        else placed.push({ job: this.add(order, { scheduledAt: asked }, now, from), existing: false });
        continue;
      }
      const terms = successor(this, order, newest, asked, now);
      for (const rival of rivals) {
        if (isOpen(rival)) this.cancel(rival, now);
        replaced.add(rival.id);
      }
      placed.push({ job: this.add(order, terms, now, from), existing: false });
    }
    const arrived = depthOf(this) - depth;
    const surplus = depth + arrived - maxDepth;
    if (surplus > 0) {
      // Where the bound was set below what waits, new jobs take the place of as many, and the rest goes in turns.
      const fits = overflow === 'drop_oldest' && arrived <= maxDepth - running;
      const needed = Math.max(0, Math.min(surplus, arrived));
      // What is replaced makes room by that already.
      const others = waiting.filter(({ id }) => !replaced.has(id));
      if (!fits || others.length < needed) {
        if (before) Object.assign(this, before);
        return { full: depth };
      }
      for (const { id } of victims(this, others, needed))
        this.drop(this.jobs.find((job) => job.id === id) as ModelJob, now);
      if (depthOf(this) > maxDepth) queueOf(this).isShedding = true;
    }
    if (placed.some(({ existing }) => !existing)) for (const job of outdated) job.forgotten = true;
    return { placed };
  }

  private add(
    order: JobOrder,
    terms: Pick<ModelJob, 'scheduledAt' | 'calls' | 'since'>,
    now: number,
    from: number,
  ): ModelJob {
    const { scheduledAt } = terms;
    const isInLine = isStrict(this) && (order.group !== undefined || order.limit !== null);
    const job: ModelJob = {
      id: '',
      // In a group that is served in strict order it passes nobody.
      order: isInLine ? { ...order, priority: 0 } : order,
      createdAt: now,
      ...terms,
      state: order.pending ? 'pending' : 'waiting',
      availableAt: Math.max(now, scheduledAt ?? now),
      attempt: 0,
      failures: 0,
      expiresAt: order.ttl === 0 ? Number.POSITIVE_INFINITY : from + order.ttl,
      dead: false,
      endedAt: 0,
    };
    this.jobs.push(job);
    return job;
  }

  available(now: number): ModelJob[] {
    return this.jobs.filter((job) => job.state === 'waiting' && job.availableAt <= now && job.undecided === undefined);
  }

  claim(job: ModelJob, worker: string, visibility: number, now: number): void {
    job.state = 'active';
    job.wasHandedOut = true;
    this.awake(job);
    delete job.late;
    const goesOn = isBegun(job);
    job.attempt++;
    if (job.order.limit && !goesOn) this.keys[job.order.limit].starts.push(now);
    if (!goesOn) noteStart(this, now);
    const timeout = job.order.timeout === 0 ? 30 * MINUTE : job.order.timeout;
    const length = visibility === 0 ? 30 * MINUTE : visibility;
    job.lease = {
      worker,
      startedAt: now,
      expiresAt: now + length,
      visibility: length,
      timeoutAt: now + timeout,
    };
  }

  extend(job: ModelJob, now: number): void {
    if (job.lease && !job.lease.pushed) job.lease.expiresAt = now + job.lease.visibility;
  }

  complete(job: ModelJob, now: number): void {
    job.completedBy = job.attempt;
    job.ranBy = job.lease?.worker;
    if (job.lease?.pushed) job.told = { attempt: job.attempt, until: now + 2 * job.lease.pushed.limit };
    else delete job.told;
    this.endJob(job, 'completed', now);
  }

  /** The attempt failed: another run after `delay`, or the end when none is left or none is wanted. */
  fail(job: ModelJob, now: number, how: { delay: number; final?: boolean }): void {
    job.failures++;
    job.failedBy = job.attempt;
    delete job.requeuedBy;
    delete job.late;
    delete job.lostBy;
    if (job.lease?.pushed) job.told = { attempt: job.attempt, until: now + 2 * job.lease.pushed.limit };
    else delete job.told;
    delete job.lease;
    const exhausted = job.attempt >= Math.max(1, job.order.maxAttempts);
    if (!exhausted && !how.final) {
      job.state = 'waiting';
      job.availableAt = now + how.delay;
      this.hold(job, true);
      return;
    }
    this.endJob(job, 'discarded', now);
    job.dead = job.order.deadLetter;
    if (job.dead && !this.keepsDead) job.state = 'gone';
    job.reason = how.final ? 'non_retryable' : 'retries_exhausted';
  }

  /** Its attempt could not be ended as it should: it is over, and the job is a dead letter. */
  quarantine(job: ModelJob, now: number): void {
    for (const gone of ['failedBy', 'requeuedBy', 'late', 'lostBy', 'told', 'error'] as const) delete job[gone];
    this.endJob(job, 'discarded', now);
    job.failures = 1;
    job.reason = 'crash';
    job.dead = true;
    if (!this.keepsDead) job.state = 'gone';
  }

  /** It never reached its worker: nobody has tried anything. */
  undoClaim(job: ModelJob): void {
    job.attempt--;
    job.state = 'waiting';
    delete job.lease;
    this.hold(job, job.attempt > 0);
  }

  /** Its attempt is over, and it has not ended. */
  private hold(job: ModelJob, isBegun: boolean): void {
    job.holds = isStrict(this);
    job.holdsOn = job.holds && isBegun;
  }

  /** The attempt is not used up. One that goes on at once keeps its place, unless it has done nothing new. */
  snooze(job: ModelJob, now: number, how: { in: number; signal: boolean; mark: number }): void {
    job.snoozedBy = job.attempt;
    job.attempt--;
    this.hold(job, true);
    delete job.lease;
    job.state = 'waiting';
    job.marks ??= new Set();
    const isNew = !job.marks.has(how.mark);
    job.marks.add(how.mark);
    if (how.signal || (how.in === 0 && isNew)) job.begun = job.attempt + 1;
    job.waitsForSignal = how.signal;
    if (how.signal && job.hasSignal) return;
    if (how.in > 0) job.availableAt = now + how.in;
    else if (!isNew) job.availableAt = now + 1_000;
  }

  /** The first one counts: a later one changes nothing. */
  signal(job: ModelJob, now: number): void {
    if (job.hasSignal) return;
    job.hasSignal = true;
    if (!job.waitsForSignal || job.state !== 'waiting' || job.availableAt <= now) return;
    job.availableAt = now;
    this.awake(job);
  }

  private awake(job: ModelJob): void {
    delete job.snoozedBy;
    delete job.waitsForSignal;
  }

  requeue(job: ModelJob, now: number): void {
    delete job.lease;
    job.state = 'waiting';
    job.availableAt = now;
    delete job.failedBy;
    this.hold(job, true);
    job.requeuedBy = job.attempt;
  }

  cancel(job: ModelJob, now: number): void {
    this.endJob(job, 'cancelled', now);
  }

  /** A waiting job changes. One that is available and is to start now keeps its place. */
  patch(
    job: ModelJob,
    change: Partial<Record<'priority' | 'delay' | 'ttl', number | null>> & { maxAttempts?: number },
    now: number,
  ) {
    const { priority, delay, ttl, maxAttempts } = change;
    if (priority !== undefined) job.order = { ...job.order, priority: priority ?? 0 };
    if (maxAttempts !== undefined) job.order = { ...job.order, maxAttempts };
    if (ttl !== undefined) job.expiresAt = ttl === null ? Number.POSITIVE_INFINITY : now + ttl;
    if (delay === undefined) return;
    job.wasMoved = true;
    if (delay !== null && delay > 0 && !job.holdsOn) delete job.holds;
    const later = delay !== null && delay > 0;
    // A job that is to be retried keeps what its producer asked for: what moves is its next attempt.
    if (this.stateOf(job, now) !== 'retryable') job.scheduledAt = later ? now + delay : undefined;
    const wasAvailable = job.state === 'waiting' && job.availableAt <= now;
    // A wait that is over does not begin again.
    if (wasAvailable) delete job.waitsForSignal;
    if (later) job.availableAt = now + delay;
    else if (!wasAvailable) job.availableAt = now;
  }

  /** Jobs of a priority that an operation acts on; it never touches one that runs. */
  bulk(action: 'cancel' | 'retry' | 'delete' | 'purge', priority: number, now: number): void {
    for (const job of this.jobs.filter(
      ({ order, undecided, isMoving }) => order.priority === priority && !undecided && !isMoving,
    )) {
      const state = this.stateOf(job, now);
      const open = ['scheduled', 'available', 'pending', 'retryable'].includes(state);
      const ended = ['completed', 'cancelled', 'discarded'].includes(state);
      if (action === 'cancel' && open) this.cancel(job, now);
      else if (action === 'retry' && ['discarded', 'cancelled', 'retryable'].includes(state)) this.redrive(job, now);
      else if ((action === 'delete' && ended) || (action === 'purge' && (ended || open))) {
        if (open) this.noteEnd(job, 'discarded', now);
        job.state = 'gone';
      }
    }
  }

  redrive(job: ModelJob, now: number): void {
    Object.assign(job, {
      state: 'waiting',
      availableAt: now,
      attempt: 0,
      dead: false,
      expiresAt: Number.POSITIVE_INFINITY,
      wasRedriven: true,
    });
    this.awake(job);
    // It keeps the place of one that was to be retried, but has not begun any more.
    job.holdsOn = false;
    delete job.begun;
    delete job.reason;
    delete job.forgotten;
    delete job.failedBy;
    delete job.requeuedBy;
    delete job.told;
    delete job.late;
    delete job.lostBy;
  }

  /** What ended long enough ago is gone. Only the alarm removes. */
  prune(now: number): void {
    this.shed(now);
    for (const job of this.jobs) {
      if (job.undecided !== undefined || job.isMoving) continue;
      const kind = job.dead ? 'dead' : job.state;
      if (!(kind in RETENTION)) continue;
      const over = now - job.endedAt - RETENTION[kind as keyof typeof RETENTION];
      const mayStay = kind === 'completed' && over < REMOVED_WITHIN;
      if (over >= 0 && !(mayStay && this.isThere(job))) job.state = 'gone';
    }
  }

  /** Its workflow must hear of it. */
  noteEnd({ id, step }: ModelJob, state: ModelState, at: number): void {
    if (step) this.part<StepEnd[]>('ends', () => []).push({ id, ...step, state, at });
  }

  /** A queue above a bound that was lowered comes down to it. */
  private shed(now: number): void {
    const book = queueOf(this);
    if (!book.isShedding) return;
    book.isShedding = false;
    const { maxDepth = Number.POSITIVE_INFINITY, overflow } = settingsOf(this);
    if (overflow !== 'drop_oldest') return;
    const surplus = Math.max(0, depthOf(this) - maxDepth);
    const among = idle(this);
    for (const job of victims(this, among, Math.min(surplus, among.length))) this.drop(job, now);
  }

  /** It makes room for others. */
  private drop(job: ModelJob, now: number): void {
    this.endJob(job, 'discarded', now);
    job.reason = 'queue_full';
  }

  private endJob(job: ModelJob, state: ModelState, now: number): void {
    this.noteEnd(job, state, now);
    delete job.lease;
    delete job.holds;
    this.awake(job);
    job.state = state;
    job.endedAt = now;
  }

  /** The state the outside sees. */
  stateOf(job: ModelJob, now: number): string {
    if (job.state !== 'waiting') return job.state;
    if (job.availableAt <= now) return 'available';
    return job.attempt > 0 ? 'retryable' : 'scheduled';
  }

  /** The first moment after `now` at which something is due; infinite when nothing is. */
  nextDue(now: number): number {
    let next = Number.POSITIVE_INFINITY;
    const { shutUntil } = queueOf(this);
    for (const job of this.jobs) {
      if (job.undecided !== undefined) continue;
      const moments: number[] = [];
      if (job.lease) moments.push(end(job));
      // What becomes available while the queue is shut waits for those who want it.
      if (job.state === 'waiting' && job.availableAt > shutUntil) moments.push(job.availableAt);
      if (job.state === 'waiting' || job.state === 'pending') moments.push(job.expiresAt);
      for (const moment of moments) if (moment > now && moment < next) next = moment;
    }
    return next;
  }
}

/** Has it not ended? */
export function isOpen(job: ModelJob): boolean {
  return job.state === 'waiting' || job.state === 'pending' || job.state === 'active';
}

function end(job: ModelJob): number {
  return job.lease ? Math.min(job.lease.expiresAt, job.lease.timeoutAt) : Number.POSITIVE_INFINITY;
}
