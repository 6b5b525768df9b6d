/** Everything that can be seen from outside must be as the model says, and everything due must have a wake. */
import type { JobBody, JobRecord } from '../../src/job/record';
import { cronHistory } from '../../src/queue/features/cron/feature';
import { deadLetterPlaces, deadLettersAt } from '../../src/queue/read/dead-letters';
import { find, getMany, viewOf } from '../../src/queue/read/find';
import { list } from '../../src/queue/read/list';
import { stats } from '../../src/queue/read/stats';
import type { ListPage } from '../../src/rpc/queue';
import { holds, same } from './agree';
import type { ModelJob } from './model';
import { type ModelCron, nextCronDue } from './model-crons';
import { knownCounts } from './model-unique';
import { failureOf, resultOf } from './reports';
import type { Scene } from './scene';
import { KEPT, write } from './texts';
import { argsOf } from './wire';

/** By how much alarms that fire early, again and again, may push the next one; ms. */
const SLACK_MS = 20;

/** Other queues that could not be asked are asked again within this time, ms. */
const ASK_AGAIN_MS = 5_000;

const VISIBLE = ['scheduled', 'available', 'pending', 'active', 'retryable', 'completed', 'cancelled', 'discarded'];

/** What an entry remembers. */
const KEPT_EXECUTIONS = 50;
const KEPT_SKIPS = 20;

/** How much is compared: the wake; what is counted too; each job and each history as well. */
export type Depth = 'wake' | 'counts' | 'everything';

export function compare(scene: Scene, depth: Depth): void {
  const { model, world, now } = scene;
  const q = world.engine.tidied();
  scene.tidy();
  scene.finish();
  checkWake(scene);
  if (depth === 'wake') return;
  const { counts } = stats(q, now);
  const expected = Object.fromEntries(VISIBLE.map((state) => [state, 0]));
  for (const job of model.jobs) {
    const state = model.stateOf(job, now);
    if (state !== 'gone') expected[state] = (expected[state] ?? 0) + 1;
  }
  same(counts, expected, 'counts');
  same(
    q.store.crons.summaries().map(({ name }) => name),
    [...model.crons.entries.keys()].sort(),
  );
  const everything = depth === 'everything';
  for (const cron of model.crons.entries.values()) compareCron(scene, cron, everything);
  if (everything) compareJobs(scene);
}

function checkWake(scene: Scene): void {
  const { world, model, now } = scene;
  if (world.alarm !== null) scene.lost = false;
  const unasked = [...model.crons.entries.values()].some(({ asked }) => asked.length > 0) && world.asks.length === 0;
  const due = Math.min(model.nextDue(now), nextCronDue(model, now), unasked ? now + ASK_AGAIN_MS : Infinity);
  // A lost alarm is noticed when it is some seconds late; until then nobody can know.
  if (scene.lost || !Number.isFinite(due)) return;
  holds(world.alarm !== null, () => `nothing is armed although something is due at ${due}`);
  // A little later where an alarm that ran already stood for that very moment: the same one would never fire again.
  holds((world.alarm as number) <= due + SLACK_MS, () => `armed for ${world.alarm}, too late for ${due}`);
}

function compareJobs(scene: Scene): void {
  const { model, q, now } = scene;
  const there = model.jobs.filter((job) => job.state !== 'gone');
  for (const [index, job] of model.jobs.entries()) {
    // The list below has most of them: a third is looked for by id.
    if ((index + now) % 3 !== 0) continue;
    const found = find(q, job.id);
    if (job.state === 'gone') {
      holds(found === undefined, () => `${job.id} is not gone`);
      continue;
    }
    holds(found !== undefined, () => `${job.id} is lost`);
    if (found) compareJob(scene, job, viewOf(q, found, now).record);
  }
  const { jobs: listed, total } = scene.isLarge ? listAll(scene) : list(q, { limit: 200 }, now);
  same(total, there.length);
  const newest = there.reverse().slice(0, listed.length);
  same(
    listed.map(({ record }) => record.id),
    newest.map(({ id }) => id),
  );
  for (const [index, { record }] of listed.entries()) compareJob(scene, newest[index] as ModelJob, record);
  const kept = q.store.sql.exec<{ n: number }>('SELECT count(*) AS n FROM unique_keys GROUP BY fingerprint ORDER BY n');
  const counted = kept.toArray().map(({ n }) => n);
  same(counted, knownCounts(model), 'unique jobs on record');
}

/** All jobs, page by page, and so many together as one answer holds. */
function listAll(scene: Scene): Pick<ListPage, 'jobs' | 'total'> {
  const { q, now, model } = scene;
  const ids = model.jobs.filter(({ state }) => state !== 'gone').map(({ id }) => id);
  const { jobs, omitted } = scene.weighed(getMany(q, ids, now));
  same([...jobs.map(({ record }) => record.id), ...omitted].sort(), ids.sort());
  const dead = deadLetterPlaces(q, { limit: 100 }, now).places.map(({ key }) => key);
  scene.weighed(deadLettersAt(q, dead, now));
  const page = scene.weighed(list(q, { limit: 100 }, now));
  const all = { jobs: [...page.jobs], total: page.total };
  for (let { next } = page; next !== undefined; ) {
    const more = scene.weighed(list(q, { limit: 100, before: next }, now));
    all.jobs.push(...more.jobs);
    next = more.next;
  }
  return all;
}

/** What was said of the last failure is kept, but no more of it than may be. */
function compareError({ error }: ModelJob, record: JobRecord): void {
  const kept = record.history.errors?.at(-1);
  if (!error || kept?.code === 'timeout' || kept?.code === 'visibility_timeout') return;
  const said = failureOf(error);
  const type = said.type ?? said.classes?.[0] ?? said.code;
  for (const [name, text] of Object.entries({ code: said.code, type, message: said.message })) {
    const is = String(kept?.[name as keyof typeof KEPT]);
    const limit = KEPT[name as keyof typeof KEPT];
    const isCut = text.startsWith(is) && is.length >= Math.min(text.length, limit) - 1 && is.length <= limit;
    if (!isCut || !is.isWellFormed()) throw new Error(`${name} of ${record.id}: ${is.length} of ${text.length}`);
  }
}

function compareJob({ model, now, isLarge }: Scene, job: ModelJob, record: JobRecord): void {
  const body = JSON.parse(record.body) as Pick<JobBody, 'scheduled_at' | 'args' | 'coalesced'>;
  const errors = record.history.errors?.length ?? 0;
  // Where they say much only the newest are kept.
  const failures = isLarge && errors > 0 ? Math.min(errors, job.failures) : job.failures;
  const { scheduled_at, priority } = { ...body, ...record };
  const seen = {
    state: record.state,
    priority,
    created: record.created_at,
    scheduled: scheduled_at,
    attempt: record.attempt,
    failures: errors,
    worker: record.worker_id,
    dead: record.history.dead_letter ?? false,
    ...(record.state === 'discarded' && { reason: record.history.reason }),
    ...(record.state === 'completed' && { result: record.result }),
  };
  same(seen, {
    state: model.stateOf(job, now),
    priority: job.order.priority,
    created: job.createdAt,
    scheduled: job.scheduledAt,
    attempt: job.attempt,
    failures,
    worker: job.state === 'completed' ? job.ranBy : job.lease?.worker,
    dead: job.dead,
    ...(job.state === 'discarded' && { reason: job.reason }),
    ...(job.state === 'completed' && { result: resultOf(job.id, job.result) }),
  });
  compareError(job, record);
  const { calls, since } = body.coalesced ?? {};
  same({ calls, since }, { calls: job.calls, since: job.since }, 'what it stands for');
  const { args } = job.order.texts ?? {};
  if (args && body.args[2] !== write(args)) throw new Error(`${job.id} has other args`);
  if (!args && !job.step) same(body.args, [job.order, ...(job.parts ?? [])].flatMap(argsOf), 'arguments');
}

function compareCron(scene: Scene, cron: ModelCron, everything: boolean): void {
  const { q, now, model } = scene;
  const { name, terms } = cron;
  const entry = q.store.crons.read(name);
  const seen = {
    enabled: entry?.definition.enabled,
    next: entry?.run.next_at,
    runs: entry?.run.runs,
    fires: entry?.run.fires,
    skips: entry?.run.skips,
    last: entry?.run.last_job,
    lastAt: entry?.run.last_run_at,
    waiting: entry?.run.waiting,
    asked: entry?.run.across.map(({ tick }) => tick),
  };
  same(seen, {
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
  same(
    executions.reverse().map(({ job_id, tick, at, state }) => ({ job_id, tick, at, state })),
    cron.history.slice(-KEPT_EXECUTIONS).map(({ job, tick, at }) => {
      const state = model.stateOf(job, now);
      return { job_id: job.id, tick, at, state: state === 'gone' ? 'pruned' : state };
    }),
  );
  same(
    skipped.reverse(),
    cron.skipped.slice(-KEPT_SKIPS).map(({ by, ...skip }) => ({ ...skip, ...(by && { job_id: by.id }) })),
  );
}
