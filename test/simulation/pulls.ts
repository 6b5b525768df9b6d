/** Workers that wait: fetches with deadlines, and sockets that the runtime holds while the object sleeps. */
import fc from 'fast-check';
import type { Outcome } from '../../src/job/errors';
import { decodeId } from '../../src/job/ids';
import type { JobView } from '../../src/job/record';
import type { Report, Reported } from '../../src/rpc/workers';
import { holds, same } from './agree';
import type { Area, Kind } from './area';
import { type Item, items, readSent, reported, type Sent, sentOf } from './batches';
import type { ModelJob } from './model';
import {
  accepts,
  type Given,
  isSilenced,
  leave,
  MAX_READY,
  type ModelSocket,
  type ModelWaiter,
  moments,
  pullsOf,
  restarted,
  stand,
  WORKERS,
} from './model-pulls';
import { type Followed, Observer } from './observer';
import { delivered, mayStart, requestOf, takes } from './reports';
import type { Scene } from './scene';
import { Connection, Life } from './sockets';
import type { StepOf } from './steps';
import { write } from './texts';
import { Timers } from './timers';
import type { World } from './world';

export type PullStep =
  /** A fetch that waits so long, ms. */
  | { op: 'poll'; worker: string; count: number; visibility: number; wait: number }
  /** Whoever waits is gone. */
  | { op: 'withdraw'; pick: number }
  | { op: 'connect'; worker: string; visibility: number }
  | { op: 'tell'; pick: number; what: Said }
  /** It goes, and the object hears of it at once, or not before it has tried to send something. */
  | { op: 'disconnect'; pick: number; how: 'heard' | 'broken' }
  | { op: 'silence'; worker: string; silenced: boolean }
  /** Time passes, and alarms and timers are on time. */
  | { op: 'pass'; ms: number };

/** What a worker says over its socket. */
export type Said =
  | { is: 'ready'; count: number }
  | { is: 'report'; items: Item[]; ready: number }
  | { is: 'heartbeat'; fails: boolean }
  | { is: 'pause' };

/** Sockets at once. */
const MAX_SOCKETS = 4;

/** Turns of the event loop in which nothing happens: then nothing is under way. */
const QUIET_TURNS = 40;
const MOST_TURNS = 20_000;

/** Alarms and timers that one step lets fire. */
const MOST_EVENTS = 60;

/** By how much alarms that fire early, again and again, may push the next one; ms. */
const SLACK_MS = 20;

interface Poll {
  name: string;
  deadline: number;
  isImpatient: boolean;
  isWithdrawn: boolean;
  /** As it stood in the line until it was answered. */
  waiter?: ModelWaiter | undefined;
  answer?: readonly JobView[] | 'failed' | undefined;
}

/** Reports on their way: those that cannot be taken together are taken one by one. */
interface Reporting extends Followed {
  sent: readonly Sent[];
  next: number;
  isSent: boolean;
  isDone: boolean;
}

const OF = new WeakMap<World, Pulls>();

function pulls(scene: Scene): Pulls {
  const found = OF.get(scene.world);
  if (!found) throw new Error('nobody waits in this history');
  return found;
}

/** Follows what happens in shared transactions. */
export function observerOf(scene: Scene): Observer {
  return pulls(scene).observer;
}

class Pulls {
  readonly observer: Observer;
  private readonly polls = new Map<string, Poll>();
  private connections: Connection[] = [];
  private life!: Life;
  private names = 0;
  private reporting: Reporting[] = [];
  private said: { promise: Promise<unknown>; error?: unknown; isOver: boolean }[] = [];
  private commits = 0;
  private timers!: Timers;
  private faults = 0;

  constructor(private readonly scene: Scene) {
    this.observer = new Observer(
      scene,
      (worker, jobs) => this.claimed(worker, jobs),
      (value) => this.unannounced(value),
    );
    this.attach();
  }

  private get model() {
    return this.scene.model;
  }

  private get book() {
    return pullsOf(this.model);
  }

  /** A new object: those who hold a socket are still there, and it knows of them from what is attached to these. */
  attach(): void {
    this.timers = new Timers(() => this.scene.now, 0);
    this.timers.install();
    // What came from the one before is no news.
    for (const connection of this.connections) connection.jobs = [];
    this.observer.watch();
    this.polls.clear();
    this.said = [];
    this.reporting = [];
    this.life?.end();
    const { pull } = this.scene.world.engine;
    this.life = new Life(this.scene, this.connections, (worker) => isSilenced(this.model, worker), {
      report: (reports: readonly Report[], mostTold: number) => {
        const reporting = this.reporting.find(({ isSent }) => !isSent);
        if (reporting) reporting.isSent = true;
        this.observer.next = reporting;
        return pull.report(reports, mostTold);
      },
      beforeWrite: () => {
        this.observer.next = { done: () => this.gaveBack() };
      },
      beforeHeartbeat: (worker) => {
        this.observer.next = { done: (value) => this.beat(worker, value as { extended: string[] }) };
      },
    });
    if (this.observer.isBehind) this.catchUp();
    // Of a socket from which nothing arrives only the object knows what it has tried to send.
    for (const { name, kept } of this.connections.filter(({ isBroken }) => isBroken)) {
      const socket = this.book.sockets.find((other) => other.name === name);
      if (socket) socket.ready = kept;
    }
    restarted(this.model);
  }

  // ---- what happens in transactions ----------------------------------------------------------------------------------

  private get isFaulted(): boolean {
    return this.scene.world.faults !== this.faults;
  }

  /** A claim has taken these jobs. It may have found them in several parts, which its worker does not see. */
  private claimed(worker: string, found: readonly ModelJob[]): void {
    const jobs = found.toSorted(inOrder);
    const { scene, book, model } = this;
    const [first] = jobs;

    const waiter = book.line.find((other) => other.worker === worker && first && accepts(worker, first));
    if (!waiter) throw new Error(`${worker} does not wait, and has got ${first?.id}`);
    const { name, count, visibility, socket } = waiter;
    holds(!isSilenced(model, worker), () => `${worker} must get no jobs`);
    takes(
      scene,
      { worker, count, visibility, kinds: WORKERS[worker] },
      jobs.map(({ id }) => id),
    );
    const alike = JSON.stringify(WORKERS[worker] ?? null);
    const before = book.line.slice(0, book.line.indexOf(waiter));
    const overtaken = before.find((other) => JSON.stringify(WORKERS[other.worker] ?? null) === alike);
    holds(!overtaken || this.isFaulted, () => `${name} has overtaken ${overtaken?.name}`);
    const given = jobs.map(({ id, attempt, checkpoint }) => ({ id, attempt, checkpoint }));
    book.given.push({ waiter: name, socket, jobs: given });
    leave(model, ({ name: other }) => other === name);
    const line = book.sockets.find((other) => other.name === socket);
    if (!line) return;
    line.owed += jobs.length;
    stand(model, line);
  }

  /** Nobody has announced the operation: a report among those that could not be taken together. */
  private unannounced(value: unknown): Followed | undefined {
    const isReport = Array.isArray(value) && value.length === 1 && 'ok' in (value[0] as object);
    const reporting = isReport ? this.reporting.find(({ isDone }) => !isDone) : undefined;
    if (!reporting) return undefined;
    return {
      done: () => {
        const item = reporting.sent[reporting.next++] as Sent;
        if (reporting.next === reporting.sent.length) reporting.isDone = true;
        reported(this.scene, [item], value as Outcome<Reported>[]);
      },
    };
  }

  /** Jobs that did not arrive are given back as if nobody had claimed them. */
  private gaveBack(): void {
    const { model, book, scene } = this;
    for (const given of book.given.filter(({ socket }) => this.isBroken(socket))) {
      const back = given.jobs.filter(({ id }) => !scene.q.store.leases.active.has(decodeId(id).key));
      for (const { id } of back) model.undoClaim(model.jobs.find((job) => job.id === id) as ModelJob);
      given.jobs = given.jobs.filter((job) => !back.includes(job));
      const line = book.sockets.find(({ name }) => name === given.socket);
      if (!line) continue;
      line.ready -= back.length;
      line.owed -= back.length;
    }
    book.given = book.given.filter(({ jobs }) => jobs.length > 0);
  }

  private isBroken(socket: string | undefined): boolean {
    return this.connections.some(({ name, isBroken }) => name === socket && isBroken);
  }

  private beat(worker: string, { extended }: { extended: string[] }): void {
    const held = this.model.jobs.filter((job) => job.lease?.worker === worker);
    same([...extended].sort(), held.map(({ id }) => id).sort(), `jobs of ${worker}`);
    for (const job of held) this.model.extend(job, this.scene.now);
  }

  // ---- what workers do -----------------------------------------------------------------------------------------------

  poll({ worker, count, visibility, wait }: StepOf<'poll'>): void {
    const { scene, model, book } = this;
    if (isSilenced(model, worker)) return;
    const name = `poll-${++this.names}`;
    const deadline = scene.now + wait;
    book.line.push({ name, worker, count, visibility, deadline });
    const poll: Poll = { name, deadline, isImpatient: wait === 0, isWithdrawn: false };
    this.polls.set(name, poll);
    const request = { ...requestOf({ worker, count, visibility, kinds: WORKERS[worker] }), waiter: name };
    const answered = scene.world.engine.pull.claim(request, deadline, () => isSilenced(this.model, worker));
    const over = (answer: Poll['answer']) => {
      poll.answer = answer;
      if (answer !== 'failed' && answer?.length !== 0) return;
      // Whatever comes now is not for it.
      this.catchUp();
      poll.waiter = this.book.line.find((waiter) => waiter.name === name);
      leave(this.model, (waiter) => waiter.name === name);
    };
    answered.then(
      (outcome) => over(outcome.ok ? outcome.value : 'failed'),
      () => over('failed'),
    );
  }

  withdraw(pick: number): void {
    const waiting = [...this.polls.values()].filter(({ answer }) => answer === undefined);
    const poll = waiting[pick % Math.max(1, waiting.length)];
    if (!poll) return;
    poll.isWithdrawn = true;
    this.scene.world.engine.pull.withdraw(poll.name);
    leave(this.model, ({ name }) => name === poll.name);
  }

  connect({ worker, visibility }: StepOf<'connect'>): void {
    if (this.connections.length >= MAX_SOCKETS) return;
    const name = `socket-${++this.names}`;
    const connection = new Connection(name, (from, text) => this.life.sockets.heard(this.life.endOf(from), text), {
      sent: (of, count) => this.sent(of, count),
      refused: (of) => this.refused(of),
    });
    this.connections.push(connection);
    this.life.accept(connection, { worker, visibility });
    this.book.sockets.push({ name, worker, visibility, ready: 0, owed: 0 });
  }

  tell({ pick, what }: StepOf<'tell'>): void {
    const connection = this.connections[pick % Math.max(1, this.connections.length)];
    if (!connection || connection.isBroken) return;
    const socket = this.book.sockets.find(({ name }) => name === connection.name) as ModelSocket;
    // Its worker waits until it is told that no more jobs come.
    if (socket.isPausing) return;
    switch (what.is) {
      case 'ready':
        if (socket.ready + what.count > MAX_READY) return;
        this.becomeReady(connection, socket, what.count);
        connection.worker.ready(what.count);
        break;
      case 'report':
        this.report(connection, socket, what);
        break;
      case 'heartbeat':
        this.life.heartbeatFails = what.fails;
        this.expect(connection.worker.heartbeat('{"state":"running"}'), what.fails || undefined);
        break;
      case 'pause':
        connection.expected = 0;
        socket.ready = 0;
        socket.isPausing = true;
        leave(this.model, (waiter) => waiter.socket === socket.name);
        this.expect(connection.worker.pause(), undefined);
        break;
    }
  }

  private becomeReady(connection: Connection, socket: ModelSocket, count: number): void {
    connection.expected += count;
    socket.ready += count;
    stand(this.model, socket);
  }

  private report(connection: Connection, socket: ModelSocket, { items, ready }: Said & { is: 'report' }): void {
    const { scene } = this;
    const sent = sentOf(scene, items, socket.worker);
    readSent(scene, sent, socket.worker);
    const texts = sent.map(({ job, wire }) => ({
      ...{ jobId: job, queue: undefined, isEnd: false },
      text: JSON.stringify(wire),
    }));
    // What says more than may be said is refused as a whole.
    const isRefused = socket.ready + ready > MAX_READY;
    if (!isRefused) {
      if (sent.length > 0) this.reporting.push(this.reportingOf(sent));
      if (ready > 0) this.becomeReady(connection, socket, ready);
    }
    this.expect(connection.worker.report(texts, ready), isRefused || undefined);
  }

  private reportingOf(sent: readonly Sent[]): Reporting {
    const reporting: Reporting = {
      ...{ sent, next: 0, isSent: false, isDone: false },
      done: (value) => {
        if (!Array.isArray(value)) return;
        reporting.isDone = true;
        reported(this.scene, sent, value as Outcome<Reported>[]);
      },
      undone: () => {
        reporting.isDone = false;
      },
    };
    return reporting;
  }

  /** An answer must come. @param fails must it be a refusal? Absent: it must not, unless a statement fails */
  private expect(promise: Promise<unknown>, fails: boolean | undefined): void {
    const said: (typeof this.said)[number] = { promise, isOver: false };
    this.said.push(said);
    promise.then(
      () => {
        said.isOver = true;
        if (fails) said.error = new Error('a message that must be refused was not');
      },
      (error: unknown) => {
        said.isOver = true;
        if (!fails && !this.isFaulted) said.error = error;
      },
    );
  }

  disconnect({ pick, how }: StepOf<'disconnect'>): void {
    const connection = this.connections[pick % Math.max(1, this.connections.length)];
    if (!connection) return;
    if (how === 'broken' && !connection.isBroken) {
      connection.isBroken = true;
      return;
    }
    this.drop(connection);
  }

  private drop(connection: Connection): void {
    const { name } = connection;
    leave(this.model, (waiter) => waiter.socket === name);
    this.book.sockets = this.book.sockets.filter((socket) => socket.name !== name);
    this.life.sockets.left(this.life.endOf(connection));
    connection.isOpen = false;
    this.connections.splice(this.connections.indexOf(connection), 1);
  }

  silence({ worker, silenced }: StepOf<'silence'>): void {
    const { book, model, scene } = this;
    book.silenced = book.silenced.filter((other) => other !== worker);
    if (silenced) book.silenced.push(worker);
    if (silenced) leave(model, (waiter) => waiter.worker === worker);
    scene.world.engine.pull.dismissUnwanted();
    this.life.sockets.directed([worker], silenced);
    for (const socket of book.sockets) if (socket.worker === worker) stand(model, socket);
  }

  /** Where statements fail it is nobody's promise what becomes of jobs that do not arrive either. */
  async mendLines(): Promise<void> {
    for (const connection of this.connections.filter(({ isBroken }) => isBroken)) this.drop(connection);
    await this.settle();
  }

  /** Nobody waits any more. */
  async clear(): Promise<void> {
    await this.settle();
    for (const worker of Object.keys(WORKERS)) this.silence({ op: 'silence', worker, silenced: false });
    while (this.connections[0]) this.drop(this.connections[0]);
    for (const { name } of this.polls.values()) {
      this.scene.world.engine.pull.withdraw(name);
      leave(this.model, (waiter) => waiter.name === name);
    }
    for (const poll of this.polls.values()) poll.isWithdrawn = true;
    await this.settle();
  }

  // ---- what they hear ------------------------------------------------------------------------------------------------

  /** Everything that goes on by itself goes on until nothing is left to do now. */
  async settle(): Promise<void> {
    const { scene } = this;
    const { world } = scene;
    do {
      await this.quiet();
      this.observer.complain();
      if (world.commits !== this.commits) {
        this.commits = world.commits;
        world.quietly(() => {
          scene.tidy();
          scene.finish();
        });
      }
      this.hear();
    } while (this.timers.fireNext() || world.isBusy || world.commits !== this.commits);
    this.compareHeard();
    this.faults = world.faults;
    this.reporting = [];
  }

  private async quiet(): Promise<void> {
    for (let turn = 0, quiet = 0; quiet < QUIET_TURNS; turn++) {
      if (turn === MOST_TURNS) throw new Error('the object does not come to rest');
      await undefined;
      quiet = this.scene.world.isBusy || this.life.isBusy ? 0 : quiet + 1;
    }
  }

  private hear(): void {
    for (const poll of [...this.polls.values()]) {
      if (poll.answer === undefined) continue;
      this.polls.delete(poll.name);

      this.answered(poll, poll.answer);
    }
    for (const connection of this.connections) this.received(connection);
    for (const said of this.said.filter(({ isOver }) => isOver)) {
      this.said.splice(this.said.indexOf(said), 1);
      if (said.error !== undefined) throw said.error;
    }
  }

  private answered(
    { name, deadline, isWithdrawn, isImpatient, waiter }: Poll,
    answer: readonly JobView[] | 'failed',
  ): void {
    const { book, model, scene } = this;
    leave(model, (other) => other.name === name);
    const given = book.given.filter((other) => other.waiter === name);
    book.given = book.given.filter((other) => other.waiter !== name);
    if (answer === 'failed') {
      holds(this.isFaulted && given.length === 0, () => `${name} has failed`);
      return;
    }
    const got = answer.map(({ record: { id, attempt, checkpoint } }) => ({
      id,
      attempt,
      checkpoint: checkpoint?.state,
    }));
    same(got, shown(given), `jobs of ${name}`);
    for (const { record } of answer) delivered(model, record);
    if (answer.length > 0 || !waiter || isWithdrawn || this.isFaulted) return;
    holds(scene.now >= deadline, () => `${name} was sent away before its time`);
    // One that has waited asks again; one that does not wait has had its only chance.
    // Where jobs are given to nobody, and come back, they may have been away then.
    const isAny = isImpatient && !this.connections.some(({ isBroken }) => isBroken);
    const isGone = !isAny || !this.mayGet(waiter, scene.now);
    holds(isGone, () => `${name} was sent away although there is a job for it`);
  }

  private received(connection: Connection): void {
    const { book } = this;
    const { name } = connection;
    const got = connection.jobs.splice(0);
    if (got.length > 0) {
      const given = book.given.filter((other) => other.socket === name);
      book.given = book.given.filter((other) => other.socket !== name);
      same(
        got,
        shown(given).map(({ id, attempt }) => ({ id, attempt })),
        `jobs of ${name}`,
      );
    }
    holds(connection.refusals.splice(0).length === 0 || this.isFaulted, () => `a claim of ${name} has failed`);
  }

  /** The model follows what was committed before this was heard. A timer alone commits nothing. */
  private catchUp(): void {
    const { scene } = this;
    scene.world.quietly(() => {
      if (scene.world.commits !== this.commits) scene.tidy();
      this.observer.follow();
    });
  }

  private sent({ name }: Connection, count: number): void {
    const socket = this.book.sockets.find((other) => other.name === name);
    if (!socket) return;
    socket.ready -= count;
    socket.owed -= count;
  }

  /** A claim for a socket has failed: its worker must say again what it is ready for. */
  private refused({ name }: Connection): void {
    this.catchUp();
    const socket = this.book.sockets.find((other) => other.name === name);
    if (socket) socket.ready = 0;
    leave(this.model, (waiter) => waiter.socket === name);
  }

  private compareHeard(): void {
    const { book, scene } = this;
    // What could not be given back either keeps its lease.
    if (this.isFaulted) book.given = book.given.filter(({ socket }) => !this.isBroken(socket));
    const [given] = book.given;
    holds(!given, () => `${given?.waiter} was not sent ${given?.jobs.map(({ id }) => id).join()}`);
    holds(this.said.length === 0, () => 'a message was not answered');
    for (const socket of book.sockets) {
      const { name, ready } = socket;
      delete socket.isPausing;
      const connection = this.connections.find((other) => other.name === name) as Connection;
      same(connection.kept, ready, `what ${name} is ready for, as it is kept`);
      if (!connection.isBroken) same(connection.expected, ready, `what ${name} waits for`);
    }
    for (const { name, deadline } of this.polls.values()) {
      holds(deadline > scene.now || this.isFaulted, () => `${name} has waited too long`);
    }
  }

  // ---- whether anybody is left to wait -------------------------------------------------------------------------------

  /** May there be a job for whoever waits? */
  private mayGet({ worker }: ModelWaiter, at: number): boolean {
    return mayStart(
      this.scene,
      this.model.jobs.filter((job) => accepts(worker, job)),
      at,
    );
  }

  /** For each that waits: if there is a job, or will be, the object wakes for it. */
  compareWaits(): void {
    const { scene, book } = this;
    const { world } = scene;
    if (scene.lost || book.line.length === 0) return;
    const all = moments(this.model, scene.now);
    for (const waiter of book.line) {
      const at = all.find((moment) => this.mayGet(waiter, moment));
      if (at === undefined || at >= waiter.deadline) continue;
      const wakes = Math.min(world.alarm ?? Number.POSITIVE_INFINITY, waiter.socket ? Infinity : this.timers.next);
      holds(wakes <= at + SLACK_MS, () => `${waiter.name} could get a job at ${at}, and sleeps until ${wakes}`);
    }
  }

  /** Time passes; whatever has a moment has it on time. */
  async pass(ms: number): Promise<void> {
    const { scene } = this;
    const { world, model } = scene;
    const until = scene.now + ms;
    for (let events = 0; events < MOST_EVENTS; events++) {
      const next = Math.min(world.alarm ?? Number.POSITIVE_INFINITY, this.timers.next);
      if (next > until) break;
      world.now = Math.max(scene.now, next);
      const isAlarm = world.alarm !== null && world.alarm <= scene.now;
      if (isAlarm) {
        world.fire();
        scene.tidy();
        model.prune(scene.now);
        scene.finish();
        scene.lost = false;
      }
      await this.settle();
      if (!isAlarm) continue;
      const hungry = pullsOf(model).line.find((waiter) => this.mayGet(waiter, scene.now));
      holds(
        !hungry || this.isFaulted,
        () => `the alarm has left ${hungry?.name} waiting although there is a job for it`,
      );
    }
    world.now = Math.max(scene.now, until);
  }
}

const inOrder = (a: ModelJob, b: ModelJob): number =>
  b.order.priority - a.order.priority || a.availableAt - b.availableAt;

function shown(given: readonly Given[]) {
  return given.flatMap(({ jobs }) =>
    jobs.map(({ id, attempt, checkpoint }) => ({ id, attempt, checkpoint: checkpoint && write(checkpoint) })),
  );
}

/** A step of those who wait: what it begins goes on until the step is settled. */
function kind<S>(play: (pulls: Pulls, step: S) => void | Promise<void>): Kind<S> {
  return { prepare: (scene, step) => ({ play: () => play(pulls(scene), step) }), silent: true, isLonger: true };
}

const worker = fc.constantFrom(...Object.keys(WORKERS));
const visibility = fc.constantFrom(0, 0, 0, 500, 2_000);

const said: fc.Arbitrary<Said> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ is: fc.constant('ready' as const), count: fc.constantFrom(1, 1, 2, 3) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      is: fc.constant('report' as const),
      items,
      ready: fc.oneof({ weight: 12, arbitrary: fc.constantFrom(0, 1, 1, 2, 4) }, fc.constant(MAX_READY)),
    }),
  },
  { weight: 1, arbitrary: fc.record({ is: fc.constant('heartbeat' as const), fails: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ is: fc.constant('pause' as const) }) },
);

const pick = fc.nat(11);

/** What arrives and may share a transaction with other things. */
export const arriving = [
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constant('poll' as const),
      ...{ worker, visibility, count: fc.integer({ min: 1, max: 4 }) },
      wait: fc.constantFrom(0, 0, 1, 350, 3_000, 20_000),
    }),
  },
  { weight: 9, arbitrary: fc.record({ op: fc.constant('tell' as const), pick, what: said }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('withdraw' as const), pick }) },
];

export const connects = fc.record({ op: fc.constant('connect' as const), worker, visibility });

export const pullSteps = [
  ...arriving,
  { weight: 3, arbitrary: connects },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('disconnect' as const),
      ...{ pick, how: fc.constantFrom('heard' as const, 'broken' as const) },
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('silence' as const), worker, silenced: fc.boolean() }) },
  {
    weight: 8,
    arbitrary: fc.record({
      op: fc.constant('pass' as const),
      ms: fc.constantFrom(0, 1, 50, 350, 500, 1_000, 3_000, 25_000, 86_400_000),
    }),
  },
];

export const area: Area<PullStep> = {
  kinds: {
    poll: kind((all, step) => all.poll(step)),
    withdraw: kind((all, step) => all.withdraw(step.pick)),
    connect: kind((all, step) => all.connect(step)),
    tell: kind((all, step) => all.tell(step)),
    disconnect: kind((all, step) => all.disconnect(step)),
    silence: kind((all, step) => all.silence(step)),
    pass: kind((all, step) => all.pass(step.ms)),
  },
  hooks: (world) => ({
    committed: () => OF.get(world)?.observer.committed(),
    undone: () => OF.get(world)?.observer.undone(),
  }),
  begin(scene, { pulls: isPulled }) {
    if (isPulled) OF.set(scene.world, new Pulls(scene));
  },
  isFaulted: true,
  observe: (scene) => OF.get(scene.world)?.observer.follow(),
  async beforeFault(scene) {
    await OF.get(scene.world)?.mendLines();
  },
  async settle(scene) {
    await OF.get(scene.world)?.settle();
  },
  evicted: (scene) => OF.get(scene.world)?.attach(),
  compare: (scene) => OF.get(scene.world)?.compareWaits(),
  async clear(scene) {
    await OF.get(scene.world)?.clear();
  },
  end: () => Timers.restore(),
};
