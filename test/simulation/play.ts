/** Plays a history against the product and the model, and compares them after every step. */
import { expect } from 'vitest';
import { ApiError } from '../../src/job/errors';
import { readLimitPolicy } from '../../src/job/limits/policy';
import type { JobRecord, JobView, NewJob } from '../../src/job/record';
import { activate } from '../../src/queue/jobs/activate';
import { cancel } from '../../src/queue/jobs/cancel';
import { claim } from '../../src/queue/jobs/claim';
import { enqueue } from '../../src/queue/jobs/enqueue';
import { find, viewOf } from '../../src/queue/jobs/find';
import { patch } from '../../src/queue/jobs/patch';
import { deleteDeadLetter, redrive } from '../../src/queue/jobs/redrive';
import { ack, nack } from '../../src/queue/jobs/report';
import { overrideRateLimit } from '../../src/queue/limits/report';
import type { PatchRequest } from '../../src/queue/operations/api';
import { list } from '../../src/queue/operations/list';
import { setPaused } from '../../src/queue/operations/settings';
import { stats } from '../../src/queue/operations/stats';
import { createTask, stepTask } from '../../src/queue/operations/tasks';
import { heartbeat } from '../../src/queue/workers/heartbeat';
import { type JobOrder, type LimitKey, Model, type ModelJob } from './model';
import type { JobChange, Step } from './steps';
import { InjectedFault, World } from './world';

/** By how much alarms that fire early, again and again, may push the next one; ms. */
const SLACK_MS = 20;

const VISIBLE = ['scheduled', 'available', 'pending', 'active', 'retryable', 'completed', 'cancelled', 'discarded'];

export class Play {
  private readonly model = new Model();
  private readonly world: World;
  /** Operations on many jobs so far. */
  private operations = 0;
  /** An alarm was lost and nobody has noticed yet. */
  private lost = false;

  constructor(storage: DurableObjectStorage) {
    this.world = new World(storage);
  }

  run(history: readonly (Step | null)[]): void {
    history.forEach((step, index) => {
      if (step) this.step(step);
      if (step || index === history.length - 1) this.compare(index % 10 === 9 || index === history.length - 1);
    });
  }

  private get now(): number {
    return this.world.now;
  }

  private step(step: Step): void {
    const { world, model } = this;
    switch (step.op) {
      case 'jump':
        world.now += step.ms;
        return;
      case 'evict':
        world.start();
        this.lost = false;
        return;
      case 'lose-alarm':
        this.lost ||= world.alarm !== null;
        world.alarm = null;
        return;
      case 'alarm':
        if (step.when !== 'early' && world.alarm !== null) world.now = Math.max(world.now, world.alarm);
        if (step.when === 'late') world.now += 60_000;
        for (let times = step.when === 'twice' ? 2 : 1; times > 0; times--) {
          world.fire();
          model.tidy(this.now);
          model.prune(this.now);
        }
        this.lost = false;
        return;
      case 'fault':
        this.withFault(step.statement, step.step);
        return;
      default:
        this.operate(step);
    }
  }

  /** A statement in the middle fails: the operation leaves no trace, but what was due is treated as due all the same. */
  private withFault(statement: number, step: Step): void {
    const { world, model } = this;
    world.failAt(statement);
    const before = structuredClone({ jobs: model.jobs, paused: model.paused, keys: model.keys });
    try {
      this.step(step);
    } catch (error) {
      if (!(error instanceof InjectedFault)) throw error;
      model.jobs = before.jobs;
      model.paused = before.paused;
      model.keys = before.keys;
    } finally {
      world.heal();
    }
    world.engine.writeNow(() => undefined);
    model.tidy(this.now);
  }

  /** Runs an operation; a refusal is an answer. */
  private attempt<T>(operation: (now: number) => T): { value: T } | { status: number } {
    try {
      return { value: this.world.engine.writeNow(operation) };
    } catch (error) {
      if (error instanceof ApiError) return { status: error.data.status };
      throw error;
    }
  }

  private operate(step: Step): void {
    const { model, world } = this;
    const { q } = world.engine;
    switch (step.op) {
      case 'enqueue': {
        const jobs = step.jobs.map((order) => newJob(order, this.now));
        const receipt = world.engine.writeNow((now) => enqueue(q, jobs, now));
        model.tidy(this.now);
        for (const [index, { record }] of receipt.jobs.entries()) {
          model.add(record.id, step.jobs[index] as JobOrder, this.now);
        }
        return;
      }
      case 'claim':
        this.claim(step);
        return;
      case 'ack':
        this.ack(step);
        return;
      case 'nack':
        this.nack(step);
        return;
      case 'heartbeat': {
        const { extended } = world.engine.writeNow((now) => heartbeat(q, { worker_id: step.worker }, now));
        model.tidy(this.now);
        const held = model.jobs.filter((job) => job.lease?.worker === step.worker);
        expect(new Set(extended)).toEqual(new Set(held.map((job) => job.id)));
        for (const job of held) model.extend(job, this.now);
        return;
      }
      case 'override': {
        const override = step.concurrency === null ? null : { concurrency: step.concurrency };
        const known = world.engine.writeNow((now) => overrideRateLimit(q, step.key, override, now));
        model.tidy(this.now);
        if (!known) return;
        if (step.concurrency === null) delete model.keys[step.key].concurrency;
        else model.keys[step.key].concurrency = step.concurrency;
        return;
      }
      case 'pause':
        world.engine.writeNow((now) => setPaused(q, step.paused, now));
        model.tidy(this.now);
        model.paused = step.paused;
        return;
      case 'cancel':
        this.onJob(
          step.pick,
          (id, now) => cancel(q, id, now),
          (job) => {
            if (!['waiting', 'pending', 'active'].includes(job.state)) return 409;
            model.cancel(job, this.now);
            return 200;
          },
        );
        return;
      case 'activate':
        this.onJob(
          step.pick,
          (id, now) => activate(q, id, now),
          (job) => {
            if (job.state !== 'pending') return 409;
            job.state = 'waiting';
            job.availableAt = Math.max(this.now, job.availableAt);
            return 200;
          },
        );
        return;
      case 'redrive':
        this.onJob(
          step.pick,
          (id, now) => redrive(q, id, { deadLetterOnly: false }, now),
          (job) => {
            if (!['discarded', 'cancelled', 'retryable'].includes(model.stateOf(job, this.now))) return 409;
            model.redrive(job, this.now);
            return 200;
          },
        );
        return;
      case 'patch':
        this.onJob(
          step.pick,
          (id, now) => patch(q, { id, ...request(step.change, now) }, now),
          (job) => {
            if (job.state !== 'waiting' && job.state !== 'pending') return 409;
            model.patch(job, step.change, this.now);
            return 200;
          },
        );
        return;
      case 'bulk': {
        const id = `bulk-${++this.operations}`;
        const { priority } = step;
        const filter = { priority: { min: priority, max: priority } };
        // All in one transaction, so that a fault undoes all of it.
        world.engine.writeNow((now) => {
          createTask(q, { id, action: step.action, filter }, now);
          while (!stepTask(q, id, now));
        });
        model.tidy(this.now);
        model.bulk(step.action, priority, this.now);
        return;
      }
      case 'delete-dead':
        this.onJob(
          step.pick,
          (id) => deleteDeadLetter(q, id),
          (job) => {
            if (!job.dead) return 404;
            job.state = 'gone';
            return 200;
          },
        );
        return;
    }
  }

  /** An operation on one job, and what the model expects of it. */
  private onJob(
    pick: number,
    operation: (id: string, now: number) => unknown,
    expected: (job: ModelJob) => number,
  ): void {
    const job = this.pick(pick);
    if (!job) return;
    const outcome = this.attempt((now) => operation(job.id, now));
    this.model.tidy(this.now);
    const status = job.state === 'gone' ? 404 : expected(job);
    expect('status' in outcome ? outcome.status : 200, `${job.id} in ${job.state}`).toBe(status);
  }

  /** Any job; most often one that has not gone. */
  private pick(pick: number): ModelJob | undefined {
    const { jobs } = this.model;
    const there = jobs.filter((job) => job.state !== 'gone');
    const from = pick % 10 === 0 || there.length === 0 ? jobs : there;
    return from[pick % Math.max(1, from.length)];
  }

  /** A job for a report: most often one that runs. */
  private pickForReport(pick: number): ModelJob | undefined {
    const active = this.model.jobs.filter((job) => job.state === 'active');
    return pick % 5 === 0 || active.length === 0 ? this.pick(pick) : active[pick % active.length];
  }

  private claim(step: Extract<Step, { op: 'claim' }>): void {
    const { model, world } = this;
    const request = {
      count: step.count,
      worker_id: step.worker,
      ...(step.visibility > 0 && { visibility_timeout_ms: step.visibility }),
    };
    const views = world.engine.writeNow((now) => claim(world.engine.q, request, now));
    model.tidy(this.now);
    const available = model.paused ? [] : model.available(this.now);
    const room = roomOf(model, this.now);
    expect(views.length, 'jobs claimed').toBe(Math.min(step.count, startable(available, room)));
    const claimed = views.map((view) => {
      const job = available.find((candidate) => candidate.id === view.record.id);
      expect(job, `${view.record.id} was not available`).toBeDefined();
      return job as ModelJob;
    });
    // In order, and nothing left behind that should have come before.
    for (let i = 1; i < claimed.length; i++) {
      expect(rank(claimed[i - 1] as ModelJob, claimed[i] as ModelJob)).toBeLessThanOrEqual(0);
    }
    const last = claimed.at(-1);
    for (const { order } of claimed) if (order.limit) room[order.limit]--;
    for (const [key, left] of Object.entries(room)) expect(left, `room of ${key}`).toBeGreaterThanOrEqual(0);
    for (const job of available) {
      if (!last || claimed.includes(job)) continue;
      const { limit } = job.order;
      // Where its key has no room left, others go first, but none that stands behind it in the same line.
      const before = limit && room[limit] === 0 ? claimed.filter(({ order }) => order.limit === limit) : [last];
      for (const other of before) expect(rank(other, job), `${job.id} was passed over`).toBeLessThanOrEqual(0);
    }
    for (const [index, job] of claimed.entries()) {
      model.claim(job, step.worker, step.visibility, this.now);
      expect((views[index] as JobView).record.attempt).toBe(job.attempt);
    }
  }

  private ack(step: Extract<Step, { op: 'ack' }>): void {
    const job = this.pickForReport(step.pick);
    if (!job) return;
    const named = this.named(job, step.attempt);
    const worker = job.lease?.worker;
    const request = {
      job_id: job.id,
      ...(named !== undefined && { attempt: named }),
      ...(worker !== undefined && { worker_id: step.worker === 'right' ? worker : 'mallory' }),
      result: JSON.stringify({ of: job.id }),
    };
    const outcome = this.attempt((now) => ack(this.world.engine.q, request, now));
    this.model.tidy(this.now);
    let status = 409;
    if (job.state === 'gone') status = 404;
    else if (job.state === 'completed') status = named !== undefined && named === job.completedBy ? 200 : 409;
    else if (job.state === 'active' && fits(named, job.attempt) && (worker === undefined || step.worker === 'right')) {
      status = 200;
      this.model.complete(job, this.now);
    }
    expect('status' in outcome ? outcome.status : 200, `ack of ${job.id} in ${job.state}`).toBe(status);
  }

  private nack(step: Extract<Step, { op: 'nack' }>): void {
    const job = this.pickForReport(step.pick);
    if (!job) return;
    const named = this.named(job, step.attempt);
    const request = {
      job_id: job.id,
      ...(named !== undefined && { attempt: named }),
      error: {
        code: 'handler_error',
        message: 'simulated',
        ...(step.how === 'final' && { retryable: false }),
        ...(step.how === 'retry-in' && { retry_in: 777 }),
      },
      ...(step.how === 'requeue' && { requeue: true }),
    };
    const outcome = this.attempt((now) => nack(this.world.engine.q, request, now, () => 0.5));
    this.model.tidy(this.now);
    let status = 409;
    if (job.state === 'gone') status = 404;
    else if (job.state === 'active' && fits(named, job.attempt)) {
      status = 200;
      const left = job.attempt < Math.max(1, job.order.maxAttempts);
      if (step.how === 'requeue' && left) this.model.requeue(job, this.now);
      else
        this.model.fail(job, this.now, {
          delay: step.how === 'retry-in' ? 777 : job.order.backoff,
          final: step.how === 'final',
        });
    } else if (named !== undefined && repeats(job, named, step.how === 'requeue')) {
      // The repeated report of the attempt that it ended is told the outcome.
      status = 200;
    }
    expect('status' in outcome ? outcome.status : 200, `nack of ${job.id} in ${job.state}`).toBe(status);
  }

  private named(job: ModelJob, how: 'right' | 'stale' | 'none'): number | undefined {
    if (how === 'none') return undefined;
    return how === 'right' ? Math.max(1, job.attempt) : job.attempt + 1;
  }

  /** The product and the model must agree, and everything due must have a wake. */
  private compare(everything: boolean): void {
    const { world, model } = this;
    const q = world.engine.tidied();
    model.tidy(this.now);
    const counts = stats(q, this.now).counts;
    const expected = Object.fromEntries(VISIBLE.map((state) => [state, 0]));
    for (const job of model.jobs) {
      const state = model.stateOf(job, this.now);
      if (state !== 'gone') expected[state] = (expected[state] ?? 0) + 1;
    }
    expect(counts, 'counts').toEqual(expected);
    this.checkWake();
    if (everything) this.compareJobs();
  }

  private checkWake(): void {
    const { world, model } = this;
    if (world.alarm !== null) this.lost = false;
    const due = model.nextDue(this.now);
    // A lost alarm is noticed when it is some seconds late; until then nobody can know.
    if (this.lost || !Number.isFinite(due)) return;
    expect(world.alarm, `nothing is armed although something is due at ${due}`).not.toBeNull();
    // A little later where an alarm that ran already stood for that very moment: the same one would never fire again.
    expect(world.alarm as number, 'armed too late').toBeLessThanOrEqual(due + SLACK_MS);
  }

  private compareJobs(): void {
    const { model, world } = this;
    const { q } = world.engine;
    const there = model.jobs.filter((job) => job.state !== 'gone');
    for (const job of model.jobs) {
      const found = find(q, job.id);
      if (job.state === 'gone') {
        expect(found, `${job.id} is gone`).toBeUndefined();
        continue;
      }
      expect(found, `${job.id} is lost`).toBeDefined();
      if (found) this.compareJob(job, viewOf(q, found, this.now).record);
    }
    const page = list(q, { limit: 200 }, this.now);
    const listed = page.jobs.map(({ record }) => record.id);
    expect(page.total).toBe(there.length);
    expect(listed).toEqual(
      there
        .map((job) => job.id)
        .reverse()
        .slice(0, 200),
    );
  }

  private compareJob(job: ModelJob, record: JobRecord): void {
    expect({
      state: record.state,
      attempt: record.attempt,
      failures: record.history.errors?.length ?? 0,
      worker: record.worker_id,
      dead: record.history.dead_letter ?? false,
      ...(record.state === 'discarded' && { reason: record.history.reason }),
      ...(record.state === 'completed' && { result: record.result }),
    }).toEqual({
      state: this.model.stateOf(job, this.now),
      attempt: job.attempt,
      failures: job.failures,
      worker: job.lease?.worker,
      dead: job.dead,
      ...(job.state === 'discarded' && { reason: job.reason }),
      ...(job.state === 'completed' && { result: JSON.stringify({ of: job.id }) }),
    });
  }
}

/** Is this the repeated report of the attempt that ended last? */
function repeats(job: ModelJob, named: number, requeue: boolean): boolean {
  if (job.state !== 'waiting' && job.state !== 'discarded') return false;
  return named === job.failedBy || (requeue && job.state === 'waiting' && named === job.requeuedBy);
}

function fits(named: number | undefined, attempt: number): boolean {
  return named === undefined || named === attempt;
}

/** Negative when `a` must be taken before `b`. */
function rank(a: ModelJob, b: ModelJob): number {
  return b.order.priority - a.order.priority || a.availableAt - b.availableAt;
}

/** A change as the queue takes it. */
function request({ priority, delay, ttl, maxAttempts }: JobChange, now: number): Omit<PatchRequest, 'id'> {
  const at = (ms: number | null) => (ms === null ? null : now + ms);
  return {
    ...(priority !== undefined && { priority }),
    ...(delay !== undefined && { scheduled_at: at(delay) }),
    ...(ttl !== undefined && { expires_at: at(ttl) }),
    ...(maxAttempts !== undefined && { retry: { max_attempts: maxAttempts } }),
  };
}

/** What each key has room for. */
function roomOf(model: Model, now: number): Record<LimitKey, number> {
  return {
    narrow: model.room('narrow', now),
    rated: model.room('rated', now),
    spaced: model.room('spaced', now),
  };
}

/** How many of these jobs may start together. */
function startable(jobs: readonly ModelJob[], room: Record<LimitKey, number>): number {
  const keys = Object.keys(room) as LimitKey[];
  const limited = keys.map((key) => Math.min(room[key], jobs.filter(({ order }) => order.limit === key).length));
  return limited.reduce((sum, count) => sum + count, jobs.filter(({ order }) => order.limit === null).length);
}

const ON_WIRE = {
  narrow: { key: 'narrow', concurrency: 1 },
  rated: { key: 'rated', concurrency: 3, rate: 2, period: 'PT5S' },
  spaced: { key: 'spaced', throttle: { limit: 5, period: 'PT2S' } },
};

function newJob(order: JobOrder, now: number): NewJob {
  const retry = {
    max_attempts: order.maxAttempts,
    backoff_strategy: 'constant',
    initial_interval: order.backoff,
    max_interval: null,
    jitter: false,
    on_exhaustion: order.deadLetter ? 'dead_letter' : 'discard',
  };
  const body = {
    type: 'simulated.job',
    args: [],
    meta: {},
    retry,
    ...(order.limit && { rate_limit: ON_WIRE[order.limit] }),
    ...(order.timeout > 0 && { timeout_ms: order.timeout }),
    ...(order.delay > 0 && { scheduled_at: now + order.delay }),
  };
  return {
    type: body.type,
    priority: order.priority,
    retry,
    body: JSON.stringify(body),
    ...(order.delay > 0 && { scheduledAt: now + order.delay }),
    ...(order.ttl > 0 && { expiresAt: now + order.ttl }),
    ...(order.pending && { pending: true }),
    ...(order.limit && { limit: readLimitPolicy(ON_WIRE[order.limit], 'rate_limit', 'simulated') }),
  };
}
