/**
 * What happens inside the transactions of the object: which claims were made, in which order, between which operations. So
 * the model follows each operation of a shared transaction, also one that is undone alone.
 */
import { ApiError } from '../../src/job/errors';
import { decodeId } from '../../src/job/ids';
import type { ModelJob } from './model';
import { pullsOf } from './model-pulls';
import type { Scene } from './scene';

/** Characters of rows after which no other operation begins in a transaction. */
const MAX_WORK = 8 * 1024 * 1024;

/** Loops that one transaction may run, each of which draws on its turn. */
const LOOPS = 32;

type Saved = ReturnType<Scene['model']['save']>;

/** An operation of which the model has to follow what it does. */
export interface Followed {
  /** It is done, in the transaction: what has come of it? */
  done(value: unknown): void;
  /** It has failed after all, and the model is as before. */
  undone?(): void;
}

interface Running {
  followed: Followed | undefined;
  before?: Saved | undefined;
  /** Statements that had been made to fail when it was done. */
  faults: number;
  isUndone: boolean;
  /** It shares this with those in its transaction: one that is undone takes with it those that came after. */
  transaction: { isUndone: boolean };
}

/** A claim as the leases show it. */
interface Lease {
  key: number;
  claim: number;
  /** Which claim has made it: it may write several rows. */
  by: number;
  attempt: number;
  worker: string | undefined;
}

export class Observer {
  /** What the next operation is. */
  next: Followed | undefined;
  /** Claims that the model has not followed yet, in order. */
  private readonly leases = new Map<string, Lease>();
  /** Those of them that were seen in the operation or transaction that goes on: it may be undone. */
  private uncertain: string[] = [];
  /** Statements that had been made to fail when a transaction was last committed. */
  private faults = 0;
  /** Claims that have begun. */
  private claims = 0;
  private running: Running[] = [];
  private transaction = { isUndone: false };
  /** What had been read and written when the transaction began. */
  private workAtStart = 0;
  private atStart: Saved | undefined;
  /** The first thing that the model did not agree with inside an operation. */
  private disagreement: { error: unknown } | undefined;

  /**
   * @param claimed a claim of this worker has taken these jobs
   * @param unknown what an operation is that nobody has announced, by its result
   */
  constructor(
    private readonly scene: Scene,
    private readonly claimed: (worker: string, jobs: readonly ModelJob[]) => void,
    private readonly unknown: (value: unknown) => Followed | undefined,
  ) {}

  /** Looks into what an object writes. */
  watch(): void {
    const { engine } = this.scene.world;
    const write = engine.write.bind(engine);
    this.running = [];
    this.uncertain = [];
    // What the one before has made durable is stored, whether anybody has heard of it or not.
    const { active } = engine.q.store.leases;
    for (const [name, { key, claim }] of this.leases) if (active.get(key)?.claim !== claim) this.leases.delete(name);
    this.look();
    const { pull } = engine.q.store.cursors;
    const scanOf = pull.of.bind(pull);
    // A claim looks for its place first: what is leased from now on is another claim's.
    pull.of = (types, head) => {
      this.look();
      this.claims++;
      return scanOf(types, head);
    };
    engine.write = (operation, about) => {
      const followed = this.next;
      this.next = undefined;
      let running: Running | undefined;
      const written = write((now) => {
        running = this.begin(followed);
        return this.run(() => operation(now), followed, running);
      }, about);
      written.catch(() => this.undo(running));
      return written;
    };
  }

  /** Runs an operation of a step together with others. Rejects when it has failed, unless a statement was made to fail. */
  async together(play: () => void): Promise<void> {
    const { scene } = this;
    this.next = { done: () => undefined };
    const written = scene.world.engine.write(() => {
      const open: Scene['open'] = {};
      scene.open = open;
      try {
        play();
      } finally {
        scene.open = undefined;
      }
      if ('failed' in open) throw open.failed;
    });
    await written.catch(() => undefined);
    this.complain();
  }

  /** @throws what the model did not agree with */
  complain(): void {
    const { disagreement } = this;
    this.disagreement = undefined;
    if (disagreement) throw disagreement.error;
  }

  private run<T>(operation: () => T, followed: Followed | undefined, running: Running): T {
    try {
      const value = operation();
      (followed ?? this.unknown(value))?.done(value);
      running.faults = this.scene.world.faults;
      return value;
    } catch (error) {
      this.forget();
      if (isInjected(error)) this.undo(running);
      else if (!(error instanceof ApiError)) this.disagreement ??= { error };
      throw error;
    }
  }

  private begin(followed: Followed | undefined): Running {
    const { scene } = this;
    const { world, model } = scene;
    const isDoubtful = world.isArmed;
    const isFirst = this.running.length === 0;
    if (isFirst) {
      // What was claimed before stays claimed, if this transaction is undone.
      world.quietly(() => this.follow(this.uncertain));
      this.atStart = isDoubtful ? model.save() : undefined;
      this.transaction = { isUndone: false };
      this.workAtStart = scene.q.store.written.work;
    }
    // Whoever comes after so much waits for the next transaction.
    const work = scene.q.store.written.work - this.workAtStart;
    if (work > MAX_WORK) this.disagreement ??= { error: new Error(`an operation follows ${work} characters of work`) };
    // What was done last has failed in the end, when a statement has since.
    const last = this.running.at(-1);
    if (last && last.faults !== world.faults) {
      this.undo(last);
      this.forget();
    }
    const running: Running = { followed, faults: world.faults, isUndone: false, transaction: this.transaction };
    this.running.push(running);
    world.quietly(() => {
      // What is due is treated as due once in a transaction.
      if (isFirst) scene.tidy();
      this.look();
      this.follow();
      this.uncertain = [];
    });
    if (followed && isDoubtful) running.before = model.save();
    return running;
  }

  private undo(running: Running | undefined): void {
    if (!running || running.isUndone) return;
    running.isUndone = true;
    running.followed?.undone?.();
    // One of which the model follows nothing leaves those that came after it to themselves.
    if (!running.before || running.transaction.isUndone) return;
    Object.assign(this.scene.model, running.before);
    running.transaction.isUndone = true;
  }

  /** A transaction is committed. */
  committed(): void {
    const { used } = this.scene.q.store.turn;
    const { turnChanges, turnLooks, read } = this.scene.q.store.sizes;
    // Each loop may take one more than is left, so that none stands still.
    const isWithin = used.changes <= turnChanges + LOOPS && used.looks <= turnLooks + read;
    if (!isWithin) this.disagreement ??= { error: new Error(`a turn of ${JSON.stringify(used)}`) };
    this.running = [];
    this.atStart = undefined;
    this.forgetUndone();
    this.look();
    this.uncertain = [];
  }

  /** Forgets claims of an operation that was undone alone, which is not told: what it took is free again, or another's. */
  private forgetUndone(): void {
    const { world, q } = this.scene;
    if (world.faults === this.faults) return;
    this.faults = world.faults;
    const { active } = q.store.leases;
    this.uncertain = this.uncertain.filter((name) => {
      const lease = this.leases.get(name);
      const held = lease && active.get(lease.key);
      const isHeld = held?.claim === lease?.claim && held?.workerId === lease?.worker;
      if (!isHeld) this.leases.delete(name);
      return isHeld;
    });
  }

  /** A transaction was undone, with all that was done in it. */
  undone(): void {
    for (const running of this.running) {
      running.isUndone = true;
      running.followed?.undone?.();
    }
    this.running = [];
    this.forget();
    if (this.atStart) Object.assign(this.scene.model, this.atStart);
    this.atStart = undefined;
  }

  /** Claims that were seen are undone. */
  private forget(): void {
    for (const name of this.uncertain) this.leases.delete(name);
    this.uncertain = [];
  }

  /** Notes claims that are new. */
  private look(): void {
    const { q, model } = this.scene;
    const { seen } = pullsOf(model);
    for (const { key, claim, attempt, workerId } of q.store.leases.active.values()) {
      const name = `${key} ${claim}`;
      if (seen.get(key) === claim || this.leases.has(name)) continue;
      this.uncertain.push(name);
      this.leases.set(name, { key, claim, attempt, by: this.claims, worker: workerId });
    }
  }

  /** Is there a claim that the model has not followed? */
  get isBehind(): boolean {
    return this.leases.size > 0;
  }

  /** Lets the model follow the claims that were made. @param besides names of those that may still be undone */
  follow(besides: readonly string[] = []): void {
    const certain = [...this.leases].filter(([name]) => !besides.includes(name));
    if (certain.length === 0) return;
    const { model } = this.scene;
    const all = certain.map(([, lease]) => lease);
    for (const [name] of certain) this.leases.delete(name);
    const byKey = new Map(model.jobs.filter(({ id }) => id !== '').map((job) => [decodeId(job.id).key, job]));
    const jobOf = ({ key }: Lease): ModelJob => {
      const job = byKey.get(key);
      if (!job) throw new Error(`a job runs that nobody knows: ${key}`);
      return job;
    };
    // Those that a step has claimed by itself are known.
    const fresh = all.filter((lease) => {
      pullsOf(model).seen.set(lease.key, lease.claim);
      const job = jobOf(lease);
      return job.state !== 'active' || job.attempt !== lease.attempt || job.lease?.worker !== lease.worker;
    });
    for (const group of Map.groupBy(fresh, ({ by }) => by).values()) {
      this.claimed(String(group[0]?.worker), group.map(jobOf));
    }
  }
}

export function isInjected(error: unknown): boolean {
  return error instanceof Error && error.name === 'InjectedFault';
}
