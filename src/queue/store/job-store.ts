/**
 * What is stored of a queue. Tables keep in memory what saves reads, none of it growing with the backlog;
 * {@link JobStore.load} rebuilds it.
 */
import type { Inbox } from '../../durable/inbox';
import { Outbox } from '../../durable/outbox';
import { cell, writeMeta } from '../../durable/sql';
import type { GroupRules } from '../../job/group-rules';
import { MAX_SEQUENCE, sequenceOf } from '../../job/ids';
import { removalMoment } from '../../job/retention';
import type { DeadLetterKinds } from '../../rpc/queue';
import { ArchiveBuffer } from './archive-buffer';
import type { BlockJob } from './block';
import { Blocks } from './blocks';
import { CheckpointTable } from './checkpoints';
import type { CountingSql } from './counting-sql';
import { CronTable } from './cron-table';
import { Cursors } from './cursors';
import { Depth } from './depth';
import { GroupCounts } from './groups/counts';
import { GroupGates } from './groups/gates';
import { type JobRow, STATE } from './job-row';
import { LeaseTable } from './leases';
import { Allowances } from './limits/allowances';
import { Limiters } from './limits/limiters';
import type { Overrides } from './limits/overrides';
import { LockTable } from './locks';
import type { Carrier } from './meters-table';
import { ProgressTable } from './progress';
import { readPriorities } from './ranks';
import { RunNotes } from './run-notes';
import { SIZES, type Sizes, Turn } from './sizes';
import { StorageGauge } from './storage';
import { StreamTable } from './streams';
import { Tally } from './tally';

class HoldBack {
  /** What an earlier transaction of this turn has held back. */
  private held: BlockJob | undefined;
  private writesBefore = 0;

  /** @param isAwaited may a worker claim a new job as soon as it is committed? */
  constructor(
    private readonly written: Pick<CountingSql, 'writes'>,
    private readonly blocks: Pick<Blocks, 'line'>,
    private readonly leases: Pick<LeaseTable, 'active'>,
    private readonly isAwaited: () => boolean,
  ) {}

  /**
   * May a lone job wait for a claim right after this commit? Only if nothing else was written, so that a later
   * failure leaves nothing of it. @param hasArrived does the running transaction bring work?
   */
  mayWait(hasArrived: boolean): boolean {
    const { alone } = this.blocks.line;
    const isOnly = hasArrived && this.written.writes === this.writesBefore;
    const isOpen = alone !== undefined && (alone === this.held || isOnly) && !this.leases.active.has(alone.key);
    const mayWait = isOpen && this.isAwaited();
    this.held = mayWait ? alone : undefined;
    return mayWait;
  }

  committed(): void {
    this.writesBefore = this.written.writes;
  }
}

class JobCounts {
  /** Waiting jobs in the line; null when it has to be counted. */
  line: number | null = null;
  /** Dead letters; null when they have to be counted. */
  dead: number | null = null;
  /** What kinds of dead letters there are; null since one came or went. */
  deadKinds: DeadLetterKinds | null = null;

  constructor(private readonly sql: SqlStorage) {}

  forget(): void {
    this.line = null;
    this.dead = null;
    this.deadKinds = null;
  }

  lineChanged(by: number): void {
    if (this.line !== null) this.line += by;
  }

  deadChanged(by: 1 | -1): void {
    if (this.dead !== null) this.dead += by;
    this.deadKinds = null;
  }

  /** How many dead letters there are. Counted once, then kept in memory. */
  countDead(): number {
    const all = `SELECT count(*) FROM jobs WHERE state = ${STATE.dead} AND ended_at IS NOT NULL`;
    this.dead ??= cell<number>(this.sql, all) as number;
    return this.dead;
  }
}

class Expiry {
  /** No waiting job expires before this, epoch ms: a lower bound. */
  next = Number.POSITIVE_INFINITY;
  /** Of the jobs that expire at that very moment, those up to this key are done. */
  untilKey = 0;

  constructor(private readonly sql: SqlStorage) {}

  load(): void {
    const first = 'SELECT min(expires_at) FROM jobs WHERE expires_at IS NOT NULL AND ended_at IS NULL';
    this.goOnAt(cell(this.sql, first) ?? Number.POSITIVE_INFINITY);
  }

  /** A waiting job expires at `at`, epoch ms. */
  awaits(at: number): void {
    if (at <= this.next) this.goOnAt(at);
  }

  /** All that expires before `at` is done, and of what expires then the jobs up to a key. */
  goOnAt(at: number, untilKey = 0): void {
    this.next = at;
    this.untilKey = untilKey;
  }
}

export interface Around {
  readonly overrides: Overrides;
  groups(): GroupRules | undefined;
  /** Something that the running transaction wrote is due at this moment (epoch ms). */
  wake(at: number): void;
  /** Text that rides in a row which is written anyway. */
  carried(carrier: Carrier): string;
  /** Does a worker that pulls wait for jobs? */
  isPulled(): boolean;
  /** May a worker claim a new job as soon as it is committed? */
  isAwaited(): boolean;
}

export class JobStore {
  /** Bounds of what is in memory and read; a test may make them smaller before it loads the queue again. */
  readonly sizes: Sizes = { ...SIZES };
  readonly turn: Turn;
  readonly leases: LeaseTable;
  /** Jobs of operations over several queues that are being decided. */
  readonly locks: LockTable;
  readonly limiters: Limiters;
  readonly gates: GroupGates;
  readonly groupCounts: GroupCounts;
  readonly depth: Depth;
  readonly tally: Tally;
  readonly archive: ArchiveBuffer;
  readonly blocks: Blocks;
  /** What this queue holds of limits that count in all queues. */
  readonly allowances: Allowances;
  /** Rows that are about to be asked for, see `row-lookup.ts`. */
  readonly readAhead = new Map<number, JobRow>();
  readonly outbox: Outbox;
  readonly inbox: Inbox;
  readonly runs = new RunNotes();
  readonly progress: ProgressTable;
  readonly checkpoints: CheckpointTable;
  readonly streams: StreamTable;
  readonly crons: CronTable;
  readonly storage: StorageGauge;
  readonly cursors: Cursors;
  readonly counts: JobCounts;
  readonly expiry: Expiry;
  priorities = new Set<number>();
  nextSequence = 1;
  /** There are more dead letters than the bound allows; they are removed in turns. */
  evicting = false;
  changes = 0;
  private readonly holdBack: HoldBack;

  /** @param written counts what is written through `sql` */
  constructor(
    readonly sql: SqlStorage,
    readonly written: CountingSql,
    around: Around,
  ) {
    this.turn = new Turn(this.sizes, written);
    this.archive = new ArchiveBuffer(sql, (by) => around.carried({ by }));
    this.blocks = new Blocks(sql, this.archive, {
      nextSequence: () => this.nextSequence,
      forget: (key) => this.recordSequence(key),
    });
    this.leases = new LeaseTable(sql, this.blocks, () => around.carried({ by: 'lease' }));
    this.holdBack = new HoldBack(written, this.blocks, this.leases, around.isAwaited);
    this.locks = new LockTable(sql);
    this.allowances = new Allowances(around.overrides, (key) => this.leases.runningByKey.get(key) ?? 0);
    this.limiters = new Limiters(sql, around.overrides, this.allowances);
    this.gates = new GroupGates(sql, this.leases.runningByGroup, around.groups, this.sizes);
    this.groupCounts = new GroupCounts(() => this.openJobs());
    this.depth = new Depth(sql, this.blocks, this.locks, this.groupCounts);
    this.tally = new Tally(sql, this.blocks);
    this.outbox = new Outbox(sql, around.wake);
    this.inbox = { sql, wake: around.wake };
    this.progress = new ProgressTable(sql);
    this.checkpoints = new CheckpointTable(sql, written);
    this.streams = new StreamTable(sql, written, this.turn);
    this.crons = new CronTable(sql);
    this.storage = new StorageGauge(sql);
    this.cursors = new Cursors(this.leases, this.sizes, around.isPulled);
    this.counts = new JobCounts(sql);
    this.expiry = new Expiry(sql);
  }

  load(meta: ReadonlyMap<string, unknown>): void {
    this.evicting = meta.get('evicting') === true;
    this.turn.begin();
    this.outbox.load();
    this.locks.load();
    this.archive.forget();
    this.blocks.load();
    this.leases.load();
    this.limiters.load();
    this.gates.load();
    this.depth.load(meta);
    this.tally.forget();
    this.progress.load();
    this.progress.extendLeases(this.leases);
    this.checkpoints.load();
    this.streams.load();
    this.crons.load();
    this.leases.recordedSequence = Math.max(this.leases.recordedSequence, (meta.get('sequence') as number) ?? 1);
    this.nextSequence = Math.max(this.leases.recordedSequence, this.highestSequence() + 1);
    this.priorities = readPriorities(this);
    this.cursors.reset();
    this.counts.forget();
    this.expiry.load();
  }

  /** Whose jobs have not ended, those of undecided batches included. */
  private *openJobs(): Generator<Pick<JobRow, 'group' | 'body'>> {
    // Only retry blocks keep groups in their bodies alone.
    yield* this.blocks.all(0, false, true);
    const over = new Set(Array.from(this.locks.all()).flatMap(({ key, ended_at }) => (ended_at === null ? [] : [key])));
    const open = 'SELECT key, body FROM jobs WHERE ended_at IS NULL';
    for (const row of this.sql.exec<{ key: number; body: string }>(open)) if (!over.has(row.key)) yield row;
  }

  private highestSequence(): number {
    const below = (bound: number) => cell<number>(this.sql, 'SELECT max(key) FROM jobs WHERE key < ?', bound) ?? 0;
    return Math.max(sequenceOf(below(2 * MAX_SEQUENCE)), sequenceOf(below(MAX_SEQUENCE)), this.blocks.highest());
  }

  /** Writes completed and waiting jobs and limit keys; {@link flushBlocks} writes the rest. @param retention ms */
  flush(retention: number): void {
    this.archive.flush((endedAt) => removalMoment(endedAt, retention));
    this.blocks.retries.flush();
    this.limiters.flush();
  }

  /** Writes what joins blocks. @param hasArrived work has come: a lone job may wait for its claim */
  flushBlocks(hasArrived: boolean): void {
    this.blocks.flush(this.holdBack.mayWait(hasArrived));
  }

  committed(): void {
    this.holdBack.committed();
    this.streams.committed();
  }

  /** A row with this sequence number is about to be deleted: records the number, so that it is never given again. */
  recordSequence(key: number): void {
    if (sequenceOf(key) < this.leases.recordedSequence) return;
    this.leases.recordedSequence = this.nextSequence;
    writeMeta(this.sql, 'sequence', this.nextSequence);
  }

  /** Reads the aliases' side of things: an id chosen by a client is taken, even by a job that is held back. */
  hasAlias(id: string): boolean {
    return cell(this.sql, 'SELECT 1 FROM aliases WHERE id = ?', id) !== undefined;
  }
}
