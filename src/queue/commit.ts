/**
 * Group commit: operations that arrive together share one transaction and its flush.
 *
 * Each operation runs in a savepoint of its own, so one that is refused changes nothing and spares its neighbours. What an
 * operation wants to happen afterwards (events, a wake, calling waiting workers) happens once the transaction is committed.
 * If the transaction itself fails, memory is rebuilt from storage and every caller gets the error: nobody was told of a
 * success that is not there.
 */

import type { AlarmClock } from '../durable/alarm-clock';
import { unavailable } from '../job/errors';
import type { QueueState } from './state';

/** Reads the clock, epoch ms. */
export type Now = () => number;

export interface CommitHooks {
  now: Now;
  /** Runs first in every transaction: what is due is treated as due. */
  tidy: (q: QueueState, now: number) => void;
  /**
   * What the queue itself has to do, before the operations of a transaction and after them. Each chore is undone alone when
   * it fails, and reports its failure itself.
   */
  chores: (q: QueueState, now: number, when: 'before' | 'after') => Chore[];
  /** Runs after each operation and each chore, as a part of it. */
  follow: (q: QueueState, now: number) => void;
  /** Runs after a commit that made jobs available. */
  workArrived: () => void;
  /** Runs after every commit. */
  committed: () => void;
}

/** Something that a queue does of itself. */
export interface Chore {
  run: (now: number) => void;
  failed: (error: unknown) => void;
}

interface Waiting {
  run: (now: number) => unknown;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

export class Committer {
  private waiting: Waiting[] = [];
  private closed = false;
  /** Memory may differ from storage: it has to be rebuilt before anything else. */
  private stale = false;

  constructor(
    private readonly storage: DurableObjectStorage,
    private readonly clock: AlarmClock,
    private readonly q: QueueState,
    private readonly hooks: CommitHooks,
  ) {}

  /** The queue was emptied: operations that were still on their way are refused. */
  close(): void {
    this.closed = true;
  }

  /** Runs an operation in the next shared transaction. Rejects with what the operation threw. */
  run<T>(operation: (now: number) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.waiting.push({ run: operation, resolve: resolve as (value: unknown) => void, reject });
      if (this.waiting.length === 1) void this.flushSoon();
    });
  }

  /** Runs an operation in a transaction of its own, at once. */
  runNow<T>(operation: (now: number) => T): T {
    let outcome: { value: T } | { error: unknown } | undefined;
    this.transact([
      {
        run: operation,
        resolve: (value) => {
          outcome = { value: value as T };
        },
        reject: (error) => {
          outcome = { error };
        },
      },
    ]);
    if (!outcome || 'error' in outcome) throw outcome?.error ?? new Error('The operation did not run.');
    return outcome.value;
  }

  private async flushSoon(): Promise<void> {
    // Lets requests that have arrived already add their operations.
    await scheduler.wait(0);
    const batch = this.waiting;
    this.waiting = [];
    this.transact(batch);
  }

  private transact(batch: Waiting[]): void {
    const { q, storage } = this;
    if (this.closed) {
      for (const { reject } of batch) reject(unavailable('The queue was emptied; try again.'));
      return;
    }
    const settled: (() => void)[] = [];
    const armed = this.clock.armedAt;
    try {
      storage.transactionSync(() => {
        if (this.stale) this.rebuild();
        const now = this.hooks.now();
        this.hooks.tidy(q, now);
        this.doChores('before', now);
        for (const { run, resolve, reject } of batch) {
          // Rules are checked before anything is written, so only a defect can leave memory out of step.
          const outcome = this.attempt(run, now, isRefusal);
          settled.push(() => ('error' in outcome ? reject(outcome.error) : resolve(outcome.value)));
        }
        this.doChores('after', now);
        q.archive.flush();
        q.limiters.flush();
        q.workflows.flush();
        if (Number.isFinite(q.wanted)) this.clock.arm(q.wanted, now);
      });
    } catch (error) {
      q.events.rollback();
      q.archive.rollback(0);
      q.workflows.rollback(0);
      this.clock.restore(armed);
      this.rebuildIfPossible();
      for (const { reject } of batch) reject(error);
      return;
    }
    q.wanted = Number.POSITIVE_INFINITY;
    const { workArrived } = q;
    q.workArrived = false;
    q.events.publish();
    for (const settle of settled) settle();
    if (workArrived) this.hooks.workArrived();
    this.hooks.committed();
  }

  private doChores(when: 'before' | 'after', now: number): void {
    for (const { run, failed } of this.hooks.chores(this.q, now, when)) {
      const outcome = this.attempt(run, now, () => false);
      if ('error' in outcome) failed(outcome.error);
    }
  }

  /**
   * Runs something in a savepoint. What fails leaves nothing behind, in storage or in memory: what follows in this
   * transaction must not build on it.
   * @param wroteNothing errors of which it is known that memory is as it was
   */
  private attempt(
    run: (now: number) => unknown,
    now: number,
    wroteNothing: (error: unknown) => boolean,
  ): { value: unknown } | { error: unknown } {
    const { q, storage } = this;
    const before = {
      events: q.events.pendingCount,
      archived: q.archive.size,
      owed: q.workflows.size,
      wanted: q.wanted,
      workArrived: q.workArrived,
    };
    try {
      return {
        value: storage.transactionSync(() => {
          const value = run(now);
          this.hooks.follow(q, now);
          return value;
        }),
      };
    } catch (error) {
      q.events.rollback(before.events);
      q.archive.rollback(before.archived);
      q.workflows.rollback(before.owed);
      if (!wroteNothing(error)) this.rebuild();
      q.wanted = before.wanted;
      q.workArrived = before.workArrived;
      return { error };
    }
  }

  private rebuild(): void {
    this.stale = true;
    this.q.load();
    this.stale = false;
  }

  /** Whoever waits for an answer gets it even when storage cannot be read now. */
  private rebuildIfPossible(): void {
    try {
      this.rebuild();
    } catch (error) {
      console.error('tocsin: the queue could not be read again yet', error);
    }
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof Error && error.name === 'ApiError';
}
