/**
 * Jobs that go to another queue and come from there: dead letters that live again elsewhere, the jobs of a queue that is deleted,
 * and what such queues hand over here, now and then twice. A job is in one of the queues at any time, or on its way between them.
 * A queue that was deleted leaves nothing, and comes into being anew.
 */
import fc from 'fast-check';
import type { Reservations } from '../../src/across/reservation';
import type { ErrorData } from '../../src/job/errors';
import { mintId } from '../../src/job/ids';
import { beginRemoval } from '../../src/queue/features/lifecycle/remove';
import { adopt, adoptMoved, beginMove } from '../../src/queue/features/transfer/moves';
import { MOVE } from '../../src/queue/store/moves';
import type { MovedJob } from '../../src/rpc/operations';
import type { QueueApi } from '../../src/rpc/queue';
import { holds, same } from './agree';
import type { Area, Kind } from './area';
import { historiesOf } from './histories';
import { isOpen, type JobOrder, Model, type ModelJob } from './model';
import { order, pick } from './orders';
import { busy, lost, Outside, type Question } from './outside';
import * as reports from './reports';
import { type Scene, statusOf } from './scene';
import type { Step } from './steps';
import { newJob } from './wire';
import type { World } from './world';

export type MoveStep =
  /** A dead letter is to live again in another queue. */
  | { op: 'move-dead'; pick: number }
  /** That queue answers. */
  | { op: 'target-answers'; pick: number; how: Answer }
  /** Another queue hands jobs over: those of a queue that is deleted, or a dead letter. */
  | { op: 'hand-over'; jobs: Arrival[]; isDead: boolean }
  /** It does so again: it has not heard the answer. */
  | { op: 'hand-over-again'; pick: number }
  | { op: 'delete-queue'; strategy: 'discard' | 'move' | 'reject'; answers: (Answer | 'evict')[] };

type Answer = 'take' | 'lost' | 'refuse' | 'busy';

/** A job that comes from another queue, in ms from now. */
interface Arrival {
  order: JobOrder;
  attempt: 0 | 1;
  due: number;
}

const OTHER = 'other';
/** The longest pause of a message that does not arrive, ms, and some more. */
const LONGEST_PAUSE_MS = 61_000;
/** What was handed over is remembered so long, ms. */
const REMEMBERED_MS = 90 * 86_400_000;

/** What the other queue knows, which is as good as its word. */
class Target {
  /** Its answers to decisions, and to steps of a deletion. */
  private readonly answers = new Map<string, unknown>();
  /** Jobs that it has taken. */
  readonly taken = new Set<string>();

  /** It takes the jobs, or refuses them, once for each name. */
  answer(name: string, jobs: readonly MovedJob[], how: Answer): unknown {
    const earlier = this.answers.get(name);
    if (earlier) return earlier;
    const isRefused = how === 'refuse';
    for (const { id } of isRefused ? [] : jobs) {
      holds(!this.taken.has(id), () => `${id} was handed over twice`);
      this.taken.add(id);
    }
    const refused: ErrorData = { code: 'conflict', status: 409, message: 'no', retryable: false };
    const answer = isRefused ? { refused } : { job: null };
    this.answers.set(name, answer);
    return answer;
  }
}

interface Moves {
  outside: Outside;
  target: Target;
  /** The queue was deleted, and is there anew. */
  isDeleted: boolean;
  /** What was handed over here. */
  handed: { name: string; at: number; jobs: MovedJob[]; isDead: boolean }[];
}

const all = new WeakMap<World, Moves>();
const movesOf = ({ world }: Scene): Moves | undefined => all.get(world);

function moveDead(scene: Scene, { pick: at }: StepOfMove<'move-dead'>): void {
  const { model, q } = scene;
  const dead = model.jobs.filter((job) => job.dead && job.state === 'discarded');
  const job = dead.length > 0 && at % 5 !== 0 ? dead[at % dead.length] : scene.pick(at);
  if (!job) return;
  const name = `move ${++scene.operations}`;
  const outcome = scene.attempt((now) => beginMove(q, job.id, { target: OTHER, override: {} }, name, now));
  scene.tidy();
  const isDead = job.dead && job.state === 'discarded';
  same(statusOf(outcome), isDead ? 200 : 404, `move of ${job.id} in ${job.state}`);
  if (isDead) job.isMoving = true;
}

async function targetAnswers(scene: Scene, { pick: at, how }: StepOfMove<'target-answers'>): Promise<void> {
  const question = movesOf(scene)?.outside.pick(at);
  if (question) await answerQuestion(scene, question, how);
}

async function answerQuestion(scene: Scene, question: Question, how: Answer): Promise<void> {
  const { target } = movesOf(scene) as Moves;
  const [name, job] = question.about as [string, MovedJob];
  if (how === 'busy') question.fail(busy());
  else {
    const value = target.answer(name, [job], how);
    if (how === 'lost') question.fail(lost());
    else {
      question.answer({ ok: true, value });
      await scene.world.settled();
      scene.tidy();
      const moved = scene.model.jobs.find(({ id }) => id === job.id) as ModelJob;
      delete moved.isMoving;
      if (target.taken.has(job.id)) moved.state = 'gone';
    }
  }
  await scene.world.settled();
  scene.finish();
}

const handOver: Kind<StepOfMove<'hand-over'>> = {
  prepare: async (scene, { jobs, isDead }) => {
    const { now } = scene;
    const arrivals = isDead ? jobs.slice(0, 1) : jobs;
    const read = await Promise.all(arrivals.map((arrival) => newJob(arrival.order, now)));
    const play = (): void => {
      const moves = movesOf(scene);
      if (!moves) return;
      const moved = arrivals.map((arrival, at) => movedJob(scene, arrival, read[at] as { body: string }, isDead));
      const handed = { name: `from other ${++scene.operations}`, at: now, jobs: moved, isDead };
      take(scene, handed);
      for (const [at, job] of moved.entries()) scene.model.jobs.push(arrived(job, arrivals[at] as Arrival));
      moves.handed.push(handed);
    };
    return { play };
  },
};

function take(scene: Scene, { name, jobs, isDead }: Moves['handed'][number]): void {
  const [first] = jobs as [MovedJob];
  const outcome = scene.attempt((now): unknown =>
    isDead ? adoptMoved(scene.q, name, first, undefined, now) : adopt(scene.q, name, jobs, undefined, now),
  );
  scene.tidy();
  same(statusOf(outcome), 200, 'jobs of another queue');
}

function movedJob(
  scene: Scene,
  { order, attempt, due }: Arrival,
  { body }: { body: string },
  isDead: boolean,
): MovedJob {
  const { now } = scene;
  // What waits for its activation has never run.
  const tried = isDead || order.pending ? 0 : attempt;
  // What waits for its activation has no moment of its own.
  const at = isDead ? now : now + (order.pending ? Math.min(due, 0) : due);
  return {
    id: mintId(now - 1, 9, ++scene.operations),
    pending: !isDead && order.pending,
    ...{ type: 'simulated.job', priority: order.priority, attempt: tried, claims: tried },
    ...{ created_at: now - 1, enqueued_at: now - 1, due_at: at, body, history: null },
    expires_at: isDead || order.ttl === 0 ? null : now + order.ttl,
  };
}

/** The job as it stands here now. */
function arrived(job: MovedJob, { order }: Arrival): ModelJob {
  const { id, pending, attempt, due_at: availableAt, created_at: createdAt, expires_at } = job;
  return {
    ...{ id, order, createdAt, availableAt, attempt, failures: 0, dead: false, endedAt: 0, scheduledAt: undefined },
    state: pending ? 'pending' : 'waiting',
    expiresAt: expires_at ?? Number.POSITIVE_INFINITY,
    // An attempt that left no error was given back.
    ...(attempt > 0 && { requeuedBy: attempt }),
  };
}

function again(scene: Scene, { pick: at }: StepOfMove<'hand-over-again'>): void {
  const handed = movesOf(scene)?.handed ?? [];
  const one = handed[at % Math.max(1, handed.length)];
  if (one && scene.now < one.at + REMEMBERED_MS) take(scene, one);
}

type StepOfMove<Op extends MoveStep['op']> = Extract<MoveStep, { op: Op }>;

/** The queue is deleted: what it still has goes to the other queue, once, or nowhere. Then it comes into being anew. */
async function deleteQueue(scene: Scene, { strategy, answers }: StepOfMove<'delete-queue'>): Promise<void> {
  const moves = movesOf(scene);
  if (!moves || scene.model.crons.entries.size > 0) return;
  const { model, world } = scene;
  const target = strategy === 'move' ? { target_queue: OTHER } : {};
  const outcome = scene.attempt((now) => beginRemoval(scene.q, { strategy, ...target }, now));
  scene.tidy();
  const open = model.jobs.filter(isOpen);
  same(statusOf(outcome), strategy === 'reject' && open.length > 0 ? 409 : 200, 'deletion');
  if ('error' in outcome) return;
  same(outcome.value.jobs_affected, open.length, 'jobs of a queue that is deleted');
  // From here on nothing fails: what the model knows is not taken back any more.
  world.heal();
  const left = [...answers];
  moves.isDeleted = false;
  for (let round = 0; !isDeleted(moves); round++) {
    if (round === 200) throw new Error('the queue is never deleted');
    await world.settled();
    if (isDeleted(moves)) break;
    const question = moves.outside.pick(0);
    const how = question || left[0] === 'evict' ? (left.shift() ?? 'take') : undefined;
    if (how === 'evict') scene.evict();
    else if (question) answerRemoval(moves, question, how ?? 'take');
    else goOn(scene, strategy === 'move');
  }
  for (const job of open) {
    const isThere = moves.target.taken.has(job.id);
    holds(!isThere || strategy === 'move', () => `${job.id} is in another queue`);
    holds(!isThere || job.state !== 'completed', () => `${job.id} has completed, and is in another queue`);
    holds(isThere || strategy !== 'move' || !isOpen(job), () => `${job.id} is lost`);
  }
  beAnew(scene, moves);
}

const isDeleted = (moves: Moves): boolean => moves.isDeleted;

/** The other queue answers a step of the deletion, or a move that was decided before. It refuses no step. */
function answerRemoval({ target }: Moves, question: Question, how: Answer): void {
  const [name, jobs] = question.about as [string, MovedJob | MovedJob[]];
  if (how === 'busy') {
    question.fail(busy());
    return;
  }
  const value = target.answer(name, [jobs].flat(), Array.isArray(jobs) ? 'take' : how);
  if (how === 'lost') question.fail(lost());
  else question.answer({ ok: true, value });
}

/** What runs completes; if nothing does, time passes. @param completes false: what runs is discarded, or left alone */
function goOn(scene: Scene, completes: boolean): void {
  const { model } = scene;
  const running = completes ? model.jobs.filter(({ state }) => state === 'active') : [];
  for (const job of running) reports.complete(scene, job);
  if (running.length > 0) return;
  scene.nextAlarm('goes on with the deletion');
}

/** A new queue, of which nothing is known. */
function beAnew(scene: Scene, moves: Moves): void {
  Object.assign(scene.model, new Model());
  scene.lost = false;
  moves.handed = [];
  scene.world.now += 1_000;
}

/** All that is on its way arrives. */
async function drain(scene: Scene, moves: Moves): Promise<void> {
  const { world } = scene;
  const isLeft = () => scene.q.store.outbox.has(MOVE) || moves.outside.questions.length > 0;
  for (let round = 0; isLeft(); round++) {
    if (round === 200) throw new Error('some dead letters never arrive');
    const question = moves.outside.pick(0);
    if (question) {
      await answerQuestion(scene, question, 'take');
      continue;
    }
    goOn(scene, false);
    scene.model.prune(scene.now);
    await world.settled();
    scene.finish();
  }
}

/** Lock objects that let everybody pass. */
export const reservations = () =>
  ({
    ...{ ticket: undefined, reserve: async () => [], foundVacant: () => undefined, release: async () => undefined },
    use: (send: () => Promise<unknown>) => send(),
  }) as unknown as Reservations;

const answer = fc.constantFrom<Answer>('take', 'take', 'lost', 'refuse', 'busy');

/** One that is limited has no older place than those that stand ready for its key: it would wait behind these. */
const arrival: fc.Arbitrary<Arrival> = fc
  .record({
    order: order.map((job) => ({ ...job, unique: null, delay: 0 })),
    attempt: fc.constantFrom<0 | 1>(0, 1),
    due: fc.constantFrom(-5_000, 0, 400, 20_000),
  })
  .map(({ order: job, due, ...rest }) => ({ ...rest, due, order: due < 0 ? { ...job, limit: null } : job }));

const moveStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ op: fc.constant('move-dead' as const), pick }) },
  { weight: 8, arbitrary: fc.record({ op: fc.constant('target-answers' as const), pick, how: answer }) },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('hand-over' as const),
      jobs: fc.array(arrival, { minLength: 1, maxLength: 3 }),
      isDead: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('hand-over-again' as const), pick }) },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('delete-queue' as const),
      strategy: fc.constantFrom('discard', 'move', 'move', 'reject'),
      answers: fc.array(fc.oneof(answer, fc.constant('evict' as const)), { maxLength: 8 }),
    }),
  },
);

export const area: Area<MoveStep> = {
  kinds: {
    'move-dead': moveDead,
    'target-answers': { prepare: (scene, step) => ({ play: () => targetAnswers(scene, step) }), isLonger: true },
    'hand-over': handOver,
    'hand-over-again': again,
    'delete-queue': { prepare: (scene, step) => ({ play: () => deleteQueue(scene, step) }), isLonger: true },
  },
  excuses: [/^tocsin: (move|deletion of queue) .* could not be delivered yet/],
  histories: (length) => [historiesOf(moveStep, { length, others: 2, weight: 40 }, { moves: fc.constant(true) })],
  hooks(world, { moves: has }) {
    if (!has) return {};
    const outside = new Outside(world.withheld);
    const moves = all.get(world) ?? { outside, target: new Target(), isDeleted: false, handed: [] };
    all.set(world, moves);
    moves.outside = outside;
    const queue = () =>
      ({
        adopt: (name, jobs) => outside.ask('adopt', name, jobs),
        adoptMoved: (name, job) => outside.ask('adopt', name, job),
      }) as QueueApi;
    const destroy = async () => {
      world.recreate();
      moves.isDeleted = true;
    };
    return { others: { queue, destroy, reservations, noteIds: async () => undefined } };
  },
  async settle(scene) {
    if (!movesOf(scene)) return;
    await scene.world.settled();
    scene.world.engine.tidied();
    scene.tidy();
    scene.finish();
  },
  compare(scene) {
    const moves = movesOf(scene);
    const { world, model, now, lost: isLost } = scene;
    if (!moves || isLost || moves.outside.questions.length > 0 || !model.jobs.some(({ isMoving }) => isMoving)) return;
    const due = now + LONGEST_PAUSE_MS;
    holds(world.alarm !== null && world.alarm <= due, () => `nothing moves, armed: ${world.alarm}`);
  },
  async clear(scene) {
    const moves = movesOf(scene);
    if (moves) await drain(scene, moves);
  },
};
