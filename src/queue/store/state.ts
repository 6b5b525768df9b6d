/**
 * What an operation on a queue works with: the database, the leases, the cursors, the settings, and what has to happen
 * once the running transaction is committed (events to publish, a wake to arm, waiting workers to call).
 *
 * Everything here can be rebuilt from storage ({@link QueueState.load}); nothing here grows with the backlog.
 */

import { gatherNotices } from '../../across/feed/notices';
import { EventLog } from '../../durable/event-log';
import type { Memory, Undo } from '../../durable/group-commit';
import { Outbox, STANDBY_MS } from '../../durable/outbox';
import { readMeta, writeMeta } from '../../durable/sql';
import { MAX_SEQUENCE, sequenceOf } from '../../job/ids';
import { holdingMaintenance, type Maintenance, shutUntil } from '../../job/maintenance';
import type { LowerLayers } from '../../job/record';
import { type End, removalMoment } from '../../job/retention';
import type { RetryPolicy } from '../../job/retry/policy';
import { type RetryLayers, resolveRetry } from '../../job/retry/resolve';
import { below, DEFAULTS, over, type QueueConfig, type QueueDefaults } from '../../job/settings';
import type { DeadLetterKinds } from '../../rpc/queue';
import { AnnouncedTypes } from './announced';
import { ArchiveBuffer } from './archive-buffer';
import { Blocks } from './blocks';
import { CheckpointTable } from './checkpoints';
import type { JobRow } from './columns';
import { CountingSql } from './counting-sql';
import { CronTable } from './cron-table';
import { Depth } from './depth';
import { HoldBack } from './hold-back';
import { readPriorities, Scan } from './lanes';
import { LeaseTable } from './leases';
import { Limiters } from './limits/limiters';
import { LockTable } from './locks';
import { Meters } from './meters';
import { ProgressTable } from './progress';
import { PullScans } from './pull-scans';
import type { Removal } from './removal';
import { type OwnRetry, RetriesByType } from './retries-by-type';
import { RunningLogs } from './running-logs';
import { StorageGauge } from './storage';
import { Tally } from './tally';

/** What is known of the types that handlers take. */
export interface Handled {
  /** A question after a sentence about the type, where one that is taken is nearly the same; else empty. */
  hint(type: string): string;
  /** Why no handler takes the type, although none but handlers would; undefined where that is not so, or not known. */
  whyUnhandled(type: string): string | undefined;
  /** What a producer of the type should know; undefined where all is well. */
  warning(type: string): string | undefined;
}

/** In {@link QueueState.arrivedTypes}: jobs of any type may be available. */
export const ANY_TYPE = '*';

export class QueueState implements Memory {
  readonly leases: LeaseTable;
  /** Jobs of operations over several queues that are being decided. */
  readonly locks: LockTable;
  readonly limiters: Limiters;
  readonly depth: Depth;
  readonly tally: Tally;
  /** What has happened here. */
  readonly meters: Meters;
  private readonly holdBack: HoldBack;
  readonly archive: ArchiveBuffer;
  /** Jobs that stand alike, many to a row. */
  readonly blocks: Blocks;
  /** Rows that are about to be asked for, see `where.ts`. */
  readonly readAhead = new Map<number, JobRow>();
  /** What must arrive at other objects. */
  readonly outbox: Outbox;
  readonly events: EventLog;
  readonly progress: ProgressTable;
  readonly checkpoints: CheckpointTable;
  readonly crons: CronTable;
  /** What running attempts have logged. */
  readonly logs = new RunningLogs();
  /** How full the object is. */
  readonly storage: StorageGauge;
  /** How far workers that pull have read. */
  readonly pullScans = new PullScans();
  /** The same for each target that jobs are pushed to, so that a stopped target holds nobody up. */
  readonly pushScans = new Map<string, Scan>();
  priorities = new Set<number>();
  nextSequence = 1;
  paused = false;
  pausedChangedAt = 0;
  /** Gives out the jobs it has and takes none. */
  draining = false;
  /** The queue is being deleted. */
  removal?: Removal;
  /** What this queue says itself. */
  own: QueueConfig = {};
  /** What the deployment says for all queues, as far as this one has heard. */
  defaults: QueueDefaults | undefined;
  /** What holds: its own settings over those of the deployment. */
  settings: QueueConfig = {};
  /** No waiting job expires before this: a lower bound. */
  nextExpiry = Number.POSITIVE_INFINITY;
  /** Of the jobs that expire at that very moment, those up to this key have been seen to. */
  expiredUntilKey = 0;
  /** Waiting jobs in the line; null when it has to be counted. */
  lineLength: number | null = null;
  /** Up to this key the line was discarded to make room. */
  shedUntil = 0;
  /** Dead letters; null when they have to be counted. */
  deadCount: number | null = null;
  /** What kinds of dead letters there are; null since one came or went. */
  deadKinds: DeadLetterKinds | null = null;
  /** There are more dead letters than are to be kept; they are removed in turns. */
  evicting = false;
  /** What handlers say about the types that they run. */
  readonly announced: AnnouncedTypes;
  private readonly retries = new RetriesByType();

  /** Jobs written, leased and ended since this object started. */
  changes = 0;
  /** The earliest moment at which something the running transaction wrote becomes due. */
  wanted = Number.POSITIVE_INFINITY;
  /** Did the running transaction make a job available? */
  workArrived = false;
  /** Types of the jobs that have become available since workers that wait were last called. */
  readonly arrivedTypes = new Set<string>();
  /** Is a job of this type pushed? Jobs that workers pull need no wake once they are available. */
  isPushed: (type: string, bodies: readonly string[]) => boolean = () => false;
  /** Is any job of this queue pushed? */
  pushesAny = false;
  /** May somebody claim what has just arrived as soon as it is committed? */
  isAwaited: () => boolean = () => false;
  /** What handlers take of this queue's jobs. Without any, nothing is said of a type. */
  handled: Handled = { hint: () => '', whyUnhandled: () => undefined, warning: () => undefined };

  private constructor(
    readonly sql: SqlStorage,
    readonly name: string,
    readonly route: number,
    readonly createdAt: number,
    readonly variables: Record<string, string | undefined>,
    readonly written: CountingSql,
  ) {
    const inBlocks = (since: number) => this.blocks.all(since, false);
    this.meters = new Meters(sql, written, () => this.nextSequence, inBlocks);
    this.holdBack = new HoldBack(written, (key) => this.leases.active.has(key));
    this.archive = new ArchiveBuffer(sql, (by) => this.meters.carried({ by }));
    this.blocks = new Blocks(sql, this.archive, (key) => this.recordSequence(key));
    this.leases = new LeaseTable(sql, this.blocks, () => this.meters.carried({ by: 'lease' }));
    this.locks = new LockTable(sql);
    this.limiters = new Limiters(sql);
    this.depth = new Depth(sql, this.blocks, this.locks);
    this.tally = new Tally(sql, this.blocks.due);
    this.outbox = new Outbox(sql, (at) => this.wake(at));
    this.events = new EventLog(name, route);
    this.progress = new ProgressTable(sql);
    this.checkpoints = new CheckpointTable(sql, written);
    this.crons = new CronTable(sql);
    this.storage = new StorageGauge(sql);
    this.announced = new AnnouncedTypes(sql);
  }

  /** Reads a queue from storage. The schema must be there. */
  static open(storage: SqlStorage, variables: Record<string, string | undefined>): QueueState {
    const meta = readMeta(storage);
    const { sql, written } = CountingSql.over(storage);
    const state = new QueueState(
      sql,
      meta.get('name') as string,
      meta.get('route') as number,
      meta.get('created_at') as number,
      variables,
      written,
    );
    state.load(meta);
    state.meters.open();
    return state;
  }

  /** Rebuilds everything in memory from storage: at construction, and after a transaction that was rolled back. */
  load(meta = readMeta(this.sql)): void {
    const pause = meta.get('paused') as { paused: boolean; at: number; draining?: boolean } | undefined;
    const removal = meta.get('removal') as Removal | undefined;
    if (removal) this.removal = removal;
    else delete this.removal;
    this.paused = (pause?.paused ?? false) || removal !== undefined;
    this.draining = pause?.draining ?? false;
    this.evicting = meta.get('evicting') === true;
    this.pausedChangedAt = pause?.at ?? this.createdAt;
    this.setSettings(
      (meta.get('config') as QueueConfig | undefined) ?? {},
      meta.get('defaults') as QueueDefaults | undefined,
    );
    this.announced.load(meta);
    this.outbox.load();
    this.locks.load();
    this.archive.forget();
    this.blocks.load();
    this.leases.load();
    this.limiters.load(this.leases.hasLost);
    this.depth.load(meta);
    this.tally.forget();
    this.shedUntil = 0;
    this.progress.load();
    this.progress.extendLeases(this.leases);
    this.checkpoints.load();
    this.crons.load();
    this.leases.recordedSequence = Math.max(this.leases.recordedSequence, (meta.get('sequence') as number) ?? 1);
    this.nextSequence = Math.max(this.leases.recordedSequence, this.highestSequence() + 1);
    this.priorities = readPriorities(this);
    for (const scan of this.scans()) scan.reset(this.leases.head);
    this.lineLength = null;
    this.deadCount = null;
    this.deadKinds = null;
    this.nextExpiry = this.firstExpiry();
    this.expiredUntilKey = 0;
    this.wanted = Number.POSITIVE_INFINITY;
    this.workArrived = false;
  }

  mark(): Undo {
    const { wanted, workArrived } = this;
    const [events, archived] = [this.events.pendingCount, this.archive.size];
    const [undoBlocks, undoLetters] = [this.blocks.mark(), this.outbox.mark()];
    const undoRest = [this.limiters.mark(), this.meters.mark(), this.logs.mark()];
    return {
      gathered: () => {
        this.archive.rollback(archived);
        undoBlocks();
      },
      rest: () => {
        this.events.rollback(events);
        undoLetters();
        for (const undo of undoRest) undo();
        this.wanted = wanted;
        this.workArrived = workArrived;
      },
    };
  }

  flush(): void {
    const retention = this.retentionMs('completed');
    this.archive.flush((endedAt) => removalMoment(endedAt, retention));
    this.limiters.flush();
    const routes = this.defaults?.webhooks ?? [];
    if (routes.length > 0) gatherNotices(this.outbox, routes, this.events.unpublished());
    this.outbox.flush();
    this.meters.flush();
    this.blocks.flush(this.holdBack.mayWait(this.blocks.line.alone, this.workArrived, this.isAwaited));
  }

  get isHolding(): boolean {
    return this.blocks.isHolding;
  }

  flushHeld(): void {
    const { alone } = this.blocks.line;
    this.blocks.flush();
    if (alone) this.meters.wroteLate(alone.type, alone.at);
  }

  publish(): void {
    this.wanted = Number.POSITIVE_INFINITY;
    this.holdBack.committed();
    this.logs.committed((key, claim) => this.leases.active.get(key)?.claim === claim);
    this.events.publish();
    this.meters.publish();
  }

  /** Has the transaction that was committed made jobs available? */
  takeArrivals(): boolean {
    const { workArrived } = this;
    this.workArrived = false;
    return workArrived;
  }

  /** Until when maintenance shuts the queue, epoch ms; it may be in the past. -Infinity: there was none, Infinity: it has no end. */
  get shutUntil(): number {
    return shutUntil(this.defaults?.maintenance);
  }

  /** The maintenance under way. */
  maintenance(now: number): Maintenance | undefined {
    return holdingMaintenance(this.defaults?.maintenance, now);
  }

  /** Does the queue hand out nothing at all, because it is paused or the deployment is in maintenance? */
  isClosed(now: number): boolean {
    return this.paused || now < this.shutUntil;
  }

  /** Other settings hold from now on. */
  setSettings(own: QueueConfig, defaults: QueueDefaults | undefined): void {
    this.own = own;
    this.defaults = defaults;
    this.settings = over(own, below(defaults));
    this.limiters.overrides.set(defaults?.overrides, defaults?.limits);
  }

  private firstExpiry(): number {
    const first = 'SELECT min(expires_at) AS at FROM jobs WHERE expires_at IS NOT NULL AND ended_at IS NULL';
    return this.sql.exec<{ at: number | null }>(first).one().at ?? Number.POSITIVE_INFINITY;
  }

  private highestSequence(): number {
    const key = (bound: number) =>
      this.sql.exec<{ k: number | null }>('SELECT max(key) AS k FROM jobs WHERE key < ?', bound).one().k;
    return Math.max(sequenceOf(key(2 * MAX_SEQUENCE) ?? 0), sequenceOf(key(MAX_SEQUENCE) ?? 0), this.blocks.highest());
  }

  /** Every cursor. */
  scans(): Scan[] {
    return [...this.pullScans.all(), ...this.pushScans.values()];
  }

  /** The cursor of a target. */
  pushScan(target: string): Scan {
    let scan = this.pushScans.get(target);
    if (!scan) {
      scan = new Scan();
      scan.reset(this.leases.head);
      this.pushScans.set(target, scan);
    }
    return scan;
  }

  /** How far the line of immediate jobs is taken, as far as the cursors know. */
  head(): number {
    return this.scans().reduce((head, scan) => (scan.exact ? Math.max(head, scan.line) : head), this.leases.head);
  }

  /**
   * A job of this type is available now. One that is pushed is pushed at once; the wake stands by in case this object
   * dies before the push is on record.
   * @param type absent: of any type
   * @param bodies of the jobs, as text
   */
  arrived(now: number, type?: string, bodies: readonly string[] = []): void {
    this.workArrived = true;
    this.arrivedTypes.add(type ?? ANY_TYPE);
    if (this.paused || !(type === undefined ? this.pushesAny : this.isPushed(type, bodies))) return;
    // Without an end nobody can wait for it: the queues hear of it.
    if (this.shutUntil < Number.POSITIVE_INFINITY) this.wake(Math.max(now + STANDBY_MS, this.shutUntil));
  }

  /** Workers that pull may find jobs that they did not find before, of whatever type. */
  callWorkers(): void {
    this.workArrived = true;
    this.arrivedTypes.add(ANY_TYPE);
  }

  /** Something this transaction wrote becomes due at `at` (epoch ms). */
  wake(at: number): void {
    if (at < this.wanted) this.wanted = at;
  }

  /** A row with this sequence number is about to be deleted: puts the number on record so it is never given again. */
  recordSequence(key: number): void {
    if (sequenceOf(key) < this.leases.recordedSequence) return;
    this.leases.recordedSequence = this.nextSequence;
    writeMeta(this.sql, 'sequence', this.nextSequence);
  }

  /** Reads the aliases' side of things: an id chosen by a client is taken, even by a job that is held back. */
  hasAlias(id: string): boolean {
    return this.sql.exec('SELECT 1 FROM aliases WHERE id = ?', id).toArray().length > 0;
  }

  /** The retry layers between a job of this type and the deployment variables: one object, as long as they are the same. */
  layersFor(type: string): LowerLayers {
    return this.retries.of(type, this.announced.of(type), this.settings.default_retry).layers;
  }

  /** All layers of a job's retry policy. */
  retryLayers(type: string, job: OwnRetry): RetryLayers {
    const own = job.max_attempts === undefined ? job.retry : { ...job.retry, max_attempts: job.max_attempts };
    return { variables: this.variables, ...this.layersFor(type), ...(own && { job: own }) };
  }

  /** The retry policy in force for a job now. */
  policyFor(type: string, job: OwnRetry): Readonly<RetryPolicy> {
    const resolve = () => resolveRetry(this.retryLayers(type, job));
    if (job.retry || job.max_attempts !== undefined) return resolve();
    return this.retries.of(type, this.announced.of(type), this.settings.default_retry).policy(resolve);
  }

  /** Dead letters that are kept at most. */
  get maxDeadLetters(): number {
    return this.settings.dead_letter?.max_count ?? DEFAULTS.deadLetter.maxCount;
  }

  /** How long a job that does not say it itself is kept after it ended so, ms. */
  retentionMs(end: End): number {
    if (end === 'dead_letter') return this.settings.dead_letter?.max_age ?? DEFAULTS.deadLetter.maxAge;
    return this.settings.retention?.[end] ?? DEFAULTS.retention[end];
  }
}
