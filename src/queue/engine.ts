/**
 * The engine of one opened queue: transactions, the wake, waiting workers and the pump around the queue's state.
 *
 * Time is a comparison: every transaction first treats what is due as due ({@link QueueEngine.write}), so nothing depends
 * on the alarm being on time. The alarm only makes happen what nobody asks for: it claims, starts deliveries, arms the
 * next wake and returns, and never throws. An alarm that was lost is armed again whenever the queue is touched.
 */

import type { Reservations } from '../across/reservation';
import { ownsQueue, type TargetConfig, takesFrom, targetFor } from '../dispatch/config';
import type { StoppedTarget } from '../dispatch/health';
import { type AlarmClock, planWake } from '../durable/alarm-clock';
import { readMeta } from '../durable/meta';
import { ApiError, type Outcome, unwrap } from '../job/errors';
import type { JobView, NewJob } from '../job/record';
import type { EnqueuedJob, QueueApi } from '../rpc/queue';
import type { ClaimRequest } from '../rpc/workers';
import { Committer } from './commit';
import { OperationDuties } from './features/bulk/duties';
import { CronDuties } from './features/cron/duties';
import { nextPrune, prune } from './features/lifecycle/prune';
import { rescueOverdue } from './features/lifecycle/rescue';
import { Waiters } from './features/pull/waiters';
import { Pump } from './features/push/pump';
import { abortBatch, commitBatch, confirmBatch, dueBatches, nextBatchCheck } from './features/shares/batch';
import { type NotifierHost, WorkflowNotifier } from './features/workflow/notify';
import { claim } from './jobs/claim';
import { expireDue } from './jobs/expire';
import type { Random } from './jobs/settle';
import { QueueState } from './state';
import { nextDue } from './store/lanes';
import { lookAtDueKeys, seeToTouched } from './store/limits/admit';
import { queueOpensAt } from './store/limits/queue-limit';

/** An armed alarm that is this late has been lost, ms. */
const LOST_AFTER_MS = 5_000;

/** Pause before the alarm is tried again when its work failed, ms. */
const RETRY_ALARM_MS = 1_000;

/** What an engine needs of the object around it. */
export interface EngineHost {
  readonly storage: DurableObjectStorage;
  readonly clock: AlarmClock;
  readonly config: { retryVariables: Record<string, string | undefined>; targets: readonly TargetConfig[] };
  readonly random: Random;
  /** Epoch ms. */
  now(): number;
  /** Keeps the object alive until the promise settles. */
  keepAlive(promise: Promise<unknown>): void;
  /** Another queue's object, to finish what concerns several queues. */
  peer(queue: string): Pick<QueueApi, 'batchDecision' | 'commitBatch' | 'putCron' | 'adopt' | 'adoptMoved'>;
  /** Begins to reserve unique fingerprints. @param coordinator the queue that can give its ticket up */
  reservations(coordinator: string): Reservations;
  /** The object of a workflow. */
  workflow: NotifierHost['workflow'];
  /** Leaves the directory and empties the object, for good. @param at when the deletion began, epoch ms */
  destroy(at: number): Promise<void>;
  /** Enqueues a job into this queue whose unique policy looks across queues. */
  enqueueAcross(job: NewJob): Promise<Outcome<EnqueuedJob>>;
}

export class QueueEngine {
  readonly q: QueueState;
  private readonly committer: Committer;
  private readonly pump: Pump;
  private readonly waiters = new Waiters();
  private readonly crons: CronDuties;
  private readonly workflows: WorkflowNotifier;
  readonly operations: OperationDuties;

  /** Opens a queue whose tables, name and route are stored. */
  constructor(private readonly host: EngineHost) {
    const { storage, config, random, clock } = host;
    this.q = QueueState.open(storage.sql, config.retryVariables);
    this.q.isPushed = (type) =>
      targetFor(config.targets, this.q.name, type) !== undefined || ownsQueue(config.targets, this.q.name);
    this.q.pushesAny = config.targets.some((target) => takesFrom(target, this.q.name));
    this.committer = new Committer(storage, clock, this.q, {
      now: () => host.now(),
      tidy: (q, now) => {
        rescueOverdue(q, now, random);
        expireDue(q, now);
        lookAtDueKeys(q, now);
        seeToTouched(q, now);
      },
      follow: (q, now) => seeToTouched(q, now),
      chores: (q, now, when) => this.crons.chores(q, now, when),
      workArrived: () => {
        this.pump.start();
        this.waiters.notify();
      },
      committed: () => {
        this.crons.askOthers();
        this.workflows.start();
      },
    });
    this.workflows = new WorkflowNotifier({
      q: this.q,
      now: () => host.now(),
      keepAlive: (promise) => host.keepAlive(promise),
      write: (operation) => this.committer.run(operation),
      wakeAt: (at) => clock.arm(at, host.now()),
      workflow: (id) => host.workflow(id),
    });
    this.crons = new CronDuties({
      q: this.q,
      now: () => host.now(),
      keepAlive: (promise) => host.keepAlive(promise),
      write: (operation) => this.committer.run(operation),
      wakeAt: (at) => clock.arm(at, host.now()),
      enqueueAcross: (job) => host.enqueueAcross(job),
      peer: (queue) => host.peer(queue),
    });
    this.operations = new OperationDuties({
      q: this.q,
      now: () => host.now(),
      keepAlive: (promise) => host.keepAlive(promise),
      write: (operation) => this.committer.run(operation),
      wakeAt: (at) => clock.arm(at, host.now()),
      peer: (queue) => host.peer(queue),
      reservations: (coordinator) => host.reservations(coordinator),
      destroy: (at) => host.destroy(at),
    });
    this.pump = new Pump(
      {
        q: this.q,
        targets: config.targets,
        random,
        now: () => host.now(),
        write: (operation) => this.committer.run(operation),
        writeNow: (operation) => this.committer.runNow(operation),
        keepAlive: (promise) => host.keepAlive(promise),
        wakeAt: (at) => clock.arm(at, host.now()),
      },
      (readMeta(storage.sql).get('stopped') as StoppedTarget[] | undefined) ?? [],
    );
  }

  /** Runs a writing operation in the next shared transaction. A refusal comes back as data, a defect rejects. */
  async write<T>(operation: (now: number) => T): Promise<Outcome<T>> {
    this.watch();
    this.pump.beginEvent();
    try {
      const value = await this.committer.run(operation);
      this.pump.capacityFreed();
      return { ok: true, value };
    } catch (error) {
      if (error instanceof ApiError) return { ok: false, error: error.data };
      throw error;
    }
  }

  /** As {@link write}, at once: in a transaction of its own, or in the one that is open. @throws what the operation throws */
  writeNow<T>(operation: (now: number) => T): T {
    return this.committer.runNow(operation);
  }

  /** The state to read from, with everything due treated as due. */
  tidied(): QueueState {
    const now = this.host.now();
    const { leases, nextExpiry, crons } = this.q;
    if (now >= Math.min(leases.earliest, nextExpiry, crons.nextAt)) this.committer.runNow(() => undefined);
    this.watch();
    return this.q;
  }

  /** An alarm that should have fired long ago has been lost: plans and arms the next one. */
  private watch(): void {
    const armed = this.host.clock.armedAt;
    if (armed !== null && armed + LOST_AFTER_MS < this.host.now()) this.armNext();
  }

  /** Operations that are still on their way are refused from now on: the queue was emptied. */
  close(): void {
    this.committer.close();
  }

  /**
   * A claim that may wait (long poll): in memory, costing no rows, until there is work or the time is up.
   * @param deadline epoch ms
   * @param unwanted asked before each try: is this worker to get no jobs any more?
   */
  async claim(request: ClaimRequest, deadline: number, unwanted = () => false): Promise<Outcome<JobView[]>> {
    for (;;) {
      if (unwanted()) return { ok: true, value: [] };
      const outcome = await this.write((now) => claim(this.q, request, now));
      const now = this.host.now();
      if (!outcome.ok || outcome.value.length > 0 || now >= deadline) return outcome;
      const { q } = this;
      const opens = Math.min(q.limiters.nextCheck, queueOpensAt(q, now) ?? deadline);
      const next = Math.min(nextDue(q, now) ?? deadline, q.leases.earliest, q.crons.nextAt, opens, deadline);
      await this.waiters.wait(Math.max(1, next - now));
    }
  }

  /** Lets waiting workers look again. */
  callWaiters(): void {
    this.waiters.notify();
  }

  /** The alarm has fired. Never throws. */
  alarm(): void {
    const { host } = this;
    host.clock.fired(host.now());
    this.pump.beginEvent();
    this.duty(() =>
      this.committer.runNow((now) => {
        prune(this.q, now);
        if (this.q.leases.trim()) this.q.recordSequence(this.q.nextSequence);
      }),
    );
    this.duty(() => this.pump.start());
    this.duty(() => this.waiters.notify());
    this.duty(() => this.operations.start());
    this.duty(() => this.workflows.start());
    this.duty(() => this.crons.askOthers());
    this.duty(() => this.crons.offerMoved());
    host.keepAlive(
      this.finishBatches().catch((error) => console.error('tocsin: batches could not be looked into', error)),
    );
    this.armNext();
  }

  /** One duty of the alarm. One that fails keeps none of the others from being done, and is tried again soon. */
  private duty(run: () => void): void {
    try {
      run();
    } catch (error) {
      console.error('tocsin: the alarm could not do all its work', error);
      this.tryAgainSoon();
    }
  }

  /** Plans the next wake from all that is stored, and arms the alarm for it. Never throws. */
  armNext(): void {
    const { q, pump, host } = this;
    try {
      const now = host.now();
      const next = planWake({
        job: nextDue(q, now),
        lease: q.leases.earliest,
        expiry: q.nextExpiry,
        prune: this.notBusy(nextPrune(q), now),
        limit: q.limiters.nextCheck,
        batch: nextBatchCheck(q),
        cron: this.crons.nextMoment(now),
        workflow: this.workflows.nextMoment(now),
        operation: this.operations.nextMoment(now),
        target: pump.nextTrial(now),
        push: pump.nextPush(now),
      });
      if (next !== null) host.clock.arm(next, now);
    } catch (error) {
      console.error('tocsin: the next wake could not be planned', error);
      this.tryAgainSoon();
    }
  }

  /** Dead letters that are on their way elsewhere are kept beyond their time, and must not keep the alarm busy. */
  private notBusy(prune: number | undefined, now: number): number | undefined {
    if (prune === undefined || this.q.moves.size === 0) return prune;
    return Math.max(prune, now + RETRY_ALARM_MS);
  }

  private tryAgainSoon(): void {
    const now = this.host.now();
    this.host.clock.forget();
    this.host.clock.arm(now + RETRY_ALARM_MS, now);
  }

  /** Unfinished batches over several queues: asks who decides, tells who has not heard. */
  private async finishBatches(): Promise<void> {
    const { q, committer, host } = this;
    const checkAt = nextBatchCheck(q);
    if (checkAt === undefined || checkAt > host.now()) return;
    const duties = committer.runNow((now) => dueBatches(q, now));
    const finish = async (run: () => Promise<unknown>): Promise<void> => {
      // A queue that cannot be reached now holds up no other batch; this one is looked into again later.
      await run().catch((error) => console.error('tocsin: a batch could not be finished yet', error));
    };
    for (const { batch, coordinator } of duties.ask) {
      await finish(async () => {
        const decision = unwrap(await host.peer(coordinator).batchDecision(batch));
        await committer.run((now) =>
          decision === 'committed' ? commitBatch(q, batch, now) : abortBatch(q, batch, now),
        );
      });
    }
    for (const { batch, queues } of duties.tell) {
      for (const queue of queues) {
        await finish(async () => {
          unwrap(await host.peer(queue).commitBatch(batch));
          await committer.run((now) => confirmBatch(q, batch, [queue], now));
        });
      }
    }
  }
}
