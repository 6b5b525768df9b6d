/**
 * The engine of an opened queue: its state, transactions and features. Every transaction first treats what is due as
 * due, so nothing depends on the alarm being on time. The alarm never throws, and a lost one is armed again whenever
 * the queue is touched.
 */
import { noticeMessages } from '../across/feed/notices';
import type { TargetConfig } from '../dispatch/config';
import { type AlarmClock, earliest } from '../durable/alarm-clock';
import { type CommitHooks, Committer, type TransactionStep } from '../durable/group-commit';
import { OutboxRelay } from '../durable/outbox-relay';
import { waitAtMost } from '../durable/wait';
import { ApiError, type Outcome, unavailable } from '../job/errors';
import type { WaitingFor } from '../job/waiting';
import type { TargetView } from '../rpc/targets';
import type { About, Feature, Host } from './feature';
import { AlertWatch } from './features/alerts/feature';
import { Analytics, type Dataset } from './features/analytics/feature';
import { BulkOperations } from './features/bulk/feature';
import { Children } from './features/children/feature';
import { CronFeature } from './features/cron/feature';
import { Overdue } from './features/lifecycle/overdue';
import { pruning } from './features/lifecycle/prune';
import { QueueRemoval } from './features/lifecycle/remove';
import { damageWatch, StorageWatch } from './features/lifecycle/storage';
import { LimitsFeature } from './features/limits/feature';
import { Pulling } from './features/pull/feature';
import { HandledTypes } from './features/push/handled-types';
import { Pump } from './features/push/pump';
import { Readers } from './features/readings/feature';
import { Batches } from './features/shares/batch';
import { Moves } from './features/transfer/moves';
import { endingMessages } from './features/workflow/steps';
import { waitingFor } from './jobs/waiting';
import type { Others } from './others';
import type { JobRow } from './store/job-row';
import { QueueMemory } from './store/memory';

/** An armed alarm that is this late has been lost, ms. */
const LOST_AFTER_MS = 5_000;

/** A reader of the whole queue waits at most this long until overdue jobs are ended, ms. */
const CATCH_UP_MS = 5_000;

/** A claim that found nothing waits at most this long for the answers of desks, ms. */
const DESKS_WITHIN_MS = 2_000;

/** Pause before the alarm is tried again when its work failed, ms. */
const RETRY_ALARM_MS = 1_000;

/** What features do in every transaction or after it. */
const HOOKS = ['before', 'steps', 'follow', 'workArrived', 'start'] as const;

/** The features that have each of these, in their order: a transaction asks no others. */
type Hooked = { readonly [K in (typeof HOOKS)[number]]: readonly (Feature & Required<Pick<Feature, K>>)[] };

const hookedOf = (features: readonly Feature[]): Hooked =>
  Object.fromEntries(HOOKS.map((hook) => [hook, features.filter((feature) => feature[hook])])) as unknown as Hooked;

const NO_STEPS: readonly TransactionStep[] = [];

export interface EngineHost extends Pick<Host, 'random' | 'now' | 'keepAlive' | 'after'> {
  readonly storage: DurableObjectStorage;
  readonly clock: AlarmClock;
  readonly config: {
    retryVariables: Record<string, string | undefined>;
    targets: readonly TargetConfig[];
    maxStorageBytes?: number;
    longestPauseMs?: number;
  };
  readonly others: Others;
  readonly analytics?: Dataset | undefined;
}

export class QueueEngine {
  readonly q: QueueMemory<HandledTypes>;
  private readonly committer: Committer;
  private readonly features: readonly Feature[];
  private readonly hooked: Hooked;
  /** The work after a commit is running. */
  private following = false;
  private readonly overdue: Overdue;
  private readonly push: Pump;
  private readonly limits: LimitsFeature;
  readonly pull: Pulling;
  readonly bulk: BulkOperations;
  readonly moves: Moves;
  readonly batches: Batches;
  readonly removal: QueueRemoval;
  readonly readers: Readers;
  readonly around: Host;
  readonly relay: OutboxRelay;

  /** Opens a queue whose tables, name and route are stored. */
  constructor(private readonly host: EngineHost) {
    const { storage, config, clock } = host;
    const handlers = (name: string) => new HandledTypes(name, config.targets, config.longestPauseMs);
    const q = new QueueMemory({ storage, variables: config, handlers, isAwaited: () => this.pull.isAwaited });
    const committer = new Committer(storage, clock, q, this.hooks());
    this.q = q;
    this.committer = committer;
    const around: Host = {
      q,
      targets: config.targets,
      random: host.random,
      now: () => host.now(),
      keepAlive: (promise) => host.keepAlive(promise),
      after: host.after,
      write: (operation) => committer.run(operation),
      writeNow: (operation) => committer.runNow(operation),
      apart: (run) => {
        const outcome = committer.attempt(run);
        return 'error' in outcome ? outcome : undefined;
      },
      request: (operation) => this.write(operation),
      wakeAt: (at) => clock.arm(at, host.now()),
      wakesAt: () => clock.armedAt,
      overdueAt: () => this.overdueAt(),
      following: () => this.following,
      about: (jobs) => this.overdue.about(jobs),
      others: host.others,
      relay: () => this.relay,
    };
    this.around = around;
    this.overdue = new Overdue(around);
    this.push = new Pump(around, q.handlers);
    this.pull = new Pulling(around);
    this.limits = new LimitsFeature(around);
    this.bulk = new BulkOperations(around);
    this.moves = new Moves(around);
    this.batches = new Batches(around);
    this.removal = new QueueRemoval(around);
    this.readers = new Readers(around);
    const features: Feature[] = [
      this.overdue,
      this.limits,
      new CronFeature(around),
      new StorageWatch(around),
      pruning(around),
      damageWatch(around),
      this.push,
      this.pull,
      this.moves,
      this.batches,
      this.bulk,
      this.removal,
      { messages: [endingMessages(around)] },
      ...(host.analytics ? [new Analytics(q, host.analytics)] : []),
      { messages: [noticeMessages(q.store.outbox, around.write, (id) => host.others.webhook(id))] },
      new AlertWatch(around),
      this.readers,
      // Last: other features end jobs in a transaction, too.
      new Children(around),
    ];
    this.relay = new OutboxRelay(
      features.flatMap(({ messages = [] }) => messages),
      around,
    );
    this.features = [...features, this.relay];
    this.hooked = hookedOf(this.features);
  }

  private hooks(): CommitHooks {
    return {
      now: () => this.host.now(),
      before: (now) => {
        this.q.store.turn.begin();
        for (const feature of this.hooked.before) feature.before(now);
      },
      steps: (now, when) => {
        let steps: readonly TransactionStep[] = NO_STEPS;
        for (const feature of this.hooked.steps) {
          const own = feature.steps(now, when);
          if (own.length > 0) steps = [...steps, ...own];
        }
        return steps;
      },
      follow: (now) => {
        for (const feature of this.hooked.follow) feature.follow(now);
      },
      committed: () => {
        this.goOn(() => {
          if (this.q.wake.takeArrivals()) this.attempt(this.hooked.workArrived, (feature) => feature.workArrived());
          this.attempt(this.hooked.start, (feature) => feature.start('commit'));
        });
      },
    };
  }

  /**
   * Runs a writing operation in the next shared transaction. A refusal comes back as data, a defect rejects.
   * @param about the jobs that it names, if any
   */
  async write<T>(operation: (now: number) => T, about?: About): Promise<Outcome<T>> {
    this.watch();
    if (about) this.overdue.about(about);
    this.push.beginEvent();
    try {
      const value = await this.committer.run(operation);
      this.push.capacityFreed();
      return { ok: true, value };
    } catch (error) {
      if (error instanceof ApiError) return { ok: false, error: error.data };
      throw error;
    }
  }

  /** As {@link write}, at once: in a transaction of its own, or in the open one. @throws what the operation throws */
  writeNow<T>(operation: (now: number) => T): T {
    return this.committer.runNow(operation);
  }

  /**
   * The state to read from; what is due is treated as due, in a bounded number of steps. @param about the jobs to be
   * read
   */
  tidied(about?: About): QueueMemory {
    if (this.committer.isStale || this.host.now() >= this.overdueAt()) {
      if (about) this.overdue.about(about);
      this.committer.runNow(() => undefined);
    }
    this.watch();
    return this.q;
  }

  /**
   * For readers of the whole queue: waits until everything overdue is ended, taking turns with other requests.
   * @returns why it took too long
   */
  async caughtUp(): Promise<ApiError | undefined> {
    const deadline = this.host.now() + CATCH_UP_MS;
    this.tidied();
    while (this.overdue.isBehind(this.host.now())) {
      await scheduler.wait(0);
      if (this.host.now() >= deadline) return unavailable('Very many expired jobs are being ended; try again.');
      this.tidied();
    }
    return undefined;
  }

  /** Why this job does not run; undefined when it does, or has ended. */
  waitingFor(row: JobRow, now: number): WaitingFor | undefined {
    return waitingFor(this.q, row, now, (ready) => {
      for (const feature of this.features) {
        const found = feature.waitsFor?.(ready, now);
        if (found) return found;
      }
      return undefined;
    });
  }

  targets(): TargetView[] {
    return this.push.views(this.host.now());
  }

  /** Tries the targets of this name that are paused or stopped. */
  resumeTarget(name: string): Promise<TargetView[]> {
    this.push.beginEvent();
    return this.push.resume(name);
  }

  /** When it next has work of its own, epoch ms. An alarm that was lost is armed again. */
  nextDue(): number | null {
    this.armNext();
    return earliest(this.dueMoments(this.host.now()));
  }

  private dueMoments(now: number): (number | undefined)[] {
    return this.features.map((feature) => feature.due?.(now));
  }

  private overdueAt(): number {
    return Math.min(...this.features.map(({ overdueAt = Number.POSITIVE_INFINITY }) => overdueAt));
  }

  /** An alarm that should have fired long ago has been lost: plans and arms the next one. */
  private watch(): void {
    const armed = this.host.clock.armedAt;
    if (armed !== null && armed + LOST_AFTER_MS < this.host.now()) this.armNext();
  }

  /** Waits a moment for desks of shared keys that are being asked. @returns whether any was */
  async desksAnswer(): Promise<boolean> {
    const { leases } = this.limits;
    if (!this.relay.isSending(leases)) return false;
    await waitAtMost(this.host.after, DESKS_WITHIN_MS, this.relay.idle(leases));
    return true;
  }

  close(): void {
    this.relay.close();
    this.committer.close();
  }

  /** The alarm has fired. Never throws. */
  alarm(): void {
    this.host.clock.fired(this.host.now());
    this.push.beginEvent();
    let isDone = this.attempt([this.committer], (committer) =>
      committer.runNow((now) => {
        for (const feature of this.features) feature.tidy?.(now);
      }),
    );
    this.goOn(() => {
      isDone = this.attempt(this.hooked.start, (feature) => feature.start('alarm')) && isDone;
    });
    this.armNext(isDone ? 0 : RETRY_ALARM_MS);
  }

  private goOn(run: () => void): void {
    const { following } = this;
    this.following = true;
    try {
      run();
    } finally {
      this.following = following;
    }
  }

  /**
   * Runs each part; a failure stops no other part, nor the caller, and the alarm tries again soon. @returns none failed
   */
  private attempt<T>(parts: readonly T[], run: (part: T) => void): boolean {
    let isDone = true;
    for (const part of parts) {
      try {
        run(part);
      } catch (error) {
        console.error('tocsin: not all due work could be done', error);
        this.tryAgainSoon();
        isDone = false;
      }
    }
    return isDone;
  }

  /** Arms the alarm for the earliest due moment of a feature. Never throws. @param pause before a retry, ms */
  armNext(pause = 0): void {
    try {
      const now = this.host.now();
      const next = earliest(this.dueMoments(now).map((at) => (at !== undefined && at <= now ? now + pause : at)));
      if (next !== null) this.host.clock.arm(next, now);
    } catch (error) {
      console.error('tocsin: the next alarm could not be set', error);
      this.tryAgainSoon();
    }
  }

  /** Sets the alarm even where one is armed: what failed may have undone that. An earlier moment stays. */
  private tryAgainSoon(): void {
    const { clock } = this.host;
    const now = this.host.now();
    const armed = clock.armedAt ?? Number.POSITIVE_INFINITY;
    clock.forget();
    clock.arm(Math.min(armed, now + RETRY_ALARM_MS), now);
  }
}
