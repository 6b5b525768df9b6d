/** Everything that can be seen from outside must be as the model says, and everything due must have a wake. */
import { expect } from 'vitest';
import type { JobRecord } from '../../src/job/record';
import { cronHistory } from '../../src/queue/features/cron/manage';
import { find, viewOf } from '../../src/queue/read/find';
import { list } from '../../src/queue/read/list';
import { stats } from '../../src/queue/read/stats';
import type { ModelJob } from './model';
import { type ModelCron, nextCronDue } from './model-crons';
import { knownCounts } from './model-unique';
import type { Scene } from './scene';

/** By how much alarms that fire early, again and again, may push the next one; ms. */
const SLACK_MS = 20;

/** Other queues that could not be asked are asked again within this time, ms. */
const ASK_AGAIN_MS = 5_000;

const VISIBLE = ['scheduled', 'available', 'pending', 'active', 'retryable', 'completed', 'cancelled', 'discarded'];

/** What an entry remembers. */
const KEPT_EXECUTIONS = 50;
const KEPT_SKIPS = 20;

/** @param everything each job and each history too, not just what is counted */
export function compare(scene: Scene, everything: boolean): void {
  const { model, world, now } = scene;
  const q = world.engine.tidied();
  scene.tidy();
  scene.finish();
  const { counts } = stats(q, now);
  const expected = Object.fromEntries(VISIBLE.map((state) => [state, 0]));
  for (const job of model.jobs) {
    const state = model.stateOf(job, now);
    if (state !== 'gone') expected[state] = (expected[state] ?? 0) + 1;
  }
  expect(counts, 'counts').toEqual(expected);
  expect(q.crons.summaries().map(({ name }) => name)).toEqual([...model.crons.entries.keys()].sort());
  for (const cron of model.crons.entries.values()) compareCron(scene, cron, everything);
  checkWake(scene);
  if (everything) compareJobs(scene);
}

function checkWake(scene: Scene): void {
  const { world, model, now } = scene;
  if (world.alarm !== null) scene.lost = false;
  const unasked = [...model.crons.entries.values()].some(({ asked }) => asked.length > 0) && world.asks.length === 0;
  const due = Math.min(model.nextDue(now), nextCronDue(model, now), unasked ? now + ASK_AGAIN_MS : Infinity);
  // A lost alarm is noticed when it is some seconds late; until then nobody can know.
  if (scene.lost || !Number.isFinite(due)) return;
  expect(world.alarm, `nothing is armed although something is due at ${due}`).not.toBeNull();
  // A little later where an alarm that ran already stood for that very moment: the same one would never fire again.
  expect(world.alarm as number, 'armed too late').toBeLessThanOrEqual(due + SLACK_MS);
}

function compareJobs(scene: Scene): void {
  const { model, q, now } = scene;
  const there = model.jobs.filter((job) => job.state !== 'gone');
  for (const job of model.jobs) {
    const found = find(q, job.id);
    if (job.state === 'gone') {
      expect(found, `${job.id} is gone`).toBeUndefined();
      continue;
    }
    expect(found, `${job.id} is lost`).toBeDefined();
    if (found) compareJob(scene, job, viewOf(q, found, now).record);
  }
  const page = list(q, { limit: 200 }, now);
  const listed = page.jobs.map(({ record }) => record.id);
  expect(page.total).toBe(there.length);
  expect(listed).toEqual(
    there
      .map((job) => job.id)
      .reverse()
      .slice(0, 200),
  );
  const kept = q.sql.exec<{ n: number }>('SELECT count(*) AS n FROM unique_keys GROUP BY fingerprint ORDER BY n');
  expect(
    kept.toArray().map(({ n }) => n),
    'unique jobs on record',
  ).toEqual(knownCounts(model));
}

function compareJob({ model, now }: Scene, job: ModelJob, record: JobRecord): void {
  const { scheduled_at, priority } = { ...(JSON.parse(record.body) as { scheduled_at?: number }), ...record };
  expect({
    state: record.state,
    priority,
    created: record.created_at,
    scheduled: scheduled_at,
    attempt: record.attempt,
    failures: record.history.errors?.length ?? 0,
    worker: record.worker_id,
    dead: record.history.dead_letter ?? false,
    ...(record.state === 'discarded' && { reason: record.history.reason }),
    ...(record.state === 'completed' && { result: record.result }),
  }).toEqual({
    state: model.stateOf(job, now),
    priority: job.order.priority,
    created: job.createdAt,
    scheduled: job.scheduledAt,
    attempt: job.attempt,
    failures: job.failures,
    worker: job.lease?.worker,
    dead: job.dead,
    ...(job.state === 'discarded' && { reason: job.reason }),
    ...(job.state === 'completed' && { result: JSON.stringify({ of: job.id }) }),
  });
}

function compareCron(scene: Scene, cron: ModelCron, everything: boolean): void {
  const { q, now, model } = scene;
  const { name, terms } = cron;
  const entry = q.crons.read(name);
  expect({
    enabled: entry?.definition.enabled,
    next: entry?.run.next_at,
    runs: entry?.run.runs,
    fires: entry?.run.fires,
    skips: entry?.run.skips,
    last: entry?.run.last_job,
    lastAt: entry?.run.last_run_at,
    waiting: entry?.run.waiting,
    asked: entry?.run.across.map(({ tick }) => tick),
  }).toEqual({
    enabled: terms.enabled,
    next: Number.isFinite(cron.nextAt) ? cron.nextAt : undefined,
    runs: cron.runs,
    fires: cron.fires,
    skips: cron.skips,
    last: cron.lastJob?.id,
    lastAt: cron.lastRunAt,
    waiting: cron.waiting,
    asked: cron.asked.map(({ tick }) => tick),
  });
  if (!everything) return;
  const { executions, skipped } = cronHistory(q, name, KEPT_EXECUTIONS, now);
  expect(executions.reverse().map(({ job_id, tick, at, state }) => ({ job_id, tick, at, state }))).toEqual(
    cron.history.slice(-KEPT_EXECUTIONS).map(({ job, tick, at }) => {
      const state = model.stateOf(job, now);
      return { job_id: job.id, tick, at, state: state === 'gone' ? 'pruned' : state };
    }),
  );
  expect(skipped.reverse()).toEqual(
    cron.skipped.slice(-KEPT_SKIPS).map(({ by, ...skip }) => ({ ...skip, ...(by && { job_id: by.id }) })),
  );
}
