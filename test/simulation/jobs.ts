/** What producers and operators do to jobs and to the queue as a whole. */
import fc from 'fast-check';
import { writeBatch } from '../../src/across/receipts';
import type { ParsedJob } from '../../src/job/envelope/parse';
import { ApiError, type ErrorData } from '../../src/job/errors';
import type { LimitOverrides } from '../../src/job/limits/overrides';
import { createTask, stepTask } from '../../src/queue/features/bulk/feature';
import { configure, setMode, takeDefaults } from '../../src/queue/features/lifecycle/settings';
import { cancel } from '../../src/queue/jobs/cancel';
import { enqueue as enqueueJobs } from '../../src/queue/jobs/enqueue';
import { activate, patch } from '../../src/queue/jobs/patch';
import { deleteDeadLetter, redrive } from '../../src/queue/jobs/redrive';
import type { PatchRequest } from '../../src/rpc/operations';
import type { EnqueueReceipt } from '../../src/rpc/receipts';
import { holds, same } from './agree';
import type { Area, Turn } from './area';
import type { JobOrder, LimitKey, Model, ModelJob } from './model';
import { groupOf, isStrict } from './model-groups';
import { pressureOf, queueOf, settingsOf } from './model-queue';
import { order, orders, pick } from './orders';
import * as reports from './reports';
import { type Scene, statusOf } from './scene';
import type { StepOf } from './steps';
import { isTooLarge, parsedJob } from './wire';

export type JobStep =
  /** Each of the jobs so many times; absent: once. A claim may wait for them. */
  | { op: 'enqueue'; jobs: JobOrder[]; times?: number; claim?: reports.Claim }
  | { op: 'cancel'; pick: number }
  | { op: 'activate'; pick: number }
  /** Perhaps it adds a member to what the job says of itself. */
  | { op: 'redrive'; pick: number; adds?: Addition | undefined }
  | { op: 'delete-dead'; pick: number }
  | { op: 'patch'; pick: number; change: JobChange }
  | { op: 'bulk'; action: 'cancel' | 'retry' | 'delete' | 'purge'; priority: number }
  | { op: 'pause'; paused: boolean }
  | { op: 'override'; key: LimitKey; concurrency: number | null; expiresIn: number | null };

/** A change of a waiting job; null goes back to the default. Times in ms from now. */
export interface JobChange {
  priority?: number | null;
  delay?: number | null;
  ttl?: number | null;
  maxAttempts?: number;
}

/** As much as a policy may say. None of it holds for the simulated jobs, which say for themselves what matters. */
const LONG_POLICY = {
  backoff_strategy: 'table' as const,
  table: Array.from({ length: 1_000 }, (_, index) => `PT${100_000 + index}S`),
  non_retryable_errors: Array.from({ length: 100 }, (_, index) => `nobody-${index}-`.padEnd(255, 'y')),
};

/** A member of `meta`, with so many bytes in it. */
interface Addition {
  name: 'a' | 'b' | 'c';
  bytes: number;
}

/** What a job may say of itself, and what a simulated one says there beside, bytes. */
const MAX_META = 65_536;
const PLAIN_META = 2_000;

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
async function readJobs(scene: Scene, step: StepOf<'enqueue'>): Promise<ParsedJob[] | undefined> {
  const tooLarge = step.jobs.map(isTooLarge);
  try {
    const once = await Promise.all(step.jobs.map((order) => parsedJob(order, scene.now)));
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
function enqueue(scene: Scene, step: StepOf<'enqueue'>, parsed: readonly ParsedJob[]): void {
  const jobs = parsed.map(({ job }) => job);
  const outcome = scene.attempt((now) => enqueueJobs(scene.q, jobs, now));
  // What its producer is told, written out.
  if (scene.isLarge && 'value' in outcome) scene.weighed(writeBatch(outcome.value.jobs, parsed, {}, {}));
  scene.tidy();
  expectPlaced(scene, ordersOf(step), outcome);
}

/**
 * What an enqueue must have come to.
 * @param from what the times in the orders count from, epoch ms
 */
export function expectPlaced(
  scene: Scene,
  orders: readonly JobOrder[],
  outcome: { value: EnqueueReceipt } | { error: ErrorData },
  from?: number,
): void {
  const { model } = scene;
  const placement = model.enqueue(orders, scene.now, from);
  const refused = 'refused' in placement && placement.isInDoubt ? 503 : 409;
  const status = 'placed' in placement ? 200 : 'full' in placement || 'crowded' in placement ? 429 : refused;
  same(statusOf(outcome), status, 'enqueue');
  if ('error' in outcome) {
    const { current_state, depth, bound } = outcome.error.details ?? {};
    same(current_state, 'draining' in placement ? 'draining' : current_state, 'why nothing is taken');
    if ('full' in placement) same({ depth, bound }, { depth: placement.full, bound: settingsOf(model).maxDepth });
  }
  if ('crowded' in placement && 'error' in outcome) {
    const { group, waiting, limit } = outcome.error.details ?? {};
    same({ group, waiting, limit }, placement.crowded, 'the group that is full');
  }
  if ('refused' in placement && !placement.isInDoubt && 'error' in outcome) {
    const { index, existing_job_id, existing_index } = outcome.error.details ?? {};
    same(index, orders.length > 1 ? placement.refused : undefined, 'entry that is refused');
    // An entry of the same batch has no id that anybody knows.
    if (existing_index === undefined) same(existing_job_id, placement.by.id, 'job that exists');
    else same(placement.by.id, '');
  }
  if (!('placed' in placement) || 'error' in outcome) return;
  same(outcome.value.jobs[0]?.pressure, pressureOf(model), 'pressure');
  for (const [index, { job, existing, accumulated = false }] of placement.placed.entries()) {
    const enqueued = outcome.value.jobs[index];
    same(enqueued?.deduplicated ?? false, existing, `entry ${index} is a duplicate`);
    same(enqueued?.accumulated ?? false, accumulated, `entry ${index} is a part of another`);
    if (!existing && !accumulated) job.id = enqueued?.record.id ?? '';
    same(enqueued?.record.id, job.id, `entry ${index}`);
  }
}

export function override(scene: Scene, step: StepOf<'override'>): void {
  const { model, q } = scene;
  const { key, concurrency, expiresIn } = step;
  const ends = expiresIn === null ? undefined : scene.now + expiresIn;
  const { [key]: _, ...others } = q.config.defaults?.overrides ?? {};
  const overrides: LimitOverrides =
    concurrency === null
      ? others
      : { ...others, [key]: { concurrency, ...(ends !== undefined && { expires_at: ends }) } };
  const version = (q.config.defaults?.version ?? 0) + 1;
  scene.write(() => takeDefaults(q, { config: {}, ...q.config.defaults, version, overrides }));
  scene.tidy();
  if (concurrency === null) delete model.keys[key].override;
  else model.keys[key].override = { concurrency, expiresAt: ends ?? Number.POSITIVE_INFINITY };
}

/** No dead letter is kept from now on. */
export function keepNoDead(scene: Scene): void {
  scene.write(() => configure(scene.q, { dead_letter: { max_count: 0 } }));
  scene.model.keepsDead = false;
}

export function pause(scene: Scene, paused: boolean): void {
  scene.write((now) => setMode(scene.q, paused ? 'paused' : 'active', now));
  scene.tidy();
  scene.model.paused = paused;
  queueOf(scene.model).draining = false;
}

export function bulk(scene: Scene, { action, priority }: StepOf<'bulk'>): void {
  const { model, q } = scene;
  const id = `bulk-${++scene.operations}`;
  const filter = { priority: { min: priority, max: priority } };
  // All in one transaction, so that a fault undoes all of it.
  scene.write((now) => {
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
    case 'redrive': {
      const { adds } = step;
      const meta = adds && { [adds.name]: 'x'.repeat(adds.bytes) };
      scene.onJob(
        step.pick,
        (id, now) => redrive(q, id, { deadLetterOnly: false, ...(meta && { override: { meta } }) }, now),
        (job) => {
          if (!['discarded', 'cancelled', 'retryable'].includes(model.stateOf(job, scene.now))) return 409;
          if (adds) {
            const added = { ...job.added, [adds.name]: adds.bytes };
            const bytes = Object.values(added).reduce((sum, n) => sum + n, PLAIN_META);
            if (bytes > MAX_META) return 413;
            job.added = added;
          }
          model.redrive(job, scene.now);
          return 200;
        },
      );
      break;
    }
    case 'patch':
      scene.onJob(
        step.pick,
        (id, now) => patch(q, { id, ...request(step.change, now) }, now),
        (job) => {
          if (job.state !== 'waiting' && job.state !== 'pending') return 409;
          // It would order nothing.
          if ((step.change.priority ?? 0) !== 0 && isStrict(model) && groupOf(job) !== undefined) return 422;
          if (neverStarts(model, job, step.change, scene.now)) return 422;
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

/** Would the job expire before the start that it is given, or was given before? */
function neverStarts(model: Model, job: ModelJob, { delay, ttl }: JobChange, now: number): boolean {
  if ((delay ?? null) === null && (ttl ?? null) === null) return false;
  const keepsStart = delay === undefined || model.stateOf(job, now) === 'retryable';
  const start = Math.max(now + (delay ?? 0), keepsStart ? (job.scheduledAt ?? 0) : 0);
  const expiry = ttl === undefined ? job.expiresAt : now + (ttl ?? Number.POSITIVE_INFINITY);
  return start > now && expiry > now && expiry <= start;
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

/** A claim may wait for the jobs: whether they are refused or not, it is heard. */
async function prepare(scene: Scene, step: StepOf<'enqueue'>): Promise<Turn> {
  const read = await readJobs(scene, step);
  const waiting = step.claim ? await reports.wait(scene, step.claim) : undefined;
  const before = waiting?.views;
  return {
    play: () => {
      if (read) enqueue(scene, step, read);
    },
    ...(waiting && { after: () => reports.heard(scene, waiting, before) }),
  };
}

/** Fewer jobs, or plainer ones. */
function plainerEnqueues(step: StepOf<'enqueue'>): StepOf<'enqueue'>[] {
  const fewer = step.jobs.length > 1 ? step.jobs.map((_, index) => step.jobs.toSpliced(index, 1)) : [];
  const plainer = step.jobs.flatMap((job, index) => plainerOrders(job).map((order) => step.jobs.with(index, order)));
  return [...fewer, ...plainer].map((jobs) => ({ ...step, jobs }));
}

/** The same job with less in it, for the shrinker. */
export function plainerOrders(order: JobOrder): JobOrder[] {
  const { texts, ...rest } = order;
  const plain = { ...PROBE, priority: 0 };
  const names = Object.keys(plain) as (keyof typeof plain)[];
  return [
    ...(texts ? [rest] : []),
    ...Object.keys(texts ?? {}).map((name) => ({ ...order, texts: { ...texts, [name]: undefined } })),
    ...names.map((name) => ({ ...order, [name]: plain[name] })),
  ];
}

export const area: Area<JobStep> = {
  kinds: {
    enqueue: { prepare, plainer: plainerEnqueues },
    cancel: onJob,
    activate: onJob,
    redrive: onJob,
    'delete-dead': onJob,
    patch: onJob,
    bulk,
    pause: (scene, { paused }) => pause(scene, paused),
    override,
  },
  begin(scene, { keepsNoDead, longPolicy }) {
    if (keepsNoDead) keepNoDead(scene);
    if (longPolicy) scene.write(() => configure(scene.q, { default_retry: LONG_POLICY }));
  },
  clear(scene) {
    for (const key of ['narrow', 'rated', 'spaced'] as const) {
      override(scene, { op: 'override', key, concurrency: null, expiresIn: null });
    }
    pause(scene, false);
  },
  steps: [
    {
      weight: 6,
      arbitrary: fc.record({
        op: fc.constant('enqueue' as const),
        jobs: orders,
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        op: fc.constant('enqueue' as const),
        jobs: fc.oneof(
          {
            weight: 3,
            arbitrary: order.map((job) => [{ ...job, priority: 0, delay: 0, ttl: 0, pending: false, limit: null }]),
          },
          orders,
        ),
        claim: fc.record(reports.claimed),
      }),
    },
    { weight: 2, arbitrary: fc.record({ op: fc.constant('cancel' as const), pick }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('activate' as const), pick }) },
    { weight: 2, arbitrary: fc.record({ op: fc.constant('redrive' as const), pick }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('delete-dead' as const), pick }) },
    {
      weight: 4,
      arbitrary: fc.record({
        op: fc.constant('patch' as const),
        pick,
        change: fc.record(
          {
            priority: fc.constantFrom(-1, 0, 0, 5, null),
            delay: fc.constantFrom(null, 0, 1, 400, 20_000),
            ttl: fc.constantFrom(null, 300, 10_000),
            maxAttempts: fc.constantFrom(1, 3),
          },
          { requiredKeys: [] },
        ),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        op: fc.constant('bulk' as const),
        action: fc.constantFrom('cancel' as const, 'retry' as const, 'delete' as const, 'purge' as const),
        priority: fc.constantFrom(-1, 0, 5),
      }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('pause' as const), paused: fc.boolean() }) },
    {
      weight: 1,
      arbitrary: fc.record({
        op: fc.constant('override' as const),
        key: fc.constantFrom<LimitKey>('narrow', 'rated', 'spaced'),
        concurrency: fc.constantFrom(null, null, 0, 2),
        expiresIn: fc.constantFrom(null, 300, 20_000),
      }),
    },
  ],
};
