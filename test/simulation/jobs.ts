/** What producers and operators do to jobs and to the queue as a whole. */
import { ApiError } from '../../src/job/errors';
import type { LimitOverrides } from '../../src/job/limits/overrides';
import type { NewJob } from '../../src/job/record';
import { createTask, stepTask } from '../../src/queue/features/bulk/tasks';
import { configure, setPaused, takeDefaults } from '../../src/queue/features/lifecycle/settings';
import { activate } from '../../src/queue/jobs/activate';
import { cancel } from '../../src/queue/jobs/cancel';
import { enqueue as enqueueJobs } from '../../src/queue/jobs/enqueue';
import { patch } from '../../src/queue/jobs/patch';
import { deleteDeadLetter, redrive } from '../../src/queue/jobs/redrive';
import type { PatchRequest } from '../../src/rpc/operations';
import { holds, same } from './agree';
import type { JobOrder, ModelJob } from './model';
import { type Scene, statusOf } from './scene';
import type { JobChange, Step } from './steps';
import { isTooLarge, newJob } from './wire';

type StepOf<Op extends Step['op']> = Extract<Step, { op: Op }>;

/** A job that takes part in no other rule, to see whether the queue still works. */
export const PROBE: JobOrder = {
  ...{ priority: 5, delay: 0, ttl: 0, pending: false, maxAttempts: 1, backoff: 0, timeout: 0, deadLetter: false },
  ...{ limit: null, unique: null },
};

/** The jobs that a step asks for, one after the other. */
export function ordersOf({ jobs, times = 1 }: StepOf<'enqueue'>): JobOrder[] {
  return Array.from({ length: times }, () => jobs).flat();
}

/** Reads the jobs of a step as the queue takes them; undefined: one of them is too large. */
export async function readJobs(scene: Scene, step: StepOf<'enqueue'>): Promise<NewJob[] | undefined> {
  const tooLarge = step.jobs.map(isTooLarge);
  try {
    const once = await Promise.all(step.jobs.map((order) => newJob(order, scene.now)));
    holds(!tooLarge.includes(true), () => 'a job that is too large was taken');
    return Array.from({ length: step.times ?? 1 }, () => once).flat();
  } catch (error) {
    if (!(error instanceof ApiError) || ![400, 413].includes(error.data.status)) throw error;
    holds(
      tooLarge.some((is) => is !== false),
      () => `refused: ${(error as Error).message}`,
    );
    return undefined;
  }
}

/** @param jobs the orders of the step, as the queue takes them */
export function enqueue(scene: Scene, step: StepOf<'enqueue'>, jobs: readonly NewJob[]): void {
  const { model, q } = scene;
  const orders = ordersOf(step);
  const outcome = scene.attempt((now) => enqueueJobs(q, jobs, now));
  scene.tidy();
  const placement = model.enqueue(orders, scene.now);
  same(statusOf(outcome), 'refused' in placement ? 409 : 200, 'enqueue');
  if ('refused' in placement && 'error' in outcome) {
    const { index, existing_job_id, existing_index } = outcome.error.details ?? {};
    same(index, orders.length > 1 ? placement.refused : undefined, 'entry that is refused');
    // An entry of the same batch has no id that anybody knows.
    if (existing_index === undefined) same(existing_job_id, placement.by.id, 'job that exists');
    else same(placement.by.id, '');
  }
  if ('refused' in placement || 'error' in outcome) return;
  for (const [index, { job, existing }] of placement.placed.entries()) {
    const enqueued = outcome.value.jobs[index];
    same(enqueued?.deduplicated ?? false, existing, `entry ${index} is a duplicate`);
    if (!existing) job.id = enqueued?.record.id ?? '';
    same(enqueued?.record.id, job.id, `entry ${index}`);
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

/** No dead letter is kept from now on. */
export function keepNoDead(scene: Scene): void {
  scene.world.engine.writeNow(() => configure(scene.q, { dead_letter: { max_count: 0 } }));
  scene.model.keepsDead = false;
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
    case 'activate': {
      const picked = scene.pick(step.pick);
      if (picked) activateJob(scene, picked);
      break;
    }
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

export function activateJob(scene: Scene, picked: ModelJob): void {
  scene.onThis(
    picked,
    (id, now) => activate(scene.q, id, now),
    (job) => {
      if (job.state !== 'pending') return 409;
      job.state = 'waiting';
      job.availableAt = Math.max(scene.now, job.availableAt);
      return 200;
    },
  );
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
