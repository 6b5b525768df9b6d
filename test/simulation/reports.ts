/** Workers: they claim jobs, report on them, and say that they live. */
import { expect } from 'vitest';
import type { JobView } from '../../src/job/record';
import { claim as claimJobs } from '../../src/queue/jobs/claim';
import { heartbeat as sendHeartbeat } from '../../src/queue/jobs/heartbeat';
import { nack as reportFailure, ack as reportSuccess } from '../../src/queue/jobs/report';
import type { LimitKey, Model, ModelJob } from './model';
import { type Scene, statusOf } from './scene';
import type { Step } from './steps';

export function claim(scene: Scene, step: Extract<Step, { op: 'claim' }>): void {
  const { model, world, q } = scene;
  const { now } = scene;
  const request = {
    count: step.count,
    worker_id: step.worker,
    ...(step.visibility > 0 && { visibility_timeout_ms: step.visibility }),
  };
  const views = world.engine.writeNow((at) => claimJobs(q, request, at).jobs);
  scene.tidy();
  const available = model.paused ? [] : model.available(now);
  const room = roomOf(model, now);
  // A window in which some may start, and then more, is looked at by the first claim and used up by the next one.
  const least = { ...room, rated: Math.min(room.rated, 1) };
  expect(views.length, 'jobs claimed').toBeGreaterThanOrEqual(Math.min(step.count, startable(available, least)));
  expect(views.length, 'jobs claimed').toBeLessThanOrEqual(Math.min(step.count, startable(available, room)));
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
    const isHeld = limit && (room[limit] === 0 || limit === 'rated');
    const before = isHeld ? claimed.filter(({ order }) => order.limit === limit) : [last];
    for (const other of before) expect(rank(other, job), `${job.id} was passed over`).toBeLessThanOrEqual(0);
  }
  for (const [index, job] of claimed.entries()) {
    model.claim(job, step.worker, step.visibility, now);
    expect((views[index] as JobView).record.attempt).toBe(job.attempt);
  }
}

export function heartbeat(scene: Scene, worker: string): void {
  const { model, world, q } = scene;
  const { extended } = world.engine.writeNow((now) => sendHeartbeat(q, { worker_id: worker }, now));
  scene.tidy();
  const held = model.jobs.filter((job) => job.lease?.worker === worker);
  expect(new Set(extended)).toEqual(new Set(held.map((job) => job.id)));
  for (const job of held) model.extend(job, scene.now);
}

export function ack(scene: Scene, step: Extract<Step, { op: 'ack' }>): void {
  const job = pickForReport(scene, step.pick);
  if (!job) return;
  const attempt = named(job, step.attempt);
  const worker = job.lease?.worker;
  const request = {
    job_id: job.id,
    ...(attempt !== undefined && { attempt }),
    ...(worker !== undefined && { worker_id: step.worker === 'right' ? worker : 'mallory' }),
    result: JSON.stringify({ of: job.id }),
  };
  const outcome = scene.attempt((now) => reportSuccess(scene.q, request, now));
  scene.tidy();
  let status = 409;
  if (job.state === 'gone') status = 404;
  else if (job.state === 'completed') status = attempt !== undefined && attempt === job.completedBy ? 200 : 409;
  else if (job.state === 'active' && fits(attempt, job.attempt) && (worker === undefined || step.worker === 'right')) {
    status = 200;
    scene.model.complete(job, scene.now);
  }
  expect(statusOf(outcome), `ack of ${job.id} in ${job.state}`).toBe(status);
}

export function nack(scene: Scene, step: Extract<Step, { op: 'nack' }>): void {
  const job = pickForReport(scene, step.pick);
  if (!job) return;
  const attempt = named(job, step.attempt);
  const request = {
    job_id: job.id,
    ...(attempt !== undefined && { attempt }),
    error: {
      code: 'handler_error',
      message: 'simulated',
      ...(step.how === 'final' && { retryable: false }),
      ...(step.how === 'retry-in' && { retry_in: 777 }),
    },
    ...(step.how === 'requeue' && { requeue: true }),
  };
  const outcome = scene.attempt((now) => reportFailure(scene.q, request, now, () => 0.5));
  scene.tidy();
  let status = 409;
  if (job.state === 'gone') status = 404;
  else if (job.state === 'active' && fits(attempt, job.attempt)) {
    status = 200;
    const left = job.attempt < Math.max(1, job.order.maxAttempts);
    if (step.how === 'requeue' && left) scene.model.requeue(job, scene.now);
    else
      scene.model.fail(job, scene.now, {
        delay: step.how === 'retry-in' ? 777 : job.order.backoff,
        final: step.how === 'final',
      });
  } else if (attempt !== undefined && repeats(job, attempt, step.how === 'requeue')) {
    // The repeated report of the attempt that it ended is told the outcome.
    status = 200;
  }
  expect(statusOf(outcome), `nack of ${job.id} in ${job.state}`).toBe(status);
}

/** A job for a report: most often one that runs. */
function pickForReport(scene: Scene, pick: number): ModelJob | undefined {
  const active = scene.model.jobs.filter((job) => job.state === 'active');
  return pick % 5 === 0 || active.length === 0 ? scene.pick(pick) : active[pick % active.length];
}

function named(job: ModelJob, how: 'right' | 'stale' | 'none'): number | undefined {
  if (how === 'none') return undefined;
  return how === 'right' ? Math.max(1, job.attempt) : job.attempt + 1;
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
