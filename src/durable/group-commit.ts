/**
 * Group commit: operations that arrive together share one transaction and its flush; a lone one is written at once.
 * Each runs in a savepoint, so a refused one spares its neighbours. Consequences (events, wake, waiting workers)
 * follow the commit in the same turn, and what they write becomes durable with it.
 *
 * If the transaction fails, memory is rebuilt from storage and every caller gets the error. Work per transaction is
 * bounded.
 */
import { unavailable } from '../job/errors';
import type { AlarmClock } from './alarm-clock';
import { Timers } from './timers';
import { waitAtMost } from './wait';

/** Maximum wait for operations that share a transaction, ms: durability may take far longer. */
const LONGEST_GATHERING_MS = 1;

/** Work of one transaction, in characters of rows; further operations wait, in order, so no turn takes long. */
const MAX_WORK = 8 * 1024 * 1024;

/** Every operation counts as this much work, whatever it touches. */
const OPERATION_WORK = 512;

export interface Memory {
  /** The earliest due moment of what the running transaction wrote, epoch ms. */
  readonly wanted: number;
  /** Rises with every change that the running transaction makes to it. */
  readonly changes: number;
  /** Characters of rows read and written (approximate), and writing statements of operations. Both rise. */
  readonly written: { readonly work: number; readonly writes: number };
  /** Rebuilds everything from storage. */
  load(): void;
  /** Notes what the running transaction has gathered up to now. */
  mark(): Undo;
  /** Writes what was gathered. The last thing in a transaction. */
  flush(): void;
  /** The transaction is committed: what it gathered becomes visible. */
  publish(): void;
  /** Writes what the turn has left, in its own transaction. If that fails, nothing stays and every caller fails. */
  finish(): void;
}

/** Goes back to what a transaction had gathered: what came after was rolled back. */
export interface Undo {
  /** Drops what was to be written, which {@link Memory.load} must know. Reads nothing. */
  gathered(): void;
  /** Forgets the rest, once memory was rebuilt if necessary. */
  rest(): void;
}

/** The object's own work inside a transaction. It is undone alone when it fails. */
export interface TransactionStep {
  run(now: number): void;
  failed(error: unknown): void;
}

export interface CommitHooks {
  /** Epoch ms. */
  now(): number;
  /** Runs first in every transaction: what is due is treated as due. */
  before(now: number): void;
  /** The object's own work, before the operations of a transaction and after them. */
  steps(now: number, when: 'before' | 'after'): readonly TransactionStep[];
  /** Runs after each operation and each step, as a part of it. */
  follow(now: number): void;
  /** Runs after every commit, in the same turn. */
  committed(): void;
}

interface Waiting {
  run: (now: number) => unknown;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

export class Committer {
  private waiting: Waiting[] = [];
  /** Waiting operations will be written soon. */
  private gathering = false;
  private closed = false;
  /** Until what was committed last is durable. */
  private settling: Promise<void> | undefined;
  /** Memory may differ from storage: it must be rebuilt before anything else. */
  private stale = false;
  /** The work after a commit is running. */
  private following = false;
  /** Its own: each ring looks at all that wait. */
  private readonly timers = new Timers(() => this.hooks.now());

  constructor(
    private readonly storage: Pick<DurableObjectStorage, 'transactionSync' | 'sync'>,
    private readonly clock: AlarmClock,
    private readonly memory: Memory,
    private readonly hooks: CommitHooks,
  ) {}

  /** Must memory be rebuilt before it is read? The next transaction does that. */
  get isStale(): boolean {
    return this.stale;
  }

  /** The object was emptied: operations that were still under way are refused. */
  close(): void {
    this.closed = true;
  }

  /** Runs an operation in the next shared transaction. Rejects with what the operation threw. */
  run<T>(operation: (now: number) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.waiting.push({ run: operation, resolve: resolve as (value: unknown) => void, reject });
      this.gather();
    });
  }

  private gather(): void {
    if (this.gathering || this.waiting.length === 0) return;
    this.gathering = true;
    void this.flushSoon();
  }

  runNow<T>(operation: (now: number) => T): T {
    let outcome: { value: T } | { error: unknown } | undefined;
    const waiting: Waiting = {
      run: operation,
      resolve: (value) => {
        outcome = { value: value as T };
      },
      reject: (error) => {
        outcome = { error };
      },
    };
    // In a savepoint: what is due must be done although the alarm's own operation fails.
    this.transact([waiting]);
    if (!outcome || 'error' in outcome) throw outcome?.error ?? new Error('The operation did not run.');
    return outcome.value;
  }

  private async flushSoon(): Promise<void> {
    if (this.settling) await waitAtMost(this.timers.after, LONGEST_GATHERING_MS, this.settling);
    // What the same turn must write belongs together, too.
    else await undefined;
    const batch = this.waiting;
    this.waiting = [];
    this.gathering = false;
    try {
      this.transact(batch, batch.length === 1);
    } finally {
      this.settle();
      // The operations that did not fit into the transaction.
      this.gather();
    }
  }

  private settle(): void {
    const settled = (): void => {
      if (this.settling === settling) this.settling = undefined;
    };
    const settling = this.storage.sync().then(settled, settled);
    this.settling = settling;
  }

  /** @param batch what does not fit waits for the next transaction, before all others @param isAlone one request's */
  private transact(batch: Waiting[], isAlone = false): void {
    const { memory, storage } = this;
    if (this.closed) {
      for (const { reject } of batch) reject(unavailable('The queue was emptied; try again.'));
      return;
    }
    const answers: (() => void)[] = [];
    const armed = this.clock.armedAt;
    const undo = memory.mark();
    try {
      storage.transactionSync(() => {
        if (this.stale) this.rebuild();
        const now = this.hooks.now();
        this.hooks.before(now);
        this.doSteps('before', now);
        let most = memory.written.work + MAX_WORK;
        for (const [index, { run, resolve, reject }] of batch.entries()) {
          if (index > 0 && memory.written.work > most) {
            this.waiting.unshift(...batch.splice(index));
            break;
          }
          const act = () => this.followed(run, now);
          const outcome = isAlone ? this.attemptAlone(act) : this.attempt(act, isRefusal);
          answers.push(() => ('error' in outcome ? reject(outcome.error) : resolve(outcome.value)));
          most -= OPERATION_WORK;
        }
        this.doSteps('after', now);
        memory.flush();
        if (Number.isFinite(memory.wanted)) this.clock.mustArm(memory.wanted, now);
      });
    } catch (error) {
      undo.gathered();
      undo.rest();
      this.clock.restore(armed);
      this.rebuildIfPossible();
      for (const { reject } of batch) reject(error);
      return;
    }
    memory.publish();
    const failed = this.follow();
    try {
      // It becomes durable together with what has followed: it is one turn of the object.
      if (!this.following) memory.finish();
    } catch (error) {
      undo.gathered();
      this.rebuildIfPossible();
      for (const { reject } of batch) reject(error);
      return;
    }
    for (const answer of answers) answer();
    if (failed) throw failed.error;
  }

  /** Does the work after a commit. @returns what it threw, for after the answers */
  private follow(): { error: unknown } | undefined {
    const { following } = this;
    this.following = true;
    try {
      this.hooks.committed();
      return undefined;
    } catch (error) {
      return { error };
    } finally {
      this.following = following;
    }
  }

  private doSteps(when: 'before' | 'after', now: number): void {
    for (const { run, failed } of this.hooks.steps(now, when)) {
      const outcome = this.attempt(() => this.followed(run, now));
      if ('error' in outcome) failed(outcome.error);
    }
  }

  private followed<T>(run: (now: number) => T, now: number): T {
    const value = run(now);
    this.hooks.follow(now);
    return value;
  }

  /**
   * Runs something in a savepoint; a failure leaves nothing behind, in storage or memory.
   * @param changesNothing errors that usually precede changes: memory is rebuilt only if there was one
   */
  attempt(
    run: () => unknown,
    changesNothing: (error: unknown) => boolean = () => false,
  ): { value: unknown } | { error: unknown } {
    const undo = this.memory.mark();
    const { changes } = this.memory;
    try {
      return { value: this.storage.transactionSync(run) };
    } catch (error) {
      undo.gathered();
      if (!changesNothing(error) || this.memory.changes !== changes) this.rebuild();
      undo.rest();
      return { error };
    }
  }

  /**
   * As {@link attempt} for the only operation of a transaction, without the savepoint (3 % of a lone enqueue).
   * @throws what it threw after a change: the transaction is undone, and what was due follows in the next
   */
  private attemptAlone(run: () => unknown): { value: unknown } | { error: unknown } {
    const { memory } = this;
    const undo = memory.mark();
    const { changes } = memory;
    const { writes } = memory.written;
    try {
      return { value: run() };
    } catch (error) {
      if (!isRefusal(error) || memory.changes !== changes || memory.written.writes !== writes) throw error;
      undo.gathered();
      undo.rest();
      return { error };
    }
  }

  private rebuild(): void {
    this.stale = true;
    this.memory.load();
    this.stale = false;
  }

  /** Waiting callers get their answers even if storage cannot be read now. */
  private rebuildIfPossible(): void {
    try {
      this.rebuild();
    } catch (error) {
      console.error('tocsin: the object could not be reloaded yet', error);
    }
  }
}

const isRefusal = (error: unknown): boolean => error instanceof Error && error.name === 'ApiError';
