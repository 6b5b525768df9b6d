/**
 * Jobs that handlers enqueue: whom they reach is decided by the simulation, and each must reach its queue once. Those of other
 * queues are only counted; those of the simulated one are jobs like any other.
 */
import type { BatchEntry } from '../../src/across/batch';
import type { Enqueued } from '../../src/across/enqueue-many';
import { ApiError, type ErrorData, type Outcome, unwrap } from '../../src/job/errors';
import type { JobBody } from '../../src/job/record';
import { enqueue } from '../../src/queue/jobs/enqueue';
import type { EnqueuedJob, IdempotencyKey } from '../../src/rpc/receipts';
import { holds } from './agree';
import { expectPlaced } from './jobs';
import type { JobOrder } from './model';
import type { Scene } from './scene';
import { jobRequest, QUEUE } from './wire';
import { InjectedFault } from './world';

/** A job that a handler enqueues. */
export interface ChildOrder {
  /** In its own queue, or elsewhere. */
  here: boolean;
  job: JobOrder;
}

/** What becomes of a request with such jobs: one that is lost was taken, and nobody is told; `full`: one job has no room. */
export type Fate = 'take' | 'lost' | 'refuse' | 'busy' | 'full';

interface Child extends ChildOrder {
  state: 'open' | 'refused' | 'taken';
  /** From when its times count, epoch ms. */
  from: number;
  /** It must be taken or refused in the end: the answer that brought it was. */
  isDue: boolean;
}

/** Why a job is refused for good. */
const REFUSED: ErrorData = { code: 'conflict', status: 409, message: 'no', retryable: false };
const FULL: ErrorData = { code: 'QUEUE_FULL', status: 429, message: 'no room', retryable: true };

/** A request that waits for its fate. */
export interface ChildAsk {
  entries: readonly BatchEntry[];
  key: string | undefined;
  /** Each job is judged alone. */
  isEach: boolean;
  answer(answer: Enqueued): void;
  fail(error: Error): void;
}

export class Children {
  readonly asks: ChildAsk[] = [];
  private readonly known = new Map<string, Child>();
  /** What was answered under a key. */
  private readonly answers = new Map<string, Enqueued>();

  /** The object has died: nobody waits for an answer. */
  forgetAsks(): void {
    this.asks.length = 0;
  }

  /** A request, as the object around the queue would carry it on. @param withheld what keeps the object busy */
  async ask(
    withheld: Set<unknown>,
    entries: readonly BatchEntry[],
    idempotency?: IdempotencyKey,
  ): Promise<EnqueuedJob[]> {
    return (await this.wait(withheld, entries, idempotency?.key, false)).outcomes.map(unwrap);
  }

  /** A request whose jobs are judged one by one. */
  askEach(
    withheld: Set<unknown>,
    entries: readonly Outcome<BatchEntry>[],
    idempotency: IdempotencyKey,
  ): Promise<Enqueued> {
    return this.wait(withheld, entries.map(unwrap), idempotency.key, true);
  }

  private wait(
    withheld: Set<unknown>,
    entries: readonly BatchEntry[],
    key: string | undefined,
    isEach: boolean,
  ): Promise<Enqueued> {
    return new Promise((resolve, reject) => {
      const answered =
        <T>(settle: (value: T) => void) =>
        (value: T) => {
          this.asks.splice(this.asks.indexOf(ask), 1);
          withheld.delete(ask);
          settle(value);
        };
      const ask: ChildAsk = {
        ...{ entries, key, isEach },
        ...{ answer: answered(resolve), fail: answered<Error>(reject) },
      };
      this.asks.push(ask);
      // What is asked over a live line is a part of its call.
      if (key !== undefined) withheld.add(ask);
    });
  }

  /** What a handler writes to enqueue these. @param name tells them from all others */
  written(orders: readonly ChildOrder[], name: string, from: number): object[] {
    return orders.map((order, at) => {
      const label = `${name} ${at}`;
      this.known.set(label, { ...order, state: 'open', from, isDue: false });
      const { options, ...rest } = jobRequest(order.job) as { options: Record<string, unknown>; meta?: object };
      const { meta } = options as { meta: object };
      const queue = order.here ? QUEUE : 'elsewhere';
      return { ...rest, options: { ...options, queue, meta: { ...meta, label } } };
    });
  }

  /** The answer that brought them counts: so do they. */
  due(orders: readonly ChildOrder[], name: string): void {
    for (const at of orders.keys()) (this.known.get(`${name} ${at}`) as Child).isDue = true;
  }

  /** Are some on their way? */
  get areOpen(): boolean {
    return [...this.known.values()].some(({ state, isDue }) => isDue && state === 'open');
  }

  /** A request meets its fate. */
  settle(scene: Scene, ask: ChildAsk, fate: Fate, pick = 0): void {
    const isKnown = this.answers.has(ask.key ?? '');
    if (fate === 'full' && !isKnown && (!ask.isEach || ask.entries.length === 1)) {
      ask.fail(new ApiError(FULL));
    } else if (fate === 'busy') {
      ask.fail(new ApiError({ code: 'unavailable', status: 503, message: 'busy', retryable: true }));
    } else if (fate === 'refuse' && !ask.isEach && !isKnown) {
      const index = pick % ask.entries.length;
      // A message with more jobs is divided, so that it brings the others.
      if (ask.key === undefined || ask.entries.length === 1) this.refuse(ask.entries[index] as BatchEntry);
      ask.fail(new ApiError({ ...REFUSED, details: { index } }));
    } else {
      const [place, error] = [pick % ask.entries.length, { refuse: REFUSED, full: FULL, take: null, lost: null }[fate]];
      const answer = this.take(scene, ask, error ? { place, error } : undefined);
      if (fate !== 'lost') ask.answer(answer);
      else ask.fail(new Error('the answer is lost'));
    }
  }

  /** @param refused the job that is refused alone */
  private take(
    scene: Scene,
    { entries, key, fail }: ChildAsk,
    refused: { place: number; error: ErrorData } | undefined,
  ): Enqueued {
    const earlier = key === undefined ? undefined : this.answers.get(key);
    if (earlier) return { ...earlier, replayed: true };
    const some = entries.filter((_, index) => index !== refused?.place);
    const here = some.filter(({ queue }) => queue === QUEUE);
    try {
      if (here.length > 0) this.enqueueHere(scene, here);
    } catch (error) {
      if (error instanceof InjectedFault) fail(new Error('the queue did not answer'));
      throw error;
    }
    for (const entry of some) {
      const child = this.childOf(entry);
      holds(child.state !== 'taken', () => `a child was enqueued twice: ${this.labelOf(entry)}`);
      child.state = 'taken';
    }
    const outcomes = entries.map((entry, index): Outcome<EnqueuedJob> => {
      if (index !== refused?.place) return { ok: true, value: viewOf(entry.job) };
      if (!refused.error.retryable) this.refuse(entry);
      return { ok: false, error: refused.error };
    });
    const answer = { outcomes, replayed: false };
    if (key !== undefined) this.answers.set(key, answer);
    return answer;
  }

  private refuse(entry: BatchEntry): void {
    const child = this.childOf(entry);
    if (child.state === 'open') child.state = 'refused';
  }

  private enqueueHere(scene: Scene, entries: readonly BatchEntry[]): void {
    const newJobs = entries.map(({ job }) => job);
    const outcome = scene.attempt((now) => enqueue(scene.q, newJobs, now));
    scene.tidy();
    const children = entries.map((entry) => this.childOf(entry));
    const orders = children.map(({ job }) => job);
    expectPlaced(scene, orders, outcome, children[0]?.from);
  }

  private labelOf({ job }: BatchEntry): string {
    return String((JSON.parse(job.body) as JobBody).meta.label);
  }

  private childOf(entry: BatchEntry): Child {
    const child = this.known.get(this.labelOf(entry));
    if (!child) throw new Error(`nobody enqueued ${entry.job.body}`);
    return child;
  }
}

/** A job as another queue would show it. */
function viewOf({ type, priority, body }: BatchEntry['job']): EnqueuedJob {
  const record = { id: '019aaaaa-0000-7000-8000-000000000000', queue: 'elsewhere', type, priority, body };
  const states = { state: 'available', attempt: 0, created_at: 1, enqueued_at: 1, history: {} };
  return { record: { ...record, ...states }, layers: {} } as unknown as EnqueuedJob;
}
