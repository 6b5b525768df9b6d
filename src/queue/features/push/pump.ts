/**
 * The pump: takes jobs that are due and pushes them to their handlers, while there is capacity.
 *
 *     start ──▶ select and claim (one transaction, one lease per target) ──▶ one call per batch, not awaited
 *       ▲                                                                          │
 *       └────────────── settle every job of the batch (one transaction) ◀──────────┘
 *
 * Everything that makes work or capacity starts it: an enqueue, a settled batch, the alarm, a resumed queue, a larger
 * concurrency. It never awaits a handler, not even for its announcement: each call settles on its own and then starts
 * the pump again. An event may start 30 calls, including those that follow from its own answers. With none left, the
 * alarm continues in an event of its own.
 *
 * No failure of a handler escapes from here: every outcome, even of a call that threw, becomes a settled attempt.
 */
import { ANNOUNCEMENT_TIMEOUT_MS, fetchAnnouncement } from '../../../dispatch/announcement';
import { targetFor } from '../../../dispatch/config';
import type { StoppedTarget } from '../../../dispatch/health';
import { NOT_RUNNING, WORKER_NOT_RUNNING } from '../../../dispatch/target';
import { earliest } from '../../../durable/alarm-clock';
import { STANDBY_MS } from '../../../durable/outbox';
import type { MessageKind } from '../../../durable/outbox-relay';
import { readFact, writeMeta } from '../../../durable/sql';
import type { AnnouncedType } from '../../../job/record';
import type { WaitingFor } from '../../../job/waiting';
import type { TargetView } from '../../../rpc/targets';
import type { Feature, Host } from '../../feature';
import type { Claimed } from '../../jobs/claim';
import type { JobRow } from '../../store/job-row';
import { queueOpensAt } from '../../store/limits/queue-limit';
import { counted } from '../../store/shutdown';
import { childMessages } from './children';
import type { HandledTypes } from './handled-types';
import { forgetGathered, gatheredFor } from './plan';
import { CallRunner, RunningCalls } from './runner';
import { PushSelector } from './select';
import { type PushTarget, viewOf } from './target';
import { waitsForPush } from './waits';

export const CALLS_PER_EVENT = 30;

export class CallBudget {
  constructor(private left = CALLS_PER_EVENT) {}

  get remaining(): number {
    return this.left;
  }

  take(): boolean {
    if (this.left === 0) return false;
    this.left--;
    return true;
  }
}

export class Pump implements Feature {
  private readonly targets: readonly PushTarget[];
  private readonly selector: PushSelector;
  private budget = new CallBudget();
  private pumping = false;
  /** Something happened since the last selection began. */
  private again = false;
  /** Everything that could be pushed was looked at since the last change. */
  private looked = false;
  private full = false;
  /** This event has no calls left, but work for the next one, which the alarm is set for. */
  private spent = false;
  private goingOn = false;
  /** Characters of the bodies of jobs that handlers have not answered. */
  private charsUnderWay = 0;
  private readonly running: RunningCalls;
  private readonly runner: CallRunner;

  readonly messages: readonly MessageKind[];

  constructor(
    private readonly host: Host,
    private readonly handled: HandledTypes,
  ) {
    this.messages = [childMessages(host)];
    this.targets = handled.targets;
    for (const stop of readFact<StoppedTarget[]>(host.q.store.sql, 'stopped') ?? []) {
      this.targets.find(({ id }) => id === stop.name)?.health.restore(stop);
    }
    this.running = new RunningCalls(host);
    this.runner = new CallRunner(host, this.running, {
      noteCall: (target, trouble, now) => this.noteCall(target, trouble, now),
      settled: () => this.pump(),
    });
    this.selector = new PushSelector(host.q, host.targets, this.targets, host.random);
  }

  private get isClosed(): boolean {
    return this.host.q.config.isClosed(this.host.now());
  }

  private get pushes(): boolean {
    return this.targets.length > 0;
  }

  /** A request or an alarm has arrived: it brings a budget of calls of its own. */
  beginEvent(): void {
    this.budget = new CallBudget();
    this.spent = false;
  }

  due(now: number): number | undefined {
    const { shutUntil } = this.host.q.config;
    // A stopped target may be tried again, or asked again about a type of waiting jobs.
    const tries = this.targets
      .flatMap((target) => [target.health.resumesAt(now), target.isAwaited ? target.asksAgainAt(now) : undefined])
      .map((at) => at && Math.max(at, shutUntil));
    return earliest([...tries, this.nextPush(now), this.nextChunk(now), this.running.awakeAt(now)]) ?? undefined;
  }

  workArrived(): void {
    this.pump();
  }

  waitsFor(row: JobRow, now: number): WaitingFor | undefined {
    return waitsForPush(this.host.q, this.handled, row, now);
  }

  views(now: number): TargetView[] {
    return this.targets.map((target) => viewOf(target, now));
  }

  /**
   * Asks the stopped or paused targets of this name for their announcement at once: one that answers gets its jobs
   * again.
   * @returns those targets, as they are afterwards
   */
  async resume(name: string): Promise<TargetView[]> {
    const troubled = this.targets.filter(({ config, health }) => config.name === name && health.trouble);
    const tried = troubled.filter(({ asking }) => !asking && this.budget.take());
    for (const { health } of tried) health.tryNow();
    // A URL announces nothing: its next job is the trial.
    await Promise.all(tried.map((target) => (target.config.isRemote ? this.pump() : this.ask(target))));
    return troubled.map((target) => viewOf(target, this.host.now()));
  }

  start(why: 'commit' | 'alarm'): void {
    if (why === 'alarm') this.pump();
  }

  /**
   * Pushes what can be pushed. Chooses and claims at once, in the turn of whatever made work or room, so that both are
   * flushed together; awaits no handler.
   */
  private pump(): void {
    if (!this.pushes || this.isClosed || this.spent) return;
    this.again = true;
    this.looked = false;
    if (this.pumping) return;
    this.pumping = true;
    try {
      while (this.again && !this.isClosed) this.round();
    } catch (error) {
      console.error('tocsin: pushing was interrupted', error);
      this.host.wakeAt(this.host.now() + STANDBY_MS);
    } finally {
      this.pumping = false;
    }
  }

  /** An attempt ended other than by the answer to its delivery: a waiting one may take its place. */
  capacityFreed(): void {
    if (this.full) this.pump();
  }

  /**
   * When to look for work if nothing else happens before: at once while waiting jobs were not looked at. Jobs that wait
   * for capacity need no wake; they follow the end of a lease.
   */
  private nextPush(now: number): number | undefined {
    if (!this.pushes || this.host.q.config.paused) return undefined;
    if (this.isClosed) return this.nextPushAfter(this.host.q.config.shutUntil);
    if (this.targets.some(({ asking }) => asking)) return now + ANNOUNCEMENT_TIMEOUT_MS + STANDBY_MS;
    const opensAt = queueOpensAt(this.host.q, now);
    if (opensAt !== undefined) return this.selector.hasTakeable(now) ? opensAt : undefined;
    if (this.spent) return now;
    return this.looked || !this.selector.hasTakeable(now) ? undefined : now;
  }

  /**
   * The end of the maintenance, if there may be work then: running jobs may leave room, and announcements can be asked
   * for. Jobs that become due later do not count.
   * @param end epoch ms
   */
  private nextPushAfter(end: number): number | undefined {
    if (end === Number.POSITIVE_INFINITY) return undefined;
    const mayFollow = this.host.q.store.leases.active.size > 0 || this.targets.some(({ isAwaited }) => isAwaited);
    return mayFollow || this.selector.hasTakeable(end) ? end : undefined;
  }

  /** When the next chunk is complete because its oldest job has waited for as long as it may. */
  private nextChunk(now: number): number | undefined {
    const { q } = this.host;
    const moments = this.targets.flatMap((target) => gatheredFor(q, target)?.nextMoment ?? []);
    const next = earliest(moments.filter((at) => at > now));
    return next === null ? undefined : Math.max(next, q.config.shutUntil);
  }

  private round(): void {
    this.again = false;
    const selection = this.host.writeNow((now) => this.selector.select(now, this.budget.remaining, this.charsUnderWay));
    for (const { target, jobs } of selection.calls) {
      this.budget.take();
      target.health.started();
      this.host.keepAlive(this.call(target, jobs));
    }
    for (const target of selection.ask) {
      if (this.budget.take()) this.host.keepAlive(this.ask(target));
      else selection.starved = true;
    }
    this.full = selection.full;
    this.spent = selection.starved && this.budget.remaining === 0;
    if (selection.starved) this.host.wakeAt(this.host.now() + 1);
    if (selection.unfinished) this.goOn();
    this.looked = !selection.starved && !selection.unfinished;
  }

  /** Continues in the next turn, after what arrived meanwhile. The wake is armed in case this object dies before. */
  private goOn(): void {
    this.host.wakeAt(this.host.now() + STANDBY_MS);
    if (this.goingOn) return;
    this.goingOn = true;
    const next = async (): Promise<void> => {
      await scheduler.wait(0);
      this.goingOn = false;
      this.pump();
    };
    this.host.keepAlive(next());
  }

  private async call(target: PushTarget, batch: Claimed[]): Promise<void> {
    const chars = batch.reduce((sum, { row }) => sum + row.body.length, 0);
    this.charsUnderWay += chars;
    this.host.q.store.leases.underWay.add(batch);
    target.openCalls++;
    const mayFollow = await counted(this.runner.run(target, batch));
    target.openCalls--;
    this.charsUnderWay -= chars;
    this.host.q.store.leases.callOver(batch);
    target.health.trialEnded();
    // Where everything was looked at and nothing waits for room or a moment, an ended call brings no work: a selection
    // would be a transaction for nothing, one of the four of a lone job.
    const mayWait = this.full || !this.looked || this.host.q.store.priorities.size > 0;
    if (mayFollow || mayWait || target.isOutdated(this.host.now())) this.pump();
  }

  /** Notes whether the target took the call, and stops or resumes it. Runs inside a transaction. */
  private noteCall(target: PushTarget, trouble: string | undefined, now: number): void {
    const { q } = this.host;
    const deliveryError = trouble !== undefined;
    if (deliveryError || target.health.trouble) this.looked = false;
    const changed = deliveryError ? target.health.failed(now, trouble) : target.health.succeeded();
    if (deliveryError) {
      const resumesAt = target.health.resumesAt(now);
      if (resumesAt !== undefined) q.wake.at(resumesAt);
    }
    if (!changed && !(deliveryError && target.health.isStopped)) return;
    const stopped: StoppedTarget[] = this.targets
      .filter(({ health }) => health.isStopped)
      .map(({ id, health }) => ({ name: id, until: health.resumesAt(now) ?? now, ...health.trouble }));
    writeMeta(q.store.sql, 'stopped', stopped.length > 0 ? stopped : undefined);
    if (changed) {
      const type = deliveryError ? 'queue.push_suspended' : 'queue.push_resumed';
      q.observed.events.add(type, q.name, now, { target: target.config.name });
    }
  }

  /** Asks a target what it takes, and stores the job types' layer of the retry policy if it changed. */
  private async ask(target: PushTarget): Promise<void> {
    const askedAt = this.host.now();
    target.asking = true;
    target.health.started();
    try {
      const announcement = await fetchAnnouncement(target.config, this.host.after);
      await this.host.write((now) => {
        this.noteCall(target, announcement === NOT_RUNNING ? WORKER_NOT_RUNNING : undefined, now);
        if (announcement === NOT_RUNNING) {
          target.forget();
          return;
        }
        const before = target.chunking;
        const again = target.learn(announcement, askedAt, now);
        target.deferred.clear(this.host.q);
        if (target.chunking !== before) forgetGathered(this.host.q, target);
        this.handled.changed();
        if (again !== undefined) this.host.q.wake.at(again);
        this.storeAnnounced();
      });
    } catch (error) {
      console.error('tocsin: an announcement could not be recorded', error);
    } finally {
      target.asking = false;
      target.health.trialEnded();
    }
    this.pump();
  }

  private storeAnnounced(): void {
    const { q } = this.host;
    const merged = new Map<string, AnnouncedType>();
    for (const target of this.targets) {
      const catchAll = target.types.some(({ type }) => type === '*');
      for (const entry of target.types) {
        const says = entry.retry || entry.timeout_ms || entry.max_attempts !== undefined || entry.concurrency;
        const isForeign = entry.type !== '*' && targetFor(this.host.targets, q.name, entry.type) !== target.config;
        // A type without settings still gets an entry, so that those of a catch-all do not apply to it.
        if (!isForeign && (says || catchAll)) merged.set(entry.type, entry);
      }
    }
    // A target that has not answered yet keeps what was stored of it.
    if (!this.targets.every(({ isCertain }) => isCertain)) {
      for (const [type, entry] of q.config.announced.pushed) if (!merged.has(type)) merged.set(type, entry);
    }
    q.config.announced.setPushed(merged);
  }
}
