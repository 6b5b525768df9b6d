/**
 * A desk and its holders under any load: requests and answers that are late or lost, objects that lose their memory,
 * clocks that differ. Played on one true time, which no party sees.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Call, Desk } from '../../src/allowance/desk';
import { Holder } from '../../src/allowance/holder';
import type { HolderRow, KeyRow } from '../../src/allowance/rows';
import type { Limits } from '../../src/job/limits/policy';
import type { KeySettings, LeaseRequest } from '../../src/rpc/allowances';
import { histories } from '../support/long';

const RUNS = histories(300);

const NONE: KeySettings = { version: 0 };

/** The desk's object: what is stored survives its memory. */
class DeskObject {
  private key: string;
  private readonly rows = new Map<string, string>();
  private desk: Desk | undefined;
  private sessions = 0;
  requests = 0;
  rowsWritten = 0;

  constructor(private readonly skew: number) {
    this.key = JSON.stringify({ settings: NONE } satisfies KeyRow);
  }

  get present(): Desk {
    this.desk ??= new Desk(
      JSON.parse(this.key) as KeyRow,
      new Map([...this.rows].map(([queue, row]) => [queue, JSON.parse(row) as HolderRow])),
      () => ++this.sessions,
    );
    return this.desk;
  }

  lease(request: LeaseRequest, time: number) {
    this.requests++;
    const { answer, holder, key, calls } = this.present.lease(request, time + this.skew);
    if (key) this.key = JSON.stringify(key);
    if (holder) {
      this.rows.set(request.queue, JSON.stringify(holder));
      this.rowsWritten++;
    }
    return { answer, calls };
  }

  evict(): void {
    this.desk = undefined;
  }
}

/** A queue with jobs under the key. Its running attempts survive its memory. */
class Queue {
  holder = new Holder();
  waiting = 0;
  running = 0;
  settings = NONE;
  private named = 1;

  constructor(
    readonly id: string,
    public limits: Limits,
    private skew: number,
    private readonly started: (count: number) => void,
  ) {
    this.evict();
  }

  now = (time: number) => time + this.skew;
  situation = (time: number) => ({ settings: this.settings, running: this.running, now: this.now(time) });

  evict(): void {
    this.holder = new Holder();
    this.holder.declared = { limits: this.limits, at: this.named };
  }

  /** A job names other limits than those before. */
  name(limits: Limits, at: number): void {
    this.limits = limits;
    this.named = at;
    this.holder.name(limits, at);
  }

  /** When it looks at its key again, in true time: the alarm of its object. */
  looksAt(time: number): number | undefined {
    if (!this.holder.needs) return undefined;
    const at = this.holder.opensAt(this.situation(time));
    return at === undefined ? time + 1_000 : at - this.skew;
  }

  /** It has looked just before: of a clock that is set back by less than the time since then, nothing shows. */
  setBack(ms: number, time: number): void {
    this.holder.room(this.situation(time));
    this.skew -= ms;
  }

  /** Starts what may start. */
  work(time: number, most = Number.POSITIVE_INFINITY): void {
    this.holder.room(this.situation(time));
    this.holder.needs = this.waiting > 0;
    let left = most;
    while (this.waiting > 0 && left > 0) {
      const count = Math.min(this.waiting, left, this.holder.room(this.situation(time)));
      if (count <= 0) break;
      this.holder.take(count, this.situation(time));
      this.running += count;
      this.started(count);
      this.waiting -= count;
      left -= count;
    }
    this.holder.needs = this.waiting > 0;
  }
}

type Event = { at: number; run: () => void };

class World {
  time = 0;
  readonly desk: DeskObject;
  readonly queues: Queue[];
  /** From then on all starts keep the limits, true time. */
  holdFrom = 0;
  private named = 1;
  private events: Event[] = [];
  /** True times, in order. */
  private readonly starts: number[] = [];

  constructor(
    public limits: Limits,
    queues: number,
    skews: readonly number[],
    readonly delay: () => number,
  ) {
    this.desk = new DeskObject(skews[0] ?? 0);
    this.queues = Array.from(
      { length: queues },
      (_, n) => new Queue(`q${n}`, limits, skews[n + 1] ?? 0, (count) => this.started(count)),
    );
  }

  /** A job of this queue names other limits, `slowest` (ms) at most before its request is there. */
  change(queue: Queue, limits: Limits, slowest: number): void {
    this.limits = limits;
    this.starts.length = 0;
    this.holdFrom = this.time + 5 * slowest + 1_000 + 30_000;
    queue.name(limits, ++this.named);
    this.settle(queue);
  }

  get(n: number): Queue {
    return this.queues[n % this.queues.length] as Queue;
  }

  private plan(after: number, run: () => void): void {
    this.events.push({ at: this.time + after, run });
  }

  /** Sends what the queue has to say. */
  ask(queue: Queue, loses: { request?: boolean; answer?: boolean } = {}): void {
    if (!queue.holder.hasToAsk(queue.situation(this.time))) return;
    const { holder } = queue;
    const request = JSON.parse(JSON.stringify(holder.ask(queue.id, queue.situation(this.time)))) as LeaseRequest;
    const fail = () =>
      this.plan(this.delay() + 500, () => {
        holder.failed(request);
        this.ask(queue);
      });
    if (loses.request) {
      // It may still arrive, long after it was given up.
      this.plan(5_000 + this.delay(), () => this.desk.lease(request, this.time));
      fail();
      return;
    }
    this.plan(this.delay(), () => {
      const { answer, calls } = this.desk.lease(request, this.time);
      this.call(calls);
      if (loses.answer) fail();
      else this.plan(this.delay(), () => this.answered(queue, holder, request, answer));
    });
  }

  private answered(queue: Queue, holder: Holder, request: LeaseRequest, answer: ReturnType<Desk['lease']>['answer']) {
    holder.answered(request, answer, queue.now(this.time));
    if (queue.holder === holder) this.settle(queue);
  }

  settle(queue: Queue): void {
    queue.work(this.time);
    this.ask(queue);
  }

  private call(calls: readonly Call[]): void {
    for (const { queue: name, recall } of calls) {
      this.plan(this.delay(), () => {
        const queue = this.queues.find((one) => one.id === name) as Queue;
        queue.holder.called(recall, queue.now(this.time));
        this.settle(queue);
      });
    }
  }

  /** Lets time pass: what is on its way arrives, and queues look at their keys when they must. */
  pass(ms: number): void {
    const end = this.time + ms;
    for (;;) {
      this.events.sort((a, b) => a.at - b.at);
      const next = this.events[0];
      const looks = this.queues.flatMap((queue) => queue.looksAt(this.time) ?? []);
      const at = Math.min(next?.at ?? end, end, ...looks);
      this.time = at;
      if (next && next.at <= at) {
        this.events.shift();
        next.run();
      } else {
        if (at >= end) return;
        for (const queue of this.queues) this.settle(queue);
      }
    }
  }

  private get running(): number {
    return this.queues.reduce((all, { running }) => all + running, 0);
  }

  /** All attempts end, which makes their queues look. */
  endAll(): void {
    for (const queue of this.queues) {
      queue.running = 0;
      this.settle(queue);
    }
  }

  /** Attempts start now. No more than the limit may run, or start in any period that is open at its end. */
  private started(count: number): void {
    const { concurrency, rate, throttle } = this.limits;
    if (this.time < this.holdFrom) return;
    for (let n = 0; n < count; n++) this.starts.push(this.time);
    if (concurrency !== undefined) expect(this.running).toBeLessThanOrEqual(concurrency);
    if (rate) this.within(count, rate.limit, rate.period_ms);
    if (throttle) this.within(count, 1, throttle.period_ms / throttle.limit);
  }

  private within(count: number, limit: number, period: number): void {
    const { starts } = this;
    for (let at = Math.max(limit, starts.length - count); at < starts.length; at++) {
      expect((starts[at] as number) - (starts[at - limit] as number)).toBeGreaterThanOrEqual(period - 0.001);
    }
  }
}

const limits: fc.Arbitrary<Limits> = fc
  .record({
    concurrency: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
    rate: fc.option(
      fc.record({ limit: fc.integer({ min: 1, max: 40 }), period_ms: fc.integer({ min: 100, max: 20_000 }) }),
      { nil: undefined },
    ),
    throttle: fc.option(
      fc.record({ limit: fc.integer({ min: 1, max: 20 }), period_ms: fc.integer({ min: 100, max: 20_000 }) }),
      { nil: undefined },
    ),
  })
  .filter(({ concurrency, rate, throttle }) => concurrency !== undefined || !!rate || !!throttle)
  .map((all) => JSON.parse(JSON.stringify(all)) as Limits);

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('add' as const), queue: fc.nat(3), n: fc.integer({ min: 1, max: 30 }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('end' as const), queue: fc.nat(3), n: fc.integer({ min: 1, max: 4 }) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      queue: fc.nat(3),
      n: fc.integer({ min: 1, max: 3_000 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('loseRequest' as const), queue: fc.nat(3), n: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('loseAnswer' as const), queue: fc.nat(3), n: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('evict' as const), queue: fc.nat(3), n: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('evictDesk' as const), queue: fc.nat(3), n: fc.nat(1) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('setBack' as const),
      queue: fc.nat(3),
      n: fc.integer({ min: 1, max: 20_000 }),
    }),
  },
);

type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** @param slowest the longest way between two objects, ms */
const scene = (slowest: number) =>
  fc.record({
    limits,
    queues: fc.integer({ min: 1, max: 4 }),
    skews: fc.array(fc.integer({ min: -30_000, max: 30_000 }), { minLength: 5, maxLength: 5 }),
    delays: fc.array(fc.oneof(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: slowest })), {
      minLength: 1,
      maxLength: 20,
    }),
    steps: fc.array(step, { minLength: 10, maxLength: 120, size: 'max' }),
  });

function play({
  limits: its,
  queues,
  skews,
  delays,
  steps,
}: ReturnType<typeof scene> extends fc.Arbitrary<infer S> ? S : never): World {
  let delayed = 0;
  const world = new World(
    its,
    queues,
    [100_000, ...skews.map((skew) => 100_000 + skew)],
    () => delays[delayed++ % delays.length] as number,
  );
  return continued(world, steps);
}

function continued(world: World, steps: readonly Step[]): World {
  for (const { kind, queue: which, n } of steps) {
    const queue = world.get(which);
    if (kind === 'add') queue.waiting += n;
    else if (kind === 'end') queue.running = Math.max(0, queue.running - n);
    else if (kind === 'pass') world.pass(n);
    else if (kind === 'evict') queue.evict();
    else if (kind === 'evictDesk') world.desk.evict();
    else if (kind === 'setBack') queue.setBack(n, world.time);
    else {
      queue.holder.needs = queue.waiting > 0;
      world.ask(queue, kind === 'loseRequest' ? { request: true } : { answer: true });
    }
    queue.work(world.time);
    world.ask(queue);
  }
  return world;
}

const moved = (kind: Step['kind'], queue: number, n: number) => ({ kind, queue, n }) as Step;

/** Two queues run more than the lowered limit when a third one asks for its share: neither may start on that. */
const RECALLED: [Parameters<typeof play>[0], Limits, boolean, Step[]] = [
  {
    ...{ limits: { throttle: { limit: 1, period_ms: 100 } }, queues: 3, skews: [0, 0, 0, 0, 0], delays: [0] },
    steps: [moved('add', 1, 8), moved('add', 0, 1), moved('pass', 0, 1), moved('add', 0, 1)],
  },
  { concurrency: 3 },
  false,
  [
    ...[moved('add', 0, 1), moved('pass', 0, 1_001), moved('end', 1, 4), moved('pass', 0, 1), moved('pass', 0, 1)],
    ...[moved('add', 0, 1), moved('add', 0, 1), moved('add', 0, 1)],
  ],
];

/** The clock of a queue that has the turn of a throttle is set back a while after its last start. */
const SET_BACK: typeof RECALLED = [
  {
    limits: { rate: { limit: 2, period_ms: 100 }, throttle: { limit: 1, period_ms: 158 } },
    ...{ queues: 3, skews: [0, 0, 0, 0, 0], delays: [0] },
    steps: [
      ...[moved('add', 2, 2), moved('pass', 0, 93), moved('setBack', 2, 93), moved('add', 0, 1)],
      moved('pass', 0, 320),
    ],
  },
  {},
  true,
  [],
];

describe('an allowance that queues share', () => {
  it('is never exceeded, at any moment and in any period, whatever is lost', () => {
    fc.assert(
      fc.property(scene(1_500), (given) => {
        play(given).pass(30_000);
      }),
      { numRuns: RUNS },
    );
  });

  it('keeps limits that a job of any queue changes, once the term of what the others know is over', () => {
    fc.assert(
      fc.property(
        scene(100),
        limits,
        fc.boolean(),
        fc.array(step, { minLength: 10, maxLength: 60 }),
        (given, later, wasLimited, steps) => {
          const world = play({ ...given, limits: wasLimited ? given.limits : {} });
          world.change(world.get(0), later, 100);
          continued(
            world,
            steps.filter(({ kind }) => kind === 'add' || kind === 'end' || kind === 'pass'),
          );
          world.pass(60_000);
          for (const queue of world.queues) queue.waiting += 10;
          continued(
            world,
            steps.filter(({ kind }) => kind !== 'setBack'),
          );
          world.pass(60_000);
        },
      ),
      { numRuns: RUNS, examples: [RECALLED, SET_BACK] },
    );
  });

  it('starves no queue: every job runs, and afterwards all of it is there for one queue', () => {
    fc.assert(
      fc.property(scene(100), (given) => {
        const world = play(given);
        const slowest = Math.max(
          given.limits.rate?.period_ms ?? 0,
          given.limits.throttle ? given.limits.throttle.period_ms / given.limits.throttle.limit : 0,
        );
        const left = () => world.queues.some(({ waiting }) => waiting > 0);
        for (let round = 0; left() && round < 600; round++) {
          world.pass(Math.max(2_000, slowest * 2));
          world.endAll();
        }
        expect(world.queues.map(({ waiting }) => waiting)).toEqual(world.queues.map(() => 0));
        world.endAll();
        world.pass(90_000 + slowest * 2);
        const [only] = world.queues as [Queue];
        const all = Math.min(given.limits.concurrency ?? Number.POSITIVE_INFINITY, given.limits.rate?.limit ?? 3);
        only.waiting = all;
        world.settle(only);
        world.pass(200_000 + slowest * 2 * (given.limits.throttle ? all * 3 : 2));
        expect(only.waiting).toBe(0);
      }),
      { numRuns: RUNS / 5 },
    );
  });
});
