/** What producers and operators do to jobs and to the queue as a whole. */
import { expect } from 'vitest';
import type { LimitOverrides } from '../../src/job/limits/overrides';
import type { NewJob } from '../../src/job/record';
import { createTask, stepTask } from '../../src/queue/features/bulk/tasks';
import { setPaused, takeDefaults } from '../../src/queue/features/lifecycle/settings';
import { activate } from '../../src/queue/jobs/activate';
import { cancel } from '../../src/queue/jobs/cancel';
import { enqueue as enqueueJobs } from '../../src/queue/jobs/enqueue';
import { patch } from '../../src/queue/jobs/patch';
import { deleteDeadLetter, redrive } from '../../src/queue/jobs/redrive';
import type { PatchRequest } from '../../src/rpc/operations';
import { type Scene, statusOf } from './scene';
import type { JobChange, Step } from './steps';

type StepOf<Op extends Step['op']> = Extract<Step, { op: Op }>;

/** @param jobs the orders of the step, as the queue takes them */
export function enqueue(scene: Scene, { jobs: orders }: StepOf<'enqueue'>, jobs: readonly NewJob[]): void {
  const { model, q } = scene;
  const outcome = scene.attempt((now) => enqueueJobs(q, jobs, now));
  scene.tidy();
  const placement = model.enqueue(orders, scene.now);
  expect(statusOf(outcome), 'enqueue').toBe('refused' in placement ? 409 : 200);
  if ('refused' in placement && 'error' in outcome) {
    const { index, existing_job_id, existing_index } = outcome.error.details ?? {};
    expect(index, 'entry that is refused').toBe(orders.length > 1 ? placement.refused : undefined);
    // An entry of the same batch has no id that anybody knows.
    if (existing_index === undefined) expect(existing_job_id, 'job that exists').toBe(placement.by.id);
    else expect(placement.by.id).toBe('');
  }
  if ('refused' in placement || 'error' in outcome) return;
  for (const [index, { job, existing }] of placement.placed.entries()) {
    const enqueued = outcome.value.jobs[index];
    expect(enqueued?.deduplicated ?? false, `entry ${index} is a duplicate`).toBe(existing);
    if (!existing) job.id = enqueued?.record.id ?? '';
    expect(enqueued?.record.id, `entry ${index}`).toBe(job.id);
  }
}

export function override(scene: Scene, step: StepOf<'override'>): void {
  const { model, world, q } = scene;
  const { key, concurrency, expiresIn } = step;
  const ends = expiresIn === null ? undefined : scene.now + expiresIn;
  const { [key]: _, ...others } = q.defaults?.overrides ?? {};
  const overrides: LimitOverrides =
    concurrency === null
      ? others
      : { ...others, [key]: { concurrency, ...(ends !== undefined && { expires_at: ends }) } };
  const version = (q.defaults?.version ?? 0) + 1;
  world.engine.writeNow(() => takeDefaults(q, { version, config: {}, overrides }));
  scene.tidy();
  if (concurrency === null) delete model.keys[key].override;
  else model.keys[key].override = { concurrency, expiresAt: ends ?? Number.POSITIVE_INFINITY };
}

export function pause(scene: Scene, paused: boolean): void {
  scene.world.engine.writeNow((now) => setPaused(scene.q, paused, now));
  scene.tidy();
  scene.model.paused = paused;
}

export function bulk(scene: Scene, { action, priority }: StepOf<'bulk'>): void {
  const { model, world, q } = scene;
  const id = `bulk-${++scene.operations}`;
  const filter = { priority: { min: priority, max: priority } };
  // All in one transaction, so that a fault undoes all of it.
  world.engine.writeNow((now) => {
    createTask(q, { id, action, filter }, now);
    while (!stepTask(q, id, now));
  });
  scene.tidy();
  model.bulk(action, priority, scene.now);
}

/** A step that concerns one job. */
export function onJob(scene: Scene, step: StepOf<'cancel' | 'activate' | 'redrive' | 'patch' | 'delete-dead'>): void {
  const { model, q } = scene;
  switch (step.op) {
    case 'cancel':
      scene.onJob(
        step.pick,
        (id, now) => cancel(q, id, now),
        (job) => {
          if (!['waiting', 'pending', 'active'].includes(job.state)) return 409;
          model.cancel(job, scene.now);
          return 200;
        },
      );
      break;
    case 'activate':
      scene.onJob(
        step.pick,
        (id, now) => activate(q, id, now),
        (job) => {
          if (job.state !== 'pending') return 409;
          job.state = 'waiting';
          job.availableAt = Math.max(scene.now, job.availableAt);
          return 200;
        },
      );
      break;
    case 'redrive':
      scene.onJob(
        step.pick,
        (id, now) => redrive(q, id, { deadLetterOnly: false }, now),
        (job) => {
          if (!['discarded', 'cancelled', 'retryable'].includes(model.stateOf(job, scene.now))) return 409;
          model.redrive(job, scene.now);
          return 200;
        },
      );
      break;
    case 'patch':
      scene.onJob(
        step.pick,
        (id, now) => patch(q, { id, ...request(step.change, now) }, now),
        (job) => {
          if (job.state !== 'waiting' && job.state !== 'pending') return 409;
          model.patch(job, step.change, scene.now);
          return 200;
        },
      );
      break;
    case 'delete-dead':
      scene.onJob(
        step.pick,
        (id) => deleteDeadLetter(q, id, scene.now),
        (job) => {
          if (!job.dead) return 404;
          job.state = 'gone';
          return 200;
        },
      );
      break;
  }
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
