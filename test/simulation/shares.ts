/**
 * Batches over several queues, of which this one has a share, or the decision: new jobs that are held until then, and jobs that
 * are locked for an action. Whoever drives a batch may stop anywhere; then the queues ask each other.
 */
import fc from 'fast-check';
import { mintId } from '../../src/job/ids';
import { abortBatch, commitBatch, decideBatch, decisionOf, prepareBulk } from '../../src/queue/features/shares/batch';
import { prepareBatch } from '../../src/queue/features/shares/enqueue';
import { cancelOpen } from '../../src/queue/jobs/cancel';
import { DECISION, SHARE } from '../../src/queue/store/batches';
import type { QueueApi } from '../../src/rpc/queue';
import { holds, same } from './agree';
import type { Area, Kind } from './area';
import { historiesOf } from './histories';
import { isOpen, type JobOrder, type ModelJob } from './model';
import {
  type Act,
  abort,
  type Batch,
  batchesOf,
  CHECK_AFTER_MS,
  commit,
  hold,
  lock,
  MAX_AGE_MS,
  mayLock,
} from './model-shares';
import { order, pick } from './orders';
import { busy, lost, Outside, type Question } from './outside';
import { type Scene, statusOf } from './scene';
import type { Step } from './steps';
import { newJob, QUEUE } from './wire';
import type { World } from './world';

export type ShareStep =
  | { op: 'prepare'; isOurs: boolean; jobs: JobOrder[] }
  | { op: 'lock'; isOurs: boolean; act: Act; picks: number[] }
  /** The driver goes on, or comes again. */
  | { op: 'decide'; pick: number; isAlone: boolean; replaces: boolean }
  | { op: 'commit'; pick: number }
  | { op: 'abort'; pick: number }
  /** The queue cancels a job by itself, whatever is being decided about it. */
  | { op: 'cancel-locked'; pick: number }
  /** The other queue answers. */
  | { op: 'other-answers'; pick: number; how: 'commit' | 'abort' | 'lost' | 'busy' };

const OTHER = 'other';
/** The longest pause of a message that does not arrive, ms, and some more. */
const LONGEST_PAUSE_MS = 61_000;

const outsides = new WeakMap<World, Outside>();
const outsideOf = ({ world }: Scene): Outside | undefined => outsides.get(world);

function newBatch(scene: Scene, isOurs: boolean, wanted: string[] = []): Batch {
  const id = mintId(scene.now, 7, ++scene.operations);
  return { id, isOurs, at: scene.now, state: 'prepared', there: 'open', ids: [], wanted };
}

const coordinatorOf = ({ isOurs }: Batch): string => (isOurs ? QUEUE : OTHER);

const prepare: Kind<StepOfShare<'prepare'>> = {
  prepare: async (scene, { isOurs, jobs }) => {
    const newJobs = await Promise.all(jobs.map((job) => newJob(job, scene.now)));
    const play = (): void => {
      const batch = newBatch(scene, isOurs);
      const outcome = scene.attempt((now) => prepareBatch(scene.q, batch.id, coordinatorOf(batch), newJobs, now));
      scene.tidy();
      if ('error' in outcome) throw new Error(`refused: ${outcome.error.message}`);
      batch.ids = outcome.value.jobs.map(({ record }) => record.id);
      hold(scene.model, batch, jobs, scene.now);
      batchesOf(scene.model).push(batch);
    };
    return { play };
  },
};

/** Locks some jobs, or none when one of them is not as it should be. */
function lockJobs(scene: Scene, { isOurs, act, picks }: StepOfShare<'lock'>): void {
  const { model, q } = scene;
  const jobs = [...new Set(picks.map((one) => scene.pick(one)))].filter((job): job is ModelJob => job !== undefined);
  if (jobs.length === 0) return;
  const ids = jobs.map(({ id }) => id);
  const batch = { ...newBatch(scene, isOurs, ids), act };
  const outcome = scene.attempt((now) => prepareBulk(q, batch.id, coordinatorOf(batch), { action: act, ids }, now));
  scene.tidy();
  const may = jobs.map((job) => mayLock(model, job, act, scene.now));
  same(statusOf(outcome), may.includes('locked') ? 503 : 200, 'lock');
  if ('error' in outcome) return;
  const { applied, items } = outcome.value;
  same(
    items.map(({ status }) => status === 'done'),
    may,
    'jobs that may be locked',
  );
  same(applied, !may.includes(false));
  if (!applied) return;
  lock(batch, jobs);
  batchesOf(model).push(batch);
}

function pickBatch({ model }: Scene, at: number): Batch | undefined {
  const all = batchesOf(model);
  const open = all.filter(({ state }) => state === 'prepared');
  const from = at % 4 === 0 || open.length === 0 ? all : open;
  return from[at % Math.max(1, from.length)];
}

function decide(scene: Scene, { pick: at, isAlone, replaces }: StepOfShare<'decide'>): void {
  const batch = pickBatch(scene, at);
  if (!batch?.isOurs) return;
  const { q, model, now } = scene;
  const isTold = q.store.outbox.find(DECISION, batch.id) !== undefined;
  const replaced = replaces ? [{ id: batch.id, queue: OTHER }] : [];
  const outcome = scene.attempt((at) => decideBatch(q, batch.id, isAlone ? [] : [OTHER], at, undefined, replaced));
  scene.tidy();
  const isLate = batch.state !== 'prepared' || now - batch.at > MAX_AGE_MS;
  same(statusOf(outcome), isTold || !isLate ? 200 : 503, `decision about ${batch.id}, which is ${batch.state}`);
  if (statusOf(outcome) !== 200) return;
  if (replaces && !isTold) batch.replaced = 'open';
  if (!batch.replaced) commit(model, batch, now);
}

function commitShare(scene: Scene, { pick: at }: StepOfShare<'commit'>): void {
  const batch = pickBatch(scene, at);
  if (!batch || batch.isOurs || batch.there === 'aborted') return;
  const outcome = scene.attempt((now) => commitBatch(scene.q, batch.id, now));
  scene.tidy();
  same(statusOf(outcome), 200);
  batch.there = 'committed';
  commit(scene.model, batch, scene.now);
}

function abortShare(scene: Scene, { pick: at }: StepOfShare<'abort'>): void {
  const batch = pickBatch(scene, at);
  if (!batch || batch.there === 'committed') return;
  const { q } = scene;
  if (batch.isOurs) {
    giveUp(scene, batch);
    return;
  }
  const outcome = scene.attempt((now) => abortBatch(q, batch.id, now));
  scene.tidy();
  same(statusOf(outcome), 200);
  batch.there = 'aborted';
  abort(scene.model, batch);
}

/** This queue is asked for its decision: asking decides. Undefined: a job that is replaced has not ended yet. */
function giveUp(scene: Scene, batch: Batch): 'committed' | 'aborted' | undefined {
  const outcome = scene.attempt((now) => decisionOf(scene.q, batch.id, now));
  scene.tidy();
  if ('error' in outcome) {
    // It may have ended, and the batch may be committed, without the queue having heard of it.
    const isUntold = scene.q.store.outbox.find(DECISION, batch.id) !== undefined;
    holds(batch.replaced !== undefined && (batch.state === 'prepared' || isUntold), () => outcome.error.message);
    return undefined;
  }
  if (batch.state === 'prepared') same(outcome.value, batch.replaced ? 'committed' : 'aborted');
  abort(scene.model, batch);
  return outcome.value;
}

function cancelLocked(scene: Scene, { pick: at }: StepOfShare<'cancel-locked'>): void {
  const { model, q } = scene;
  const locked = model.jobs.filter(({ undecided, state }) => undecided !== undefined && state !== 'gone');
  const job = locked.length > 0 ? locked[at % locked.length] : scene.pick(at);
  if (!job) return;
  scene.attempt((now) => cancelOpen(q, [job.id], now));
  scene.tidy();
  if (!isOpen(job)) return;
  delete job.undecided;
  model.cancel(job, scene.now);
}

/** What the other queue says, to a question or to a decision that it is told. */
async function otherAnswers(scene: Scene, { pick: at, how }: StepOfShare<'other-answers'>): Promise<void> {
  const question = outsideOf(scene)?.pick(at);
  if (question) await answerQuestion(scene, question, how);
}

async function answerQuestion(scene: Scene, question: Question, how: StepOfShare<'other-answers'>['how']) {
  const batch = batchesOf(scene.model).find(({ id }) => id === question.about[0]);
  if (!batch) throw new Error(`a question about ${question.about[0]}, which nobody knows`);
  if (how === 'busy') question.fail(busy());
  else if (question.what === 'end') {
    batch.replaced = 'ended';
    if (how === 'lost') question.fail(lost());
    else question.answer({ ok: true, value: [] });
  } else if (question.what === 'own commit') {
    same(statusOf(scene.attempt((now) => commitBatch(scene.q, batch.id, now))), 200);
    scene.tidy();
    commit(scene.model, batch, scene.now);
    if (how === 'lost') question.fail(lost());
    else question.answer({ ok: true, value: undefined });
  } else if (question.what === 'commit') {
    holds(batch.state === 'committed' || batch.replaced === 'ended', () => `${batch.id} is committed too early`);
    holds(batch.there !== 'aborted', () => `${batch.id} is committed here and aborted there`);
    batch.there = 'committed';
    if (how === 'lost') question.fail(lost());
    else question.answer({ ok: true, value: undefined });
  } else if (question.what === 'own decision') {
    const value = giveUp(scene, batch);
    if (how === 'lost') question.fail(lost());
    else if (value === undefined) question.fail(busy());
    else {
      question.answer({ ok: true, value });
      await scene.world.settled();
      scene.tidy();
      if (value === 'committed') commit(scene.model, batch, scene.now);
    }
  } else {
    if (batch.there === 'open') batch.there = how === 'commit' ? 'committed' : 'aborted';
    if (how === 'lost') question.fail(lost());
    else question.answer({ ok: true, value: batch.there });
    if (how !== 'lost') {
      await scene.world.settled();
      scene.tidy();
      if (batch.there === 'committed') commit(scene.model, batch, scene.now);
      else abort(scene.model, batch);
    }
  }
  await scene.world.settled();
  scene.finish();
}

type StepOfShare<Op extends ShareStep['op']> = Extract<ShareStep, { op: Op }>;

/** All that is undecided comes to its end, by itself. */
async function drain(scene: Scene, outside: Outside): Promise<void> {
  const { world, model, q } = scene;
  const isLeft = () => q.store.outbox.has(SHARE) || q.store.outbox.has(DECISION);
  for (let round = 0; isLeft() || outside.questions.length > 0; round++) {
    if (round === 200) throw new Error('some batches are never decided');
    const question = outside.pick(0);
    if (question) {
      await answerQuestion(scene, question, 'abort');
      continue;
    }
    scene.nextAlarm('asks about the batches that are left');
    model.prune(scene.now);
    await world.settled();
    scene.tidy();
    scene.finish();
  }
  for (const { id, state } of batchesOf(model)) holds(state !== 'prepared', () => `${id} is not decided`);
}

/** One that is limited takes its place when it is activated: with an older one it would wait behind those that stand ready. */
const orders: fc.Arbitrary<JobOrder[]> = fc.array(
  order.map((job) => ({ ...job, unique: null, limit: job.pending ? job.limit : null })),
  { minLength: 1, maxLength: 3 },
);
const isOurs = fc.boolean();

const shareStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ op: fc.constant('prepare' as const), isOurs, jobs: orders }) },
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('lock' as const),
      isOurs,
      act: fc.constantFrom<Act>('cancel', 'cancel', 'retry', 'delete', 'purge'),
      picks: fc.array(pick, { minLength: 1, maxLength: 3 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ op: fc.constant('decide' as const), pick, isAlone: fc.boolean(), replaces: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('commit' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('abort' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('cancel-locked' as const), pick }) },
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('other-answers' as const),
      pick,
      how: fc.constantFrom('commit', 'commit', 'abort', 'lost', 'busy'),
    }),
  },
);

export const area: Area<ShareStep> = {
  kinds: {
    prepare,
    lock: lockJobs,
    decide,
    commit: commitShare,
    abort: abortShare,
    'cancel-locked': cancelLocked,
    'other-answers': { prepare: (scene, step) => ({ play: () => otherAnswers(scene, step) }), isLonger: true },
  },
  excuses: [/^tocsin: (share|decision) .* could not be delivered yet/],
  histories: (length) => [historiesOf(shareStep, { length, others: 2, weight: 40 }, { shares: fc.constant(true) })],
  hooks(world, { shares }) {
    if (!shares) return {};
    const outside = new Outside(world.withheld);
    outsides.set(world, outside);
    const queue = (name: string) =>
      ({
        commitBatch: (batch) => outside.ask(name === QUEUE ? 'own commit' : 'commit', batch),
        cancelSteps: ([batch]) => outside.ask('end', batch),
        batchDecision: (batch) => outside.ask(name === QUEUE ? 'own decision' : 'decision', batch),
      }) as QueueApi;
    return { others: { queue } };
  },
  async settle(scene) {
    if (!outsideOf(scene)) return;
    await scene.world.settled();
    scene.world.engine.tidied();
    scene.tidy();
    scene.finish();
  },
  compare(scene, depth) {
    const outside = outsideOf(scene);
    if (outside && depth !== 'wake') {
      const { model, q } = scene;
      const held = model.jobs.filter(({ undecided, state }) => undecided !== undefined && state === 'gone');
      same(q.store.depth.jobs(), model.jobs.filter(isOpen).length + held.length, 'jobs that count');
    }
    if (!outside || scene.lost || outside.questions.length > 0) return;
    const { world, model, now } = scene;
    const open = batchesOf(model).filter(({ state }) => state === 'prepared');
    for (const { id, at } of open) {
      const due = Math.max(at + CHECK_AFTER_MS, now + LONGEST_PAUSE_MS);
      holds(world.alarm !== null && world.alarm <= due, () => `nobody asks about ${id}, armed: ${world.alarm}`);
    }
  },
  async clear(scene) {
    const outside = outsideOf(scene);
    if (outside) await drain(scene, outside);
  },
};
