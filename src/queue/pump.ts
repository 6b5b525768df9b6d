/**
 * The pump: takes jobs that are due and pushes them to their handlers, as long as there is capacity.
 *
 *     start ──▶ select and claim (one transaction, one lease per target) ──▶ one call per batch, not awaited
 *       ▲                                                                          │
 *       └────────────── settle every job of the batch (one transaction) ◀──────────┘
 *
 * It is started by whatever makes work or capacity: an enqueue, a settled batch, the alarm, a resumed queue, a larger
 * concurrency. It never awaits a handler: each call settles on its own and then starts the pump again. An event may start
 * 30 calls; with none left the alarm continues in an event of its own.
 *
 * Nothing a handler does escapes from here: every outcome, even of a call that threw, becomes a settled attempt.
 */
import type { DeliveryOutcome } from '../dispatch/answer';
import { ownsQueue, type TargetConfig, takesFrom, targetFor } from '../dispatch/config';
import { type Announcement, type Delivery, deliver, fetchAnnouncement, NOT_RUNNING } from '../dispatch/deliver';
import { type StoppedTarget, TargetHealth } from '../dispatch/health';
import { renderJob } from '../job/envelope/render';
import type { AnnouncedType } from '../job/record';
import { CallBudget } from './budget';
import { type Claimed, grant, passOver } from './claim';
import { expire } from './expire';
import { rowByKey, viewForRunner } from './find';
import { selectReady } from './lanes';
import { LEASE_BEYOND_TIMEOUT_MS } from './rescue';
import { historyOf, type JobRow } from './rows';
import { writeMeta } from './schema';
import { complete, deliveryOf, fail, namesClaim, type Random, undoClaim } from './settle';
import { DEFAULTS, type QueueState } from './state';

/** What the pump needs of the object it works for. */
export interface PumpHost {
  readonly q: QueueState;
  readonly targets: readonly TargetConfig[];
  readonly random: Random;
  now(): number;
  /** Runs an operation in the next shared transaction. */
  write<T>(operation: (now: number) => T): Promise<T>;
  /** Keeps the object alive until the promise settles. */
  keepAlive(promise: Promise<unknown>): void;
  /** Arms the alarm for `at`. */
  wakeAt(at: number): void;
}

/** A target as this queue sees it. */
interface Target {
  config: TargetConfig;
  health: TargetHealth;
  announcement?: Announcement;
  /** When the announcement was asked for, epoch ms. */
  askedAt: number;
  /** When a job of a type that the announcement does not list was last seen, epoch ms. */
  unknownSince: number;
}

/** What one selection found. */
interface Selection {
  claims: { target: Target; jobs: Claimed[] }[];
  /** Targets to be asked (again) what they take before the next selection. */
  ask: Set<Target>;
  /** Work was left because calls ran out. */
  starved: boolean;
}

/** A running selection is looked after by the alarm this much later, ms. */
const STANDBY_MS = 1_000;

/** Jobs whose last attempt took its whole batch down are delivered alone. */
const SUSPECT_TYPES = new Set(['tocsin.crash', 'tocsin.batch_crash', 'timeout', 'tocsin.visibility_timeout']);

/** Characters of job bodies in one call at most, unless a single job is larger. */
const MAX_CALL_CHARS = 4 * 1024 * 1024;

export class Pump {
  private readonly targets: Target[];
  private budget: CallBudget | undefined;
  private running = false;

  constructor(
    private readonly host: PumpHost,
    stopped: readonly StoppedTarget[],
  ) {
    this.targets = host.targets
      .filter((config) => takesFrom(config, host.q.name))
      .map((config) => {
        const health = new TargetHealth();
        const stop = stopped.find(({ name }) => name === config.name);
        if (stop) health.restore(stop.until);
        return { config, health, askedAt: Number.NEGATIVE_INFINITY, unknownSince: Number.NEGATIVE_INFINITY };
      });
  }

  /** Does this queue push at all? */
  get pushes(): boolean {
    return this.targets.length > 0;
  }

  /** Pushes what can be pushed. Call it from any event; it does its work in the background. */
  start(): void {
    if (!this.pushes || this.host.q.paused) return;
    this.budget = new CallBudget();
    if (this.running) return;
    this.running = true;
    this.host.keepAlive(this.run());
  }

  /** When a stopped target may be tried again, or undefined. */
  nextTrial(now: number): number | undefined {
    const times = this.targets.flatMap(({ health }) => health.resumesAt(now) ?? []);
    return times.length > 0 ? Math.min(...times) : undefined;
  }

  /**
   * When the alarm has to look after jobs that could be pushed now, or undefined when there are none: what waits for
   * capacity is pushed when a running job ends.
   */
  nextPush(now: number): number | undefined {
    const { q } = this.host;
    if (q.paused) return undefined;
    const capacity = (q.settings.concurrency ?? DEFAULTS.concurrency) - this.runningJobs();
    const hasWork = this.targets.some((target) => {
      const room = Math.min(capacity, (target.config.maxConcurrency ?? capacity) - this.runningJobs(target));
      return room > 0 && target.health.allows(now) && this.hasReady(target, now);
    });
    if (!hasWork) return undefined;
    // A selection under way is about to push it, or waits for a target that has been asked what it takes.
    return this.running ? now + STANDBY_MS : now;
  }

  private async run(): Promise<void> {
    try {
      for (;;) {
        const budget = this.budget;
        if (!budget || this.host.q.paused) break;
        const selection = await this.host.write((now) => this.select(budget, now));
        for (const { target, jobs } of selection.claims) this.dispatch(target, jobs, budget);
        if (selection.ask.size > 0) {
          for (const target of selection.ask) await this.ask(target, budget);
          continue;
        }
        if (selection.starved) this.host.wakeAt(this.host.now() + 1);
        // A start that came in the meantime brought a new budget and perhaps new work.
        if (this.budget === budget) break;
      }
    } catch (error) {
      console.error('tocsin: pushing was interrupted', error);
      this.host.wakeAt(this.host.now() + 1_000);
    } finally {
      this.running = false;
    }
  }

  /** Chooses and claims what may be pushed now. Runs inside a transaction. */
  private select(budget: CallBudget, now: number): Selection {
    const { q } = this.host;
    const selection: Selection = { claims: [], ask: new Set(), starved: false };
    if (q.paused) return selection;
    const expired: JobRow[] = [];
    const orphans: JobRow[] = [];
    let capacity = (q.settings.concurrency ?? DEFAULTS.concurrency) - this.runningJobs();
    let calls = budget.remaining;
    for (const target of this.targets) {
      if (!target.health.allows(now)) continue;
      if (!target.announcement) {
        if (this.hasReady(target, now)) selection.ask.add(target);
        continue;
      }
      const room = Math.min(capacity, (target.config.maxConcurrency ?? capacity) - this.runningJobs(target));
      if (room <= 0) continue;
      // A stopped target gets a single trial; the rest follows when it answers.
      const batches = target.health.isStopped ? Math.min(1, calls) : calls;
      const limit = Math.min(room, batches * this.batchSize(target));
      if (limit <= 0) {
        selection.starved ||= this.hasReady(target, now);
        continue;
      }
      const rows = this.selectFor(target, limit, now, expired, orphans, selection);
      if (rows.length === 0) continue;
      const jobs = this.claimFor(target, rows, now);
      selection.claims.push({ target, jobs });
      capacity -= jobs.length;
      calls -= Math.ceil(jobs.length / this.batchSize(target));
    }
    if (ownsQueue(this.host.targets, q.name)) this.findOrphans(now, expired, orphans);
    for (const row of expired) if (rowByKey(q, row.key)?.ended_at === null) expire(q, row, now);
    for (const row of orphans) this.orphan(row, now);
    return selection;
  }

  private selectFor(
    target: Target,
    limit: number,
    now: number,
    expired: JobRow[],
    orphans: JobRow[],
    selection: Selection,
  ): JobRow[] {
    const { q } = this.host;
    const scan = q.pushScan(target.config.name);
    const perType = this.runningByType(target);
    return selectReady(q, scan, now, limit, (row) => {
      if (passOver(q, row, now, expired)) return 'pass';
      if (targetFor(this.host.targets, q.name, row.type) !== target.config) {
        scan.exact = false;
        return 'pass';
      }
      const announced = this.announcedBy(target, row.type);
      if (announced === 'unknown') {
        // Only an announcement younger than the job can say that nobody takes it.
        if (target.askedAt >= row.enqueued_at && target.askedAt >= target.unknownSince) orphans.push(row);
        else {
          target.unknownSince = now;
          selection.ask.add(target);
        }
        return 'hold';
      }
      if (this.isFull(target, row.type, perType)) return 'hold';
      perType.set(row.type, (perType.get(row.type) ?? 0) + 1);
      return 'take';
    });
  }

  /** Is there a job that this target could take? */
  private hasReady(target: Target, now: number): boolean {
    const { q } = this.host;
    const scan = q.pushScan(target.config.name);
    const perType = this.runningByType(target);
    const found = selectReady(q, scan, now, 1, (row) => {
      if (q.leases.active.has(row.key)) return 'pass';
      if (targetFor(this.host.targets, q.name, row.type) !== target.config) {
        scan.exact = false;
        return 'pass';
      }
      return this.isFull(target, row.type, perType) ? 'hold' : 'take';
    });
    // Nothing was claimed: what was looked at must be seen again.
    if (found.length > 0) scan.reset(q.leases.head);
    return found.length > 0;
  }

  /** In a queue that belongs to handlers, a job that no pattern takes has no handler. */
  private findOrphans(now: number, expired: JobRow[], orphans: JobRow[]): void {
    const { q } = this.host;
    const scan = q.pushScan('');
    const found = selectReady(q, scan, now, 500, (row) => {
      if (passOver(q, row, now, expired) || targetFor(this.host.targets, q.name, row.type)) {
        scan.exact = false;
        return 'pass';
      }
      return 'take';
    });
    orphans.push(...found);
  }

  /** No handler is registered: one attempt is counted, and the job becomes a dead letter. */
  private orphan(row: JobRow, now: number): void {
    const { q } = this.host;
    const [claimed] = grant(q, [row], { timeoutMs: () => 1_000, visibilityMs: () => 1_000 }, now);
    if (claimed) fail(q, row, claimed.active, { no_handler: true }, now, this.host.random);
  }

  private announcedBy(target: Target, type: string): AnnouncedType | 'unknown' | undefined {
    const types = target.announcement?.types;
    if (!types) return undefined;
    return types.find((entry) => entry.type === type) ?? types.find((entry) => entry.type === '*') ?? 'unknown';
  }

  private batchSize(target: Target): number {
    return target.announcement?.payload === 'batch' ? target.config.batchSize : 1;
  }

  private runningJobs(target?: Target): number {
    let count = 0;
    for (const active of this.host.q.leases.active.values()) {
      if (active.target !== undefined && (!target || active.target === target.config.name)) count++;
    }
    return count;
  }

  private runningByType(target: Target): Map<string, number> {
    const counts = new Map<string, number>();
    for (const active of this.host.q.leases.active.values()) {
      if (active.target === target.config.name) counts.set(active.type, (counts.get(active.type) ?? 0) + 1);
    }
    return counts;
  }

  private claimFor(target: Target, rows: JobRow[], now: number): Claimed[] {
    const { q } = this.host;
    const timeoutMs = (body: { timeout_ms?: number; type: string }) =>
      Math.min(
        body.timeout_ms ??
          this.announcedTimeout(target, body.type) ??
          q.settings.default_timeout_ms ??
          target.config.timeoutMs,
        900_000,
      );
    return grant(
      q,
      rows,
      {
        workerId: workerIdOf(target.config),
        target: target.config.name,
        timeoutMs,
        visibilityMs: (body) => timeoutMs(body) + LEASE_BEYOND_TIMEOUT_MS,
      },
      now,
    );
  }

  /** Do as many jobs of this type run as its handler takes at once? */
  private isFull(target: Target, type: string, running: ReadonlyMap<string, number>): boolean {
    const announced = this.announcedBy(target, type);
    if (announced === undefined || announced === 'unknown' || announced.concurrency === undefined) return false;
    return (running.get(type) ?? 0) >= announced.concurrency;
  }

  private announcedTimeout(target: Target, type: string): number | undefined {
    const announced = this.announcedBy(target, type);
    return announced === undefined || announced === 'unknown' ? undefined : announced.timeout_ms;
  }

  /** Starts the calls for claimed jobs; none is awaited. */
  private dispatch(target: Target, jobs: Claimed[], budget: CallBudget): void {
    for (const batch of this.batchesOf(target, jobs)) {
      if (budget.take()) {
        target.health.started();
        this.host.keepAlive(this.call(target, batch));
      } else {
        // Rare: jobs that must be delivered alone needed more calls than were left. They go back untouched.
        this.host.keepAlive(this.giveBack(batch));
      }
    }
  }

  private batchesOf(target: Target, jobs: Claimed[]): Claimed[][] {
    const size = this.batchSize(target);
    const batches: Claimed[][] = [];
    let open: Claimed[] = [];
    let chars = 0;
    for (const job of jobs) {
      if (size === 1 || isSuspect(job.row)) {
        batches.push([job]);
        continue;
      }
      const weight = job.row.body.length + this.host.q.checkpoints.sizeOf(job.row.key);
      if (open.length === size || (open.length > 0 && chars + weight > MAX_CALL_CHARS)) {
        batches.push(open);
        open = [];
        chars = 0;
      }
      open.push(job);
      chars += weight;
    }
    if (open.length > 0) batches.push(open);
    return batches;
  }

  private async call(target: Target, batch: Claimed[]): Promise<void> {
    try {
      const { q } = this.host;
      const now = this.host.now();
      const deliveries: Delivery[] = batch.map(({ row, active }) => ({
        delivery_id: deliveryOf(q, row, active),
        job: renderJob(viewForRunner(q, row, now), q.variables),
        timeoutMs: active.timeoutAt - active.startedAt,
      }));
      const payload = target.announcement?.payload ?? 'envelope';
      const workerId = workerIdOf(target.config);
      const result = await deliver(target.config, payload, workerId, deliveries, () => this.host.now());
      await this.host.write((settledAt) => {
        this.judge(target, result.deliveryError, settledAt);
        batch.forEach(({ row }, index) => {
          const { delivery_id } = deliveries[index] as Delivery;
          const outcome = result.outcomes.get(delivery_id);
          if (outcome) this.settle(row.key, delivery_id, this.withNoHandler(target, outcome), settledAt);
        });
      });
    } catch (error) {
      // The lease ends the attempt: nothing is lost, and the loop goes on.
      console.error('tocsin: an answer could not be recorded', error);
    }
    this.start();
  }

  /** A Worker that no longer takes a type it announced was deployed anew: it is asked again, the job has no handler. */
  private withNoHandler(target: Target, outcome: DeliveryOutcome): DeliveryOutcome {
    const announced = target.announcement?.types !== null;
    if (!announced || outcome.kind !== 'failed' || outcome.failure.code !== 'handler_not_found') return outcome;
    delete target.announcement;
    return { kind: 'failed', failure: { ...outcome.failure, message: 'no handler registered', no_handler: true } };
  }

  private async giveBack(batch: Claimed[]): Promise<void> {
    await this.host.write((now) => {
      for (const { row, active } of batch) {
        const current = this.host.q.leases.active.get(row.key);
        if (current?.claim === active.claim) undoClaim(this.host.q, row, current, now);
      }
    });
    this.host.wakeAt(this.host.now() + 1);
  }

  /** Writes what became of one delivery, unless its attempt has been ended by someone else. */
  private settle(key: number, delivery: string, outcome: DeliveryOutcome, now: number): void {
    const { q } = this.host;
    const row = rowByKey(q, key);
    if (!row) return;
    const active = q.leases.active.get(key);
    if (!active || !namesClaim(q, row, delivery, active.claim)) {
      this.settleLate(row, delivery, outcome, now);
      return;
    }
    if (outcome.kind === 'completed') {
      const attempt = {
        startedAt: active.startedAt,
        number: active.attempt,
        claim: active.claim,
        pushedTimeoutMs: active.timeoutAt - active.startedAt,
      };
      complete(q, row, attempt, outcome.result, now);
    } else if (outcome.kind === 'failed') {
      fail(q, row, active, outcome.failure, now, this.host.random);
    } else {
      undoClaim(q, row, active, now);
    }
  }

  /** A success that arrives after its attempt was called timed out still counts while the job waits. */
  private settleLate(row: JobRow, delivery: string, outcome: DeliveryOutcome, now: number): void {
    const { q } = this.host;
    if (outcome.kind !== 'completed' || row.state !== 0 || row.due_at === null || row.due_at <= now) return;
    const history = historyOf(row);
    if (!namesClaim(q, row, delivery, row.claims) || history.error?.code !== 'timeout') return;
    const attempt = { startedAt: history.started_at ?? now, number: row.attempt, claim: row.claims };
    complete(q, row, attempt, outcome.result, now);
  }

  /** Notes whether the target took the call, and stops or resumes it. Runs inside a transaction. */
  private judge(target: Target, deliveryError: boolean, now: number): void {
    const { q } = this.host;
    const changed = deliveryError ? target.health.failed(now) : target.health.succeeded();
    if (deliveryError) {
      const resumesAt = target.health.resumesAt(now);
      if (resumesAt !== undefined) q.wake(resumesAt);
    }
    if (!changed && !(deliveryError && target.health.isStopped)) return;
    const stopped: StoppedTarget[] = this.targets
      .filter(({ health }) => health.isStopped)
      .map(({ config, health }) => ({ name: config.name, until: health.resumesAt(now) ?? now }));
    writeMeta(q.sql, 'stopped', stopped.length > 0 ? stopped : undefined);
    if (changed) {
      const type = deliveryError ? 'queue.push_suspended' : 'queue.push_resumed';
      q.events.add(type, q.name, now, { target: target.config.name });
    }
  }

  /** Asks a target what it takes, and stores the job types' layer of the retry policy if it changed. */
  private async ask(target: Target, budget: CallBudget): Promise<void> {
    if (!budget.take()) {
      this.host.wakeAt(this.host.now() + 1);
      this.budget = undefined;
      return;
    }
    const askedAt = this.host.now();
    target.health.started();
    const announcement = await fetchAnnouncement(target.config);
    await this.host.write((now) => {
      this.judge(target, announcement === NOT_RUNNING, now);
      if (announcement === NOT_RUNNING) {
        delete target.announcement;
        return;
      }
      target.announcement = announcement;
      target.askedAt = askedAt;
      this.storeAnnounced();
    });
  }

  private storeAnnounced(): void {
    const { q } = this.host;
    const known = this.targets.flatMap(({ announcement }) => announcement?.types ?? []);
    // A target that has not been asked yet keeps what was stored of it.
    const complete = this.targets.every(({ announcement }) => announcement !== undefined);
    const merged = new Map(complete ? [] : q.announced);
    for (const entry of known) {
      if (entry.retry || entry.timeout_ms || entry.max_attempts !== undefined || entry.concurrency) {
        merged.set(entry.type, entry);
      }
    }
    const before = JSON.stringify([...q.announced.values()]);
    q.announced = merged;
    const after = [...merged.values()];
    if (JSON.stringify(after) !== before) writeMeta(q.sql, 'announced', after);
  }
}

/** Worker id under which a target holds its leases. */
function workerIdOf(target: TargetConfig): string {
  return `push_${target.name.toLowerCase()}`;
}

function isSuspect(row: JobRow): boolean {
  if (row.attempt === 0 || row.history === null) return false;
  const type = historyOf(row).error?.type;
  return type !== undefined && SUSPECT_TYPES.has(type);
}
