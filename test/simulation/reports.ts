/** Workers: they claim jobs, report on them, and say that they live. */
import fc from 'fast-check';
import type { AttemptOutcome, EndReport } from '../../src/job/attempt/outcome';
import type { JobView } from '../../src/job/record';
import { claim as claimJobs } from '../../src/queue/jobs/claim';
import { heartbeat as sendHeartbeat } from '../../src/queue/jobs/heartbeat';
import { reportProgress } from '../../src/queue/jobs/progress';
import { settleReport } from '../../src/queue/jobs/report';
import { signal as sendSignal } from '../../src/queue/jobs/snooze';
import { saveCheckpoint } from '../../src/queue/jobs/steps';
import type { ClaimRequest } from '../../src/rpc/workers';
import { holds, same } from './agree';
import type { Area } from './area';
import { isBegun, isOpen, type JobKind, type LimitKey, type Model, type ModelJob } from './model';
import { type GroupTerms, groupOf, groupsOf, headsOf, isPaused, runningOf, takesTurns } from './model-groups';
import { startsLeft } from './model-queue';
import * as rules from './model-reports';
import { attempt, pick } from './orders';
import { type Scene, statusOf } from './scene';
import type { StepOf } from './steps';
import { type ErrorTexts, MAX_DATA, MAX_SAID, type Text, within, write } from './texts';
import { typeNamed } from './wire';

export type ReportStep =
  | ({ op: 'claim' } & Claim)
  | {
      op: 'ack';
      pick: number;
      attempt: 'right' | 'stale' | 'none';
      worker: 'right' | 'other';
      result?: Text | undefined;
    }
  | {
      op: 'nack';
      pick: number;
      attempt: 'right' | 'stale' | 'none';
      how: 'plain' | 'requeue' | 'final' | 'retry-in';
      error?: ErrorTexts | undefined;
    }
  /** The handler goes on later, having done the step `mark`; perhaps it waits for the signal. */
  | { op: 'snooze'; pick: number; attempt: 'right' | 'stale' | 'none'; in: number; signal: boolean; mark: number }
  | { op: 'signal'; pick: number }
  /** Whatever runs fails. */
  | { op: 'nack-all'; error: ErrorTexts }
  | { op: 'progress'; pick: number; attempt: 'right' | 'stale' | 'none'; message: Text; data: Text }
  | { op: 'checkpoint'; pick: number; attempt: 'right' | 'stale' | 'none'; state: Text }
  | { op: 'heartbeat'; worker: string };

/** What a worker asks for; a visibility of 0 leaves it to the queue, ms. */
export interface Claim {
  count: number;
  worker: string;
  visibility: number;
  /** Absent: all. */
  kinds?: readonly JobKind[] | undefined;
}

export const requestOf = ({ count, worker, visibility, kinds }: Claim) => ({
  count,
  ...(kinds && { types: kinds.map(typeNamed) }),
  worker_id: worker,
  ...(visibility > 0 && { visibility_timeout_ms: visibility }),
});

/** Transactions in which a claim that may read little finds a job. */
const MOST_CLAIMS = 1_000;

/** What a worker gets: the queue continues, in transactions of their own, while it has not read all. */
export function jobsFor(scene: Scene, request: ClaimRequest): JobView[] {
  for (let claims = 0; claims < MOST_CLAIMS; claims++) {
    const { jobs, isUnfinished } = scene.write((at) => claimJobs(scene.q, request, at));
    if (jobs.length > 0 || !isUnfinished) return scene.weighed(jobs);
  }
  throw new Error(`${MOST_CLAIMS} claims have found no job, and are not finished`);
}

export function claim(scene: Scene, step: Claim): void {
  const views = jobsFor(scene, requestOf(step));
  scene.tidy();
  given(scene, step, views);
}

/** A claim that waits, unless there is something for it at once. @returns what it comes to */
export async function wait(scene: Scene, asked: Claim): Promise<Waiting> {
  const { pull } = scene.world.engine;
  const waiting: Waiting = { asked, waiter: `waiter-${++scene.operations}`, views: undefined };
  const answered = pull.claim({ ...requestOf(asked), waiter: waiting.waiter }, Number.POSITIVE_INFINITY, () => false);
  answered.then(
    (outcome) => {
      waiting.views = outcome.ok ? outcome.value : [];
    },
    () => {
      waiting.views = 'failed';
    },
  );
  await scheduler.wait(0);
  scene.tidy();
  if (waiting.views !== 'failed') given(scene, asked, waiting.views ?? []);
  return waiting;
}

/** What has become of it since, if it still waited; it waits no longer. */
export async function heard(scene: Scene, waiting: Waiting, before: Waiting['views']): Promise<void> {
  await scheduler.wait(0);
  scene.world.engine.pull.withdraw(waiting.waiter);
  await scheduler.wait(0);
  scene.observe();
  if (before === undefined && waiting.views !== 'failed') given(scene, waiting.asked, waiting.views ?? []);
}

/** A claim that waits: its answer, once it has one. */
export interface Waiting {
  asked: Claim;
  waiter: string;
  views: JobView[] | 'failed' | undefined;
}

/** These are the jobs that a claim must get now. */
function given(scene: Scene, step: Claim, views: readonly JobView[]): void {
  const taken = takes(
    scene,
    step,
    views.map(({ record }) => record.id),
  );
  for (const [index, job] of taken.entries()) seen(scene, job, views[index] as JobView);
}

/** The worker is told what has been said of the job. */
function seen({ model }: Scene, job: ModelJob, { record }: JobView): void {
  delivered(model, record);
  same(record.attempt, job.attempt);
  same(record.checkpoint?.state, job.checkpoint && write(job.checkpoint), `checkpoint of ${job.id}`);
}

/** A worker gets a job: by the name of its delivery no other run of the job is meant. */
export function delivered(model: Model, { id, delivery_id: delivery }: JobView['record']): void {
  const known = model.part('deliveries', () => new Set<string>());
  holds(delivery !== undefined && !known.has(delivery), () => `the delivery ${delivery} of ${id} is given twice`);
  known.add(delivery as string);
}

const startableAt = (model: Model, now: number) =>
  model.available(now).filter((job) => job.expiresAt > now && !isPaused(model, job));

/** Jobs that a claim may look for now, all of them before it has taken any. @param kinds absent: all */
export function takable({ model, now }: Scene, kinds: readonly JobKind[] | undefined): ModelJob[] {
  if (startsLeft(model, now) === 0) return [];
  // One that was given back in the same transaction may be too old to start, which nobody has noted yet.
  return startableAt(model, now).filter(({ order }) => !kinds || (order.kind && kinds.includes(order.kind)));
}

/** A claim has taken these jobs: they must be those that it had to take. */
export function takes(scene: Scene, step: Claim, ids: readonly string[]): ModelJob[] {
  const { model } = scene;
  const { now } = scene;
  const available = takable(scene, step.kinds);
  const left = startsLeft(model, now);
  const room = roomOf(model, now);
  // A window in which some may start, and then more, is looked at by the first claim and used up by the next one.
  const least = { ...room, rated: { ...room.rated, starts: Math.min(room.rated.starts, 1) } };
  // Large ones, and those that were not read, may be left for the next answer, but for one.
  const wanted = scene.isLarge || scene.isNarrow ? Math.min(1, step.count) : step.count;
  const mayCome = mayComeTogether(scene, available);
  const from = Math.min(wanted, left, startable(mayCome.atLeast, least));
  const to = Math.min(step.count, left, startable(available, room), mayCome.most);
  holds(from <= ids.length && ids.length <= to, () => `${ids.length} jobs claimed, not ${from} to ${to}`);
  const taken = ids.map((id) => {
    const job = available.find((candidate) => candidate.id === id);
    holds(job !== undefined, () => `${id} was not available`);
    return job as ModelJob;
  });
  if (groupsOf(model).terms) ofGroups(scene, taken);
  // In order, and nothing left behind that should have come before.
  for (let i = 1; i < taken.length; i++) {
    const [before, after] = taken.slice(i - 1, i + 1) as [ModelJob, ModelJob];
    holds(isAcross(model, before, after) || rank(before, after) <= 0, () => `${before.id} came before ${after.id}`);
  }
  const last = taken.at(-1);
  for (const job of taken) {
    const left = job.order.limit && room[job.order.limit];
    if (!left) continue;
    left.runs--;
    if (!isBegun(job)) left.starts--;
  }
  for (const [key, { runs, starts }] of Object.entries(room)) {
    holds(runs >= 0 && starts >= 0, () => `room of ${key}: ${runs}, and ${starts} to start`);
  }
  for (const job of available) {
    if (!last || taken.includes(job)) continue;
    const { limit } = job.order;
    // Where its key has no room left, others go first, but none that stands behind it in the same line. One that has
    // begun is not in that line.
    const left = limit && room[limit];
    const isHeld = left && ((isBegun(job) ? left.runs : Math.min(left.runs, left.starts)) === 0 || limit === 'rated');
    const inLine = (other: ModelJob) => other.order.limit === limit && (isBegun(job) || !isBegun(other));
    const before = isHeld ? taken.filter(inLine) : [last];
    for (const other of before) {
      holds(isAcross(model, other, job) || rank(other, job) <= 0, () => `${job.id} was passed over`);
    }
  }
  if (!step.kinds) takesTurns(model, step.count, { available, taken, faults: scene.world.faults });
  for (const job of taken) model.claim(job, step.worker, step.visibility, now);
  return taken;
}

/** Is nothing promised of the order of these two, as far as their moments say? */
function isAcross(model: Model, a: ModelJob, b: ModelJob): boolean {
  const { terms } = groupsOf(model);
  if (!terms) return false;
  const group = groupOf(a);
  if (group !== groupOf(b)) return true;
  // Who holds a group up goes first.
  if (terms.order === 'strict' && group !== undefined) return true;
  // In a fair order those of a group that ran before, or that limits hold back, may be passed; and where it was read
  // ahead, a job may be taken that waits at another place since.
  const mayBePassed = (job: ModelJob) =>
    job.wasMoved || job.wasRedriven || job.wasHandedOut || job.order.limit !== null;
  return group !== undefined && [a, b].some(mayBePassed);
}

/** Of the jobs that are available, some that a claim can take together, and how many it can take at most. */
function mayComeTogether({ model, now }: Scene, available: readonly ModelJob[]): { atLeast: ModelJob[]; most: number } {
  const { terms } = groupsOf(model);
  const free = available.filter((job) => groupOf(job) === undefined);
  const groups = new Set(available.flatMap((job) => groupOf(job) ?? []));
  if (!terms || (terms.order === 'fair' && terms.concurrency === undefined)) {
    return { atLeast: [...available], most: available.length };
  }
  const atLeast = [...free];
  let most = free.length;
  const heads = terms.order === 'strict' ? headsOf(model, startableAt(model, now)) : undefined;
  for (const group of groups) {
    const ready = available.filter((job) => groupOf(job) === group);
    if (heads) {
      // One of several that are alike may be too old, of another kind, or without room.
      const alike = heads.get(group) ?? [];
      if (alike.length > 0) most++;
      const isSure = alike.every((job) => ready.includes(job) && (alike.length === 1 || job.order.limit === null));
      if (isSure) atLeast.push(...alike.slice(0, 1));
    } else {
      const room = Math.max(0, (terms.concurrency as number) - runningOf(model, group));
      most += Math.min(room, ready.length);
      atLeast.push(...ready.filter(({ order }) => order.limit === null).slice(0, room));
    }
  }
  return { atLeast, most };
}

/** Of each group no more come than may run, and in strict order the first one. */
export function ofGroups({ model, now }: Scene, taken: readonly ModelJob[]): void {
  const { order, concurrency = Number.POSITIVE_INFINITY } = groupsOf(model).terms as GroupTerms;
  const heads = headsOf(model, startableAt(model, now));
  for (const group of new Set(taken.flatMap((job) => groupOf(job) ?? []))) {
    const own = taken.filter((job) => groupOf(job) === group);
    const most = order === 'strict' ? 1 : concurrency;
    const running = runningOf(model, group);
    holds(running + own.length <= most, () => `${own.length} of ${group} start while ${running} run`);
    if (order !== 'strict') continue;
    const alike = heads.get(group) ?? [];
    for (const job of own) holds(alike.includes(job), () => `${job.id} of ${group} starts before ${alike[0]?.id}`);
  }
}

/** May one of these jobs start at this moment? */
export function mayStart({ model }: Scene, jobs: readonly ModelJob[], at: number): boolean {
  const isReady = ({ state, availableAt, expiresAt }: ModelJob) =>
    state === 'waiting' && availableAt <= at && expiresAt > at;
  const ready = jobs.filter((job) => isReady(job) && !isPaused(model, job));
  return ready.length > 0 && startsLeft(model, at) > 0 && startable(ready, roomOf(model, at)) > 0;
}

export function heartbeat(scene: Scene, worker: string): void {
  const { model, q } = scene;
  const { extended } = scene.write((now) => sendHeartbeat(q, { worker_id: worker }, now));
  scene.tidy();
  const held = model.jobs.filter((job) => job.lease?.worker === worker);
  same([...extended].sort(), held.map((job) => job.id).sort());
  for (const job of held) model.extend(job, scene.now);
}

export function ack(scene: Scene, step: StepOf<'ack'>): void {
  const job = pickForReport(scene, step.pick);
  if (!job) return;
  const attempt = named(job, step.attempt);
  const worker = job.lease?.worker;
  const request: EndReport = {
    kind: 'completed',
    job_id: job.id,
    ...(attempt !== undefined && { attempt }),
    ...(worker !== undefined && { worker_id: step.worker === 'right' ? worker : 'mallory' }),
    result: resultOf(job.id, step.result),
  };
  const outcome = scene.attempt((now) => settleReport(scene.q, request, now, () => 0.5));
  scene.tidy();
  const by = { attempt, worker: worker && (step.worker === 'right' ? worker : 'mallory') };
  const { state } = job;
  const status = rules.acked(scene.model, job, by, scene.now, step.result);
  same(statusOf(outcome), status, `ack of ${job.id} in ${state}`);
}

export function nack(scene: Scene, step: StepOf<'nack'>): void {
  const job = pickForReport(scene, step.pick);
  if (!job) return;
  const attempt = named(job, step.attempt);
  const error = {
    ...failureOf(step.error),
    ...(step.how === 'final' && { retryable: false }),
    ...(step.how === 'retry-in' && { retry_in: 777 }),
  };
  const outcome: AttemptOutcome =
    step.how === 'requeue' ? { kind: 'released', release: { attempt: 'used', error } } : { kind: 'failed', error };
  const request = { job_id: job.id, ...(attempt !== undefined && { attempt }), ...outcome };
  const settled = scene.attempt((now) => settleReport(scene.q, request, now, () => 0.5));
  scene.tidy();
  const { state } = job;
  const status = rules.nacked(scene.model, job, { attempt }, scene.now, step);
  same(statusOf(settled), status, `nack of ${job.id} in ${state}`);
}

/** The handler goes on later. */
export function snooze(scene: Scene, step: StepOf<'snooze'>): void {
  const job = pickForReport(scene, step.pick);
  if (!job) return;
  const attempt = named(job, step.attempt);
  const steps = JSON.stringify({ [`s${step.mark}`]: { result: step.mark } });
  const request: EndReport = {
    kind: 'snoozed',
    job_id: job.id,
    ...(attempt !== undefined && { attempt }),
    snooze: { in: step.in, ...(step.signal && { signal: 'go' }) },
    steps,
  };
  const outcome = scene.attempt((now) => settleReport(scene.q, request, now, () => 0.5));
  scene.tidy();
  const { state } = job;
  const status = rules.snoozed(scene.model, job, { attempt }, scene.now, step);
  same(statusOf(outcome), status, `snooze of ${job.id} in ${state}`);
}

export function signal(scene: Scene, step: StepOf<'signal'>): void {
  scene.onJob(
    step.pick,
    (id, now) => sendSignal(scene.q, { job_id: id, name: 'go', payload: '1' }, now),
    (job) => {
      if (!isOpen(job)) return 409;
      scene.model.signal(job, scene.now);
      return 200;
    },
  );
}

/** Every attempt that runs fails. */
export function nackAll(scene: Scene, { error }: StepOf<'nack-all'>): void {
  for (const { id, attempt } of scene.model.jobs.filter(({ state }) => state === 'active')) {
    const outcome = scene.attempt((now) =>
      settleReport(scene.q, { kind: 'failed', job_id: id, attempt, error: failureOf(error) }, now, () => 0.5),
    );
    scene.tidy();
    const job = scene.model.jobs.find((candidate) => candidate.id === id) as ModelJob;
    if (job.state !== 'active') continue;
    same(statusOf(outcome), 200, `nack of ${id}`);
    job.error = error;
    scene.model.fail(job, scene.now, { delay: job.order.backoff });
  }
}

/** The attempt of a job succeeds. */
export function complete(scene: Scene, job: ModelJob): void {
  const result = resultOf(job.id, undefined);
  const outcome = scene.attempt((now) =>
    settleReport(scene.q, { kind: 'completed', job_id: job.id, attempt: job.attempt, result }, now, () => 0.5),
  );
  scene.tidy();
  same(statusOf(outcome), 200, `ack of ${job.id}`);
  delete job.result;
  scene.model.complete(job, scene.now);
}

export function progress(scene: Scene, step: StepOf<'progress'>): void {
  const job = pickForReport(scene, step.pick);
  if (!job) return;
  const attempt = named(job, step.attempt);
  const request = {
    ...{
      job_id: job.id,
      progress: 0.5,
      message: write(step.message),
      data: { text: write(within(step.data, MAX_DATA)) },
    },
    ...(attempt !== undefined && { attempt }),
  };
  const outcome = scene.attempt((now) => reportProgress(scene.q, request, now));
  scene.tidy();
  const status = rules.progressed(scene.model, job, { attempt }, scene.now);
  same(statusOf(outcome), status, `progress of ${job.id} in ${job.state}`);
}

export function checkpoint(scene: Scene, step: StepOf<'checkpoint'>): void {
  const job = pickForReport(scene, step.pick);
  if (!job) return;
  const attempt = named(job, step.attempt);
  const state = within(step.state, MAX_SAID);
  const content = JSON.stringify({ state: write(state) });
  const request = { job_id: job.id, content, ...(attempt !== undefined && { attempt }) };
  const outcome = scene.attempt((now) => saveCheckpoint(scene.q, request, now));
  scene.tidy();
  const status = rules.mayNote(job, { attempt });
  same(statusOf(outcome), status, `checkpoint of ${job.id} in ${job.state}`);
  if (status === 200) job.checkpoint = state;
}

/** The result of a job, as JSON text. */
export function resultOf(of: string, text: Text | undefined): string {
  return JSON.stringify(text ? write(within(text, MAX_SAID)) : { of });
}

/** What a handler says of its failure. */
export function failureOf({ code, type, message, details, class: name }: ErrorTexts = {}) {
  return {
    code: code ? write(code) : 'handler_error',
    message: message ? write(message) : 'simulated',
    ...(type && { type: write(type) }),
    ...(details && { details: { text: write(details) } }),
    ...(name && { classes: [write(name), 'Error'] }),
  };
}

/** A job for a report: most often one that runs. @param pick below 0: counts from the newest */
export function pickForReport(scene: Scene, pick: number): ModelJob | undefined {
  const active = scene.model.jobs.filter((job) => job.state === 'active');
  if (pick < 0) return active.at(pick) ?? scene.pick(pick);
  return pick % 5 === 0 || active.length === 0 ? scene.pick(pick) : active[pick % active.length];
}

export function named(job: ModelJob, how: 'right' | 'stale' | 'none'): number | undefined {
  if (how === 'none') return undefined;
  return how === 'right' ? Math.max(1, job.attempt) : job.attempt + 1;
}

/** Negative when `a` must be taken before `b`. */
function rank(a: ModelJob, b: ModelJob): number {
  return b.order.priority - a.order.priority || a.availableAt - b.availableAt;
}

type Room = Record<LimitKey, ReturnType<Model['room']>>;

/** What each key has room for. */
function roomOf(model: Model, now: number): Room {
  return {
    narrow: model.room('narrow', now),
    rated: model.room('rated', now),
    spaced: model.room('spaced', now),
  };
}

/** How many of these jobs may start together. */
function startable(jobs: readonly ModelJob[], room: Room): number {
  const limited = (Object.keys(room) as LimitKey[]).map((key) => {
    const ofKey = jobs.filter(({ order }) => order.limit === key);
    const begun = ofKey.filter(isBegun).length;
    return Math.min(room[key].runs, begun + Math.min(room[key].starts, ofKey.length - begun));
  });
  return limited.reduce((sum, count) => sum + count, jobs.filter(({ order }) => order.limit === null).length);
}

const worker = fc.constantFrom('ann', 'bob');

export const claimed = {
  count: fc.integer({ min: 1, max: 5 }),
  worker,
  visibility: fc.constantFrom(0, 0, 500, 2_000),
};

export const area: Area<ReportStep> = {
  kinds: {
    claim,
    ack,
    nack,
    snooze,
    signal,
    'nack-all': nackAll,
    progress,
    checkpoint,
    heartbeat: (scene, step) => heartbeat(scene, step.worker),
  },
  steps: [
    {
      weight: 8,
      arbitrary: fc.record({ op: fc.constant('claim' as const), ...claimed }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        op: fc.constant('ack' as const),
        pick,
        attempt,
        worker: fc.constantFrom('right' as const, 'right' as const, 'other' as const),
      }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        op: fc.constant('nack' as const),
        pick,
        attempt,
        how: fc.constantFrom(
          'plain' as const,
          'plain' as const,
          'requeue' as const,
          'final' as const,
          'retry-in' as const,
        ),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        op: fc.constant('snooze' as const),
        ...{ pick, attempt, signal: fc.boolean() },
        in: fc.constantFrom(0, 300, 2_000, 60_000),
        mark: fc.constantFrom(0, 0, 1),
      }),
    },
    { weight: 2, arbitrary: fc.record({ op: fc.constant('signal' as const), pick }) },
    { weight: 2, arbitrary: fc.record({ op: fc.constant('heartbeat' as const), worker }) },
  ],
};
