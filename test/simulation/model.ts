/**
 * What a queue promises, without saying how: a plain list of jobs and rules. It shares no code with the product, so that
 * the two can only agree by both being right.
 */

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
}

export type LimitKey = 'narrow' | 'rated' | 'spaced';

/** What each key allows. */
const LIMITS: Record<LimitKey, { concurrency?: number; rate?: [limit: number, period: number]; apart?: number }> = {
  narrow: { concurrency: 1 },
  rated: { concurrency: 3, rate: [2, 5_000] },
  spaced: { apart: 400 },
};

export type ModelState = 'waiting' | 'pending' | 'active' | 'completed' | 'cancelled' | 'discarded' | 'gone';

export interface ModelJob {
  id: string;
  order: JobOrder;
  state: ModelState;
  /** When it becomes available, while it waits. */
  availableAt: number;
  attempt: number;
  failures: number;
  expiresAt: number;
  reason?: string;
  dead: boolean;
  endedAt: number;
  lease?: { worker: string; startedAt: number; expiresAt: number; visibility: number; timeoutAt: number };
  /** Attempt that completed it. */
  completedBy?: number;
  /** Attempt that the last failure ended, when a report ended it. */
  failedBy?: number;
  /** Attempt that was given back last. */
  requeuedBy?: number;
}

const MINUTE = 60_000;
const DAY = 86_400_000;
const RETENTION = { completed: 7 * DAY, cancelled: 7 * DAY, discarded: 30 * DAY, dead: 180 * DAY };

export class Model {
  jobs: ModelJob[] = [];
  paused = false;
  /** Starts of each key, and what an operator allows in its place. */
  keys: Record<LimitKey, { starts: number[]; concurrency?: number }> = {
    narrow: { starts: [] },
    rated: { starts: [] },
    spaced: { starts: [] },
  };

  /** How many jobs of the key may start now. */
  room(key: LimitKey, now: number): number {
    const { starts, concurrency: overridden } = this.keys[key];
    const { concurrency = Number.POSITIVE_INFINITY, rate, apart } = LIMITS[key];
    const running = this.jobs.filter((job) => job.state === 'active' && job.order.limit === key).length;
    const last = starts.at(-1);
    return Math.max(
      0,
      Math.min(
        (overridden ?? concurrency) - running,
        rate ? rate[0] - starts.filter((start) => start > now - rate[1]).length : Number.POSITIVE_INFINITY,
        apart !== undefined ? Number(last === undefined || last + apart <= now) : Number.POSITIVE_INFINITY,
      ),
    );
  }

  /** Treats what is due as due: leases and limits that ran out, then waiting jobs that expired. */
  tidy(now: number): void {
    const overdue = this.jobs
      .filter((job) => job.lease && Math.min(job.lease.expiresAt, job.lease.timeoutAt) <= now)
      .sort((a, b) => end(a) - end(b));
    for (const job of overdue) {
      const lease = job.lease as NonNullable<ModelJob['lease']>;
      this.fail(job, now, lease.expiresAt < lease.timeoutAt ? { delay: 0 } : { delay: job.order.backoff });
      delete job.failedBy;
    }
    for (const job of this.jobs) {
      if ((job.state === 'waiting' || job.state === 'pending') && job.expiresAt <= now) {
        this.endJob(job, 'discarded', now);
        job.reason = 'expired';
      }
    }
  }

  add(id: string, order: JobOrder, now: number): void {
    this.jobs.push({
      id,
      order,
      state: order.pending ? 'pending' : 'waiting',
      availableAt: now + order.delay,
      attempt: 0,
      failures: 0,
      expiresAt: order.ttl === 0 ? Number.POSITIVE_INFINITY : now + order.ttl,
      dead: false,
      endedAt: 0,
    });
  }

  available(now: number): ModelJob[] {
    return this.jobs.filter((job) => job.state === 'waiting' && job.availableAt <= now);
  }

  claim(job: ModelJob, worker: string, visibility: number, now: number): void {
    job.state = 'active';
    job.attempt++;
    if (job.order.limit) this.keys[job.order.limit].starts.push(now);
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
    if (job.lease) job.lease.expiresAt = now + job.lease.visibility;
  }

  complete(job: ModelJob, now: number): void {
    job.completedBy = job.attempt;
    this.endJob(job, 'completed', now);
  }

  /** The attempt failed: another run after `delay`, or the end when none is left or none is wanted. */
  fail(job: ModelJob, now: number, how: { delay: number; final?: boolean }): void {
    job.failures++;
    job.failedBy = job.attempt;
    delete job.requeuedBy;
    delete job.lease;
    const exhausted = job.attempt >= Math.max(1, job.order.maxAttempts);
    if (!exhausted && !how.final) {
      job.state = 'waiting';
      job.availableAt = now + how.delay;
      return;
    }
    this.endJob(job, 'discarded', now);
    job.dead = job.order.deadLetter;
    job.reason = how.final ? 'non_retryable' : 'retries_exhausted';
  }

  requeue(job: ModelJob, now: number): void {
    delete job.lease;
    job.state = 'waiting';
    job.availableAt = now;
    delete job.failedBy;
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
    const wasAvailable = job.state === 'waiting' && job.availableAt <= now;
    if (delay !== null && delay > 0) job.availableAt = now + delay;
    else if (!wasAvailable) job.availableAt = now;
  }

  /** Jobs of a priority that an operation acts on; it never touches one that runs. */
  bulk(action: 'cancel' | 'retry' | 'delete' | 'purge', priority: number, now: number): void {
    for (const job of this.jobs.filter((candidate) => candidate.order.priority === priority)) {
      const state = this.stateOf(job, now);
      const open = ['scheduled', 'available', 'pending', 'retryable'].includes(state);
      const ended = ['completed', 'cancelled', 'discarded'].includes(state);
      if (action === 'cancel' && open) this.cancel(job, now);
      else if (action === 'retry' && ['discarded', 'cancelled', 'retryable'].includes(state)) this.redrive(job, now);
      else if ((action === 'delete' && ended) || (action === 'purge' && (ended || open))) job.state = 'gone';
    }
  }

  redrive(job: ModelJob, now: number): void {
    Object.assign(job, {
      state: 'waiting',
      availableAt: now,
      attempt: 0,
      dead: false,
      expiresAt: Number.POSITIVE_INFINITY,
    });
    delete job.reason;
    delete job.failedBy;
    delete job.requeuedBy;
  }

  /** What ended long enough ago is gone. Only the alarm removes. */
  prune(now: number): void {
    for (const job of this.jobs) {
      const kind = job.dead ? 'dead' : job.state;
      if (kind in RETENTION && job.endedAt + RETENTION[kind as keyof typeof RETENTION] <= now) job.state = 'gone';
    }
  }

  private endJob(job: ModelJob, state: ModelState, now: number): void {
    delete job.lease;
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
    for (const job of this.jobs) {
      const moments: number[] = [];
      if (job.lease) moments.push(end(job));
      if (job.state === 'waiting') moments.push(job.availableAt);
      if (job.state === 'waiting' || job.state === 'pending') moments.push(job.expiresAt);
      for (const moment of moments) if (moment > now && moment < next) next = moment;
    }
    return next;
  }
}

function end(job: ModelJob): number {
  return job.lease ? Math.min(job.lease.expiresAt, job.lease.timeoutAt) : Number.POSITIVE_INFINITY;
}
