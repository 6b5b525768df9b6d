/**
 * Pushes: the queue hands its jobs to a handler Worker, which answers when and how the simulation decides: late, in parts, with
 * what it has to say meanwhile, with jobs to enqueue, wrongly, or not at all.
 */
import fc from 'fast-check';
import type { TargetConfig } from '../../src/dispatch/config';
import { deliveryId } from '../../src/job/ids';
import { rowByKey } from '../../src/queue/store/row-lookup';
import { idOf } from '../../src/queue/store/rows';
import { holds, same } from './agree';
import type { Area, Kind } from './area';
import { type ChildOrder, Children, type Fate } from './children';
import { Handler, type HandlerCall, type HandlerTerms, type Sent } from './handler';
import { historiesOf } from './histories';
import { isOpen, type ModelJob } from './model';
import {
  type Health,
  handOver,
  isSuspect,
  LIMIT_MS,
  noteCall,
  type OutcomeOrder,
  restarted,
  settle,
  suffer,
  type Trouble,
} from './model-pushes';
import { order, pick } from './orders';
import { failureOf, resultOf } from './reports';
import type { Scene } from './scene';
import type { Step } from './steps';
import { write } from './texts';
import { pushThemes } from './themes';
import { Timers } from './timers';
import { TYPE } from './wire';
import { Died, type World } from './world';

/** An outcome, with what is to be enqueued with it. */
export interface Ending extends OutcomeOrder {
  children?: ChildOrder[] | undefined;
}

export type PushStep =
  /** The Worker answers a call: an outcome for each job. */
  | { op: 'answer-call'; pick: number; endings: Ending[]; reversed: boolean; twice: boolean }
  /** It says one outcome while the call goes on. */
  | { op: 'end-run'; pick: number; which: number; ending: Ending }
  /** A call comes to nothing. */
  | { op: 'spoil-call'; pick: number; how: Exclude<Trouble, 'too-late'> | 'closes' }
  /** A handler says something while it runs. */
  | { op: 'say'; pick: number; which: number; what: Saying }
  /** What becomes of jobs that were to be enqueued. */
  | { op: 'children'; pick: number; fate: Fate };

export type Saying =
  | { progress: number }
  | { checkpoint: { of: 'ascii'; length: number } }
  | { step: number }
  | { log: number }
  | { enqueue: ChildOrder[]; fate: Fate };

/** A delivery that was seen to be claimed. */
interface Handed {
  job: string;
  alone: boolean;
  /** Whether a call had it. */
  isSent: boolean;
}

/** Turns of the event loop in which a live line brings a message, and what is done about it. */
const MOST_TURNS = 500;
/** A lost wake of the pump is noticed after this, ms: as long as an announcement may take, and a little more. */
const WAKE_MS = 7_000;

class Pushes {
  readonly children = new Children();
  readonly health: Health = { errors: 0, until: 0 };
  readonly handed = new Map<string, Handed>();
  handler!: Handler;
  timers!: Timers;
  /** What the living object has handed over. */
  private own = new Set<string>();
  /** Claims that were seen, and their jobs. */
  private readonly seen = new Map<string, { key: number; claim: number; id: string; delivery: string }>();
  /** Calls that were read. */
  private readonly checked = new WeakSet<HandlerCall>();
  private asked = 0;
  private said = 0;

  constructor(
    readonly world: World,
    readonly terms: HandlerTerms,
  ) {}

  /** A new object stands before the Worker. */
  start(): void {
    this.handler = new Handler(this.terms, TYPE, this.world.withheld);
    this.timers = new Timers(() => this.world.now);
    this.timers.install();
    this.children.forgetAsks();
    this.own = new Set();
    this.asked = 0;
  }

  /** The object has died: what it claimed last may never have become durable, and comes again. */
  forgetLost({ q, model, world }: Scene): void {
    for (const [name, { key, claim, id, delivery }] of this.seen) {
      const row = world.quietly(() => rowByKey(q.store, key));
      const isThere = row ? row.claims >= claim : model.jobs.some((job) => job.id === id);
      if (isThere || q.store.leases.active.get(key)?.claim === claim) continue;
      this.seen.delete(name);
      this.handed.delete(delivery);
    }
  }

  config(): TargetConfig {
    const { handler } = this;
    return {
      ...{ id: 'SIM', name: 'SIM', patterns: [{ type: '*' }], batchSize: this.terms.batchSize, timeoutMs: LIMIT_MS },
      binding: { fetch: (url, init) => handler.fetch(new Request(url, init)) },
    };
  }

  /** What was claimed since the last look was handed over in order, and was free. */
  observe(scene: Scene): void {
    const { q, model, now } = scene;
    if (this.handler.asked > this.asked) {
      this.asked = this.handler.asked;
      noteCall(this.health, true, now);
    }
    // What the queue has ended by itself was taken, before anybody hears of its end.
    if (this.open.some(({ isAborted }) => isAborted)) noteCall(this.health, true, now);
    const fresh = [...q.store.leases.active.values()].filter(
      ({ key, claim, target }) => target !== undefined && !this.seen.has(`${key} ${claim}`),
    );
    if (fresh.length === 0) return;
    const handed = scene.world.quietly(() =>
      fresh.map(({ key, claim, attempt }) => {
        const row = rowByKey(q.store, key);
        if (!row) throw new Error(`a job was pushed that is not there: ${key}`);
        const id = idOf(q.route, row);
        const delivery = deliveryId(id, claim);
        this.seen.set(`${key} ${claim}`, { key, claim, id, delivery });
        return { id, attempt, delivery };
      }),
    );
    // One whose call could not be made takes no place.
    const placed = fresh.filter(({ orphaned }) => !orphaned).length;
    const takesPlace = (delivery: string) => this.own.has(delivery) && this.handed.get(delivery)?.isSent === true;
    const running = model.jobs.filter(({ lease }) => lease?.pushed && takesPlace(lease.pushed.delivery)).length;
    const active = scene.world.quietly(
      () => new Set([...q.store.leases.active.keys()].map((key) => idOf(q.route, rowByKey(q.store, key) as never))),
    );
    const { health, terms } = this;
    const { concurrency } = terms;
    const isTaken = (id: string) => active.has(id);
    const alone = handOver(model, handed, { now, health, running, placed, concurrency, isTaken });
    for (const { id, delivery } of handed) {
      this.own.add(delivery);
      this.handed.set(delivery, { job: id, alone: alone.has(delivery), isSent: false });
    }
  }

  /** Reads the calls that have come, each of which must carry what was claimed for it. */
  async read(): Promise<void> {
    for (const call of this.handler.calls) {
      if (this.checked.has(call) || call.isAborted) continue;
      await call.ready;
      if (this.checked.has(call)) continue;
      this.checked.add(call);
      holds(call.sent.length <= this.terms.batchSize, () => `${call.sent.length} jobs in a call`);
      for (const { id, job } of call.sent) {
        const handed = this.handed.get(id);
        if (!handed) throw new Error(`${id} was sent, which nobody has claimed`);
        holds(!handed.isSent, () => `${id} was sent twice`);
        same(job.id, handed.job);
        holds(!handed.alone || call.sent.length === 1, () => `${job.id} does not travel alone`);
        handed.isSent = true;
      }
    }
  }

  /** The object does what it can by itself, time limits of calls included. */
  async settle(scene: Scene): Promise<void> {
    const { world } = this;
    const { push } = world.engine as unknown as { push: { beginEvent(): void; capacityFreed(): void } };
    push.beginEvent();
    push.capacityFreed();
    world.engine.tidied();
    await world.settled();
    scene.tidy();
    scene.finish();
    await this.read();
    while (this.timers.fireNext()) {
      await scheduler.wait(0);
      await this.hearEnds(scene);
    }
    await this.hearEnds(scene);
    await this.read();
    this.forgetUnawaited(scene);
  }

  /** Where a call could not be made, or is over, nobody waits for an answer any more: the run ends with its lease. */
  private forgetUnawaited({ model }: Scene): void {
    const awaited = new Set(this.open.flatMap(({ open }) => open.map(({ id }) => id)));
    for (const { lease } of model.jobs) {
      if (lease?.pushed && !awaited.has(lease.pushed.delivery)) lease.timeoutAt = Number.POSITIVE_INFINITY;
    }
  }

  /** Calls whose end came from the queue: their time was up, or nobody wanted their answer. */
  private async hearEnds(scene: Scene): Promise<void> {
    const over = this.open.filter(({ isAborted }) => isAborted);
    for (const call of over) call.end();
    await this.world.settled();
    if (over.length === 0) return;
    scene.tidy();
    for (const call of over) {
      this.suffer(scene, call.open, 'too-late');
      noteCall(this.health, true, scene.now);
    }
    scene.finish();
  }

  get open(): HandlerCall[] {
    return this.handler.calls.filter(({ isOver }) => !isOver);
  }

  pick(pick: number): HandlerCall | undefined {
    const { open } = this;
    return open[pick % Math.max(1, open.length)];
  }

  jobOf(scene: Scene, { job }: Pick<Sent, 'job'>): ModelJob {
    const found = scene.model.jobs.find(({ id }) => id === job.id);
    if (!found) throw new Error(`${job.id} is gone from the model`);
    return found;
  }

  suffer(scene: Scene, sent: readonly Sent[], trouble: Trouble): void {
    for (const one of sent) suffer(scene.model, this.jobOf(scene, one), one.id, trouble, scene.now);
  }

  /** The runs of these deliveries have ended so. */
  ended(scene: Scene, endings: readonly { sent: Sent; ending: Ending; name: string }[]): void {
    for (const { sent, ending, name } of endings) {
      const counts = settle(scene.model, this.jobOf(scene, sent), sent.id, ending, scene.now);
      const { children = [] } = ending;
      if (counts && isEnqueuing(ending)) this.children.due(children, name);
    }
  }

  /** How the Worker says it. */
  entry({ id, job }: Sent, ending: Ending): { entry: object; name: string } {
    const { how, in: after, signal, mark, checkpoint, progress, children = [] } = ending;
    const name = `${id} #${++this.said}`;
    const error = failureOf();
    const outcome = {
      completed: { status: 'completed', result: JSON.parse(resultOf(job.id, undefined)) },
      failed: { status: 'failed', error },
      final: { status: 'failed', error: { ...error, retryable: false } },
      'retry-in': { status: 'failed', error: { ...error, retry_in: 777 } },
      kill: { status: 'failed', error: { ...error, kill: true } },
      snoozed: {
        ...{ status: 'snoozed', in: after, steps: { [`s${mark}`]: { result: mark } } },
        ...(signal && { signal: 'go' }),
      },
      nonsense: { status: 'perhaps' },
      unsaid: {},
    }[how];
    const beside = {
      ...(checkpoint && { checkpoint: write(checkpoint) }),
      ...(progress && { progress: { progress: 0.5 } }),
      ...(isEnqueuing(ending) && { enqueue: this.children.written(children, name, this.world.now) }),
    };
    return { entry: { delivery_id: id, ...outcome, ...beside }, name };
  }

  /** Waits for what comes over a live line. */
  async until(isThere: () => boolean, what: string): Promise<void> {
    for (let turns = 0; !isThere(); turns++) {
      if (turns === MOST_TURNS) throw new Error(`waited in vain: ${what}`);
      await scheduler.wait(0);
    }
  }

  nextCall(): number {
    return ++this.said;
  }
}

const isEnqueuing = ({ how, children = [] }: Ending): boolean => children.length > 0 && how !== 'unsaid';

const states = new WeakMap<World, Pushes>();

/** What is pushed in this history; undefined where nothing is. */
const pushesOf = ({ world }: Scene): Pushes | undefined => states.get(world);

/** A step of several turns. */
function longer<S>(play: (scene: Scene, step: S) => Promise<void>): Kind<S> {
  return { prepare: (scene, step) => ({ play: () => play(scene, step) }), isLonger: true };
}

/** A step about an open call. The product runs in it by itself, so that a failing statement is met by none of ours. */
function onCall<S extends { pick: number }>(
  play: (scene: Scene, pushes: Pushes, call: HandlerCall, step: S) => unknown,
) {
  return longer(async (scene: Scene, step: S): Promise<void> => {
    const pushes = pushesOf(scene);
    await pushes?.read();
    const call = pushes?.pick(step.pick);
    if (pushes && call) await play(scene, pushes, call, step);
  });
}

async function answerCall(scene: Scene, pushes: Pushes, call: HandlerCall, step: StepOfPush<'answer-call'>) {
  const { open } = call;
  const endings = open.map((sent, at) => {
    const ending = step.endings[at % step.endings.length] as Ending;
    // Of a single job nothing is left unsaid: an empty answer is a success.
    const isBatch = pushes.terms.payload !== 'envelope';
    return { sent, ending: isBatch || ending.how !== 'unsaid' ? ending : { ...ending, how: 'nonsense' as const } };
  });
  const said = endings.map(({ sent, ending }) => ({ sent, ending, ...pushes.entry(sent, ending) }));
  const written = said.filter(({ ending }) => ending.how !== 'unsaid').map(({ entry }) => entry);
  if (step.twice && written[0]) written.push(written[0]);
  if (step.reversed) written.reverse();
  if (pushes.terms.payload === 'envelope') call.respond(Response.json(written[0]));
  else if (call.hasLine) {
    for (const entry of written) call.say(entry);
    if (written.length === 0) call.say('');
    call.close();
  } else call.respond(Response.json({ results: written }));
  await scene.world.settled();
  scene.tidy();
  pushes.ended(scene, said);
  noteCall(pushes.health, true, scene.now);
}

async function endRun(scene: Scene, pushes: Pushes, call: HandlerCall, step: StepOfPush<'end-run'>) {
  const { open } = call;
  const sent = open[step.which % Math.max(1, open.length)];
  if (!call.hasLine || !sent || step.ending.how === 'unsaid') return;
  const { entry, name } = pushes.entry(sent, step.ending);
  const job = pushes.jobOf(scene, sent);
  const counts = job.lease?.pushed?.delivery === sent.id;
  call.say(entry);
  call.answered.add(sent.id);
  if (call.open.length === 0) {
    call.end();
    noteCall(pushes.health, true, scene.now);
  } else if (counts) await pushes.until(() => !isClaimed(scene, sent), `the end of ${sent.id}`);
  else await scheduler.wait(2);
  await scene.world.settled();
  scene.tidy();
  pushes.ended(scene, [{ sent, ending: step.ending, name }]);
}

/** Does the delivery run, as the product sees it? */
function isClaimed({ q, world }: Scene, { id, job }: Sent): boolean {
  return world.quietly(() =>
    [...q.store.leases.active.values()].some(({ key, claim }) => {
      const row = rowByKey(q.store, key);
      return row && idOf(q.route, row) === job.id && deliveryId(job.id, claim) === id;
    }),
  );
}

async function spoilCall(scene: Scene, pushes: Pushes, call: HandlerCall, { how }: StepOfPush<'spoil-call'>) {
  const { open } = call;
  const hasBegun = call.answered.size > 0 || call.hasSpoken;
  // What has begun can only break off, or end.
  const trouble = hasBegun && how !== 'closes' ? 'dies' : how;
  switch (trouble) {
    case 'refused':
      call.respond(new Response('no', { status: 403 }));
      break;
    case 'not-running':
      call.respond(new Response('Worker "sim" not found', { status: 503 }));
      break;
    case 'fails':
      call.respond(new Response('oops', { status: 500 }));
      break;
    case 'busy':
      call.respond(new Response('later', { status: 429, headers: { 'Retry-After': '2' } }));
      break;
    case 'dies':
      call.die();
      break;
    case 'nonsense':
      if (pushes.terms.payload === 'envelope') call.respond(Response.json({ status: 'maybe' }));
      else call.respond(new Response('{"results":'));
      break;
    case 'closes':
      if (!call.hasLine) return;
      call.say('');
      call.close();
  }
  await scene.world.settled();
  scene.tidy();
  pushes.suffer(scene, open, trouble === 'closes' ? 'nonsense' : trouble);
  noteCall(pushes.health, !['refused', 'not-running'].includes(trouble), scene.now);
}

async function say(scene: Scene, pushes: Pushes, call: HandlerCall, { which, what }: StepOfPush<'say'>) {
  const sent = call.open[which % Math.max(1, call.open.length)];
  if (!call.hasLine || !sent) return;
  const job = pushes.jobOf(scene, sent);
  const number = pushes.nextCall();
  const about = { delivery_id: sent.id };
  if ('log' in what) {
    call.say({ ...about, log: Array.from({ length: what.log }, () => ({ at: 1, level: 'info', message: 'hello' })) });
    // Whatever is heard after it, it was heard.
    call.say({ ...about, call: number, progress: { progress: 0.1 } });
  } else if ('progress' in what) call.say({ ...about, call: number, progress: { progress: what.progress } });
  else if ('checkpoint' in what) call.say({ ...about, call: number, checkpoint: write(what.checkpoint) });
  else if ('step' in what) {
    call.say({ ...about, call: number, step: { name: `s${what.step}`, result: what.step } });
  } else {
    const name = `${sent.id} said ${number}`;
    const asks = pushes.children.asks.length;
    call.say({ ...about, call: number, enqueue: pushes.children.written(what.enqueue, name, scene.now) });
    const runs = job.lease?.pushed?.delivery === sent.id && job.lease.timeoutAt > scene.now;
    if (runs) {
      await pushes.until(() => pushes.children.asks.length > asks, 'jobs to enqueue');
      pushes.children.settle(scene, pushes.children.asks[asks] as never, what.fate);
    }
  }
  await pushes.until(() => call.replies.has(number) || call.isAborted, 'a reply');
  scene.tidy();
  const runs = job.lease?.pushed?.delivery === sent.id;
  const isRefused = 'enqueue' in what && what.fate !== 'take';
  const { error } = call.replies.get(number) ?? {};
  same(error === undefined, runs && !isRefused, `a reply about ${sent.id}: ${error?.code}`);
  if (!runs) return;
  if ('checkpoint' in what) job.checkpoint = what.checkpoint;
  if ('step' in what) job.marks = new Set([...(job.marks ?? []), what.step]);
}

async function children(scene: Scene, { pick, fate }: StepOfPush<'children'>): Promise<void> {
  const pushes = pushesOf(scene);
  const ask = pushes?.children.asks[pick % Math.max(1, pushes.children.asks.length)];
  if (!pushes || !ask) return;
  pushes.children.settle(scene, ask, fate, pick);
  await scene.world.settled();
}

type StepOfPush<Op extends PushStep['op']> = Extract<PushStep, { op: Op }>;

/** The queue pushes whatever it has, and all that was to be enqueued is. */
async function drain(scene: Scene, pushes: Pushes): Promise<void> {
  const { model, world } = scene;
  const waits = () => model.jobs.some((job) => isOpen(job) && job.state !== 'pending');
  const most = 6 * model.jobs.length + 60;
  for (let round = 0; waits() || pushes.children.areOpen; round++) {
    if (round === most) throw new Error(`not all is pushed after ${most} rounds`);
    await pushes.settle(scene);
    for (const ask of [...pushes.children.asks]) pushes.children.settle(scene, ask, 'take');
    await world.settled();
    scene.finish();
    const call = pushes.pick(0);
    if (call) {
      const ending = { how: 'completed' as const, in: 0, signal: false, mark: 0 };
      await answerCall(scene, pushes, call, {
        ...{ op: 'answer-call', pick: 0, endings: [ending], reversed: false, twice: false },
      });
      scene.finish();
      continue;
    }
    if (!waits() && !pushes.children.areOpen) break;
    scene.nextAlarm('pushes what waits');
    model.prune(scene.now);
    scene.finish();
  }
}

/** What could be handed over must not wait without a wake. */
function expectWake(scene: Scene, pushes: Pushes): void {
  const { model, now, world } = scene;
  if (scene.lost || model.paused) return;
  const running = model.jobs.filter(({ lease }) => lease?.pushed).length;
  const most = Math.min(10, pushes.terms.concurrency || 10);
  const ready = model.available(now).filter(({ expiresAt }) => expiresAt > now);
  const waits = ready.filter(({ order }) => order.limit === null);
  // Nothing passes a job that may have killed its Worker, whatever key it counts under.
  if (running >= most || waits.length === 0 || ready.some(isSuspect)) return;
  if (model.jobs.some((job) => job.lease?.pushed && job.lostBy === 'crash')) return;
  const due = Math.max(now, pushes.health.until) + WAKE_MS;
  holds(world.alarm !== null && world.alarm <= due, () => `${waits[0]?.id} waits to be pushed, armed: ${world.alarm}`);
}

const childOrder: fc.Arbitrary<ChildOrder> = fc.record({
  here: fc.boolean(),
  job: order.map((job) => ({ ...job, unique: null, pending: false })),
});
const fate = fc.constantFrom<Fate>('take', 'take', 'lost', 'refuse', 'busy', 'full');
const short = fc.record({ of: fc.constant('ascii' as const), length: fc.constantFrom(1, 5) });
const ending: fc.Arbitrary<Ending> = fc.record({
  how: fc.constantFrom<OutcomeOrder['how']>(
    ...(['completed', 'completed', 'completed', 'failed', 'failed', 'final', 'retry-in', 'kill'] as const),
    ...(['snoozed', 'snoozed', 'nonsense', 'unsaid'] as const),
  ),
  in: fc.constantFrom(0, 300, 2_000, 60_000),
  signal: fc.boolean(),
  mark: fc.constantFrom(0, 0, 1),
  checkpoint: fc.option(short, { freq: 3, nil: undefined }),
  progress: fc.option(fc.constant(true), { freq: 3, nil: undefined }),
  children: fc.option(fc.array(childOrder, { minLength: 1, maxLength: 3 }), { freq: 3, nil: undefined }),
});
const which = fc.nat(20);

const saying: fc.Arbitrary<Saying> = fc.oneof(
  fc.record({ progress: fc.constantFrom(0.2, 0.7) }),
  fc.record({ checkpoint: short }),
  fc.record({ step: fc.constantFrom(0, 1) }),
  fc.record({ log: fc.constantFrom(1, 3) }),
  fc.record({ enqueue: fc.array(childOrder, { minLength: 1, maxLength: 2 }), fate }),
);

const pushStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      op: fc.constant('answer-call' as const),
      ...{ pick, endings: fc.array(ending, { minLength: 1, maxLength: 4 }) },
      ...{ reversed: fc.boolean(), twice: fc.boolean() },
    }),
  },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('end-run' as const), pick, which, ending }) },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('spoil-call' as const),
      pick,
      how: fc.constantFrom('refused', 'not-running', 'fails', 'busy', 'dies', 'dies', 'nonsense', 'closes'),
    }),
  },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('say' as const), pick, which, what: saying }) },
  { weight: 6, arbitrary: fc.record({ op: fc.constant('children' as const), pick, fate }) },
);

export const area: Area<PushStep> = {
  kinds: {
    'answer-call': onCall(answerCall),
    'end-run': onCall(endRun),
    'spoil-call': onCall(spoilCall),
    say: onCall(say),
    children: longer(children),
  },
  excuses: [/^tocsin: a job that .* enqueued was refused/, /^tocsin: children .* could not be delivered yet/],
  histories: (length) => [
    historiesOf(
      pushStep,
      { length, others: 2, weight: 60 },
      {
        pushes: fc.record({
          payload: fc.constantFrom<HandlerTerms['payload']>('batch', 'lines', 'lines', 'envelope'),
          batchSize: fc.constantFrom(1, 3, 10),
          concurrency: fc.constantFrom(0, 0, 1, 3),
        }),
      },
      pushThemes,
    ),
  ],
  hooks(world, { pushes: terms }) {
    if (!terms) return {};
    const pushes = states.get(world) ?? new Pushes(world, terms);
    states.set(world, pushes);
    pushes.start();
    const { withheld } = world;
    // What an object had begun to ask when it died is asked no more.
    const isAlive = () => world.withheld === withheld;
    return {
      config: { targets: [pushes.config()] },
      others: {
        enqueue: async (entries, key) => {
          if (!isAlive()) throw new Died();
          return pushes.children.ask(withheld, entries, key);
        },
        enqueueEach: async (entries, key) => {
          if (!isAlive()) throw new Died();
          return pushes.children.askEach(withheld, entries, key);
        },
      },
    };
  },
  observe: (scene) => pushesOf(scene)?.observe(scene),
  settle: async (scene) => pushesOf(scene)?.settle(scene),
  evicted(scene) {
    const pushes = pushesOf(scene);
    if (!pushes) return;
    pushes.forgetLost(scene);
    restarted(pushes.health, scene.model);
  },
  compare(scene) {
    const pushes = pushesOf(scene);
    if (pushes) expectWake(scene, pushes);
  },
  async clear(scene) {
    const pushes = pushesOf(scene);
    if (pushes) await drain(scene, pushes);
  },
  end: () => Timers.restore(),
};
