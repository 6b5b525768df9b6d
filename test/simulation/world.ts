/**
 * The product under virtual time: a real engine over real SQLite, with a clock, an alarm and faults in the hands of the
 * simulation.
 */

import { AlarmClock } from '../../src/durable/alarm-clock';
import { QUEUE, Schema } from '../../src/durable/schema';
import { writeMeta } from '../../src/durable/sql';
import { Timers } from '../../src/durable/timers';
import type { ErrorData, Outcome } from '../../src/job/errors';
import type { NewJob } from '../../src/job/record';
import { type EngineHost, QueueEngine } from '../../src/queue/engine';
import type { Others } from '../../src/queue/others';
import { SIZES, type Sizes } from '../../src/queue/store/sizes';
import type { EnqueuedJob } from '../../src/rpc/receipts';

/** The error of a statement that was made to fail. */
export class InjectedFault extends Error {
  override readonly name = 'InjectedFault';
}

/** What an object gets to hear that reaches for its storage after its end. */
export class Died extends Error {
  override readonly name = 'Died';

  constructor() {
    super('the object is dead');
  }
}

/** A question to other queues: may this job be? */
export interface Ask {
  job: NewJob;
  answer(outcome: Outcome<EnqueuedJob>): void;
}

/** What one transaction may read by itself: a tenth. Its changes stay: the model does all that is due at once. */
const TURN: Partial<Sizes> = { turnLooks: SIZES.turnLooks / 10 };
/** Undoes a transaction that was only to be looked at. */
const ROLLED_BACK = new Error('rolled back');

/** Turns of the event loop in which an object has done what it can. */
const MOST_TURNS = 5_000;

/** What those that cannot be reached say. */
export const BUSY: ErrorData = { code: 'unavailable', status: 503, message: 'busy', retryable: true };

/** What areas may put in the place of what is simulated by default. */
export interface WorldHooks {
  /** Whom the queue talks to; who is not named here must not be talked to. */
  others: Partial<Others>;
  config: Partial<EngineHost['config']>;
  /** The alarm fires. Absent: the engine's own handler runs. */
  alarm(): void;
  /** A transaction is committed, and nothing that follows has begun. */
  committed(): void;
  /** A transaction was undone. */
  undone(): void;
}

/** Hooks of several areas together: of two that name the same one, the later counts. */
export function mergeHooks(all: readonly Partial<WorldHooks>[]): Partial<WorldHooks> {
  const others = Object.assign({}, ...all.map((hooks) => hooks.others));
  const config = Object.assign({}, ...all.map((hooks) => hooks.config));
  return { ...Object.assign({}, ...all), others, config };
}

function never(what: string): () => never {
  return () => {
    throw new Error(what);
  };
}

/** Whom a queue may talk to only where an area says so. */
const NOBODY = {
  queue: never('no other queue is part of this history'),
  reservations: never('no lock object is part of this history'),
  destroy: never('the queue of this history is not deleted'),
  noteIds: never('no job of this history moves'),
  workflow: never('no workflow is part of this history'),
  noteAlert: never('no alert rule is part of this history'),
  webhook: never('no subscription is part of this history'),
  desk: never('no key of this history counts in all queues'),
  enqueue: never('no handler of this history enqueues'),
  enqueueEach: never('no handler of this history enqueues'),
  withJob: never('no handler of this history waits for jobs'),
};

/** An engine beside the one that lives, over the same storage. */
interface Twin {
  engine: QueueEngine;
  /** When it would wake. */
  planned(): number | null;
}

export class World {
  /** The stored alarm, as the platform keeps it. */
  alarm: number | null = null;
  engine!: QueueEngine;
  /** What the object wants to know and has not been told yet. */
  asks: Ask[] = [];
  /** Answers that areas withhold from the object, each of which keeps something of it under way. */
  withheld = new Set<unknown>();
  /** A statement was made to fail, and who noticed is not known yet. */
  faulted = false;
  /** A statement was made to fail since the object was constructed. */
  hasFailed = false;
  /** When one was made to fail last, epoch ms. */
  failedAt = Number.NEGATIVE_INFINITY;
  /** Statements that were made to fail, and transactions committed, so far. */
  faults = 0;
  commits = 0;
  /** Rows with checkpoints and steps that were written so far. */
  saves = 0;
  private statementsUntilFault = Number.POSITIVE_INFINITY;
  /** Work of the object that goes on after the event that began it. */
  private hooks: Partial<WorldHooks> = {};
  private underWay = new Set<Promise<unknown>>();
  private sizes: { name: string; query: string }[] | undefined;
  /** What reads as a new object would. */
  private twin: Twin | undefined;
  /** Objects constructed so far. */
  private life = 0;

  /**
   * @param now epoch ms
   * @param hooksOf what the areas put in the place of what is simulated by default, for an object that is constructed
   * @param bounds of its memory and its reads; absent: those of the product
   */
  constructor(
    private readonly real: DurableObjectStorage,
    public now: number,
    private readonly hooksOf: (world: World) => Partial<WorldHooks> = () => ({}),
    private readonly bounds: Partial<Sizes> = {},
  ) {
    this.create();
  }

  /** The queue is deleted, for good, and comes into being anew under its name. */
  recreate(): void {
    this.engine.close();
    this.alarm = null;
    this.create();
  }

  /** The queue comes into being, in an object that is empty. */
  private create(): void {
    const { real } = this;
    new Schema(real, QUEUE).create();
    const tables = real.sql.exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'").toArray();
    for (const { name } of tables) {
      if (!name.startsWith('_cf_'))
        real.sql.exec(`DELETE FROM ${name}${name === 'meta' ? " WHERE key <> 'schema'" : ''}`);
    }
    writeMeta(real.sql, 'name', 'simulated');
    writeMeta(real.sql, 'route', 77);
    writeMeta(real.sql, 'created_at', this.now);
    this.start();
  }

  /** The object is constructed: everything in memory is new. */
  start(): void {
    const life = ++this.life;
    this.hasFailed = false;
    this.withheld = new Set();
    this.twin = undefined;
    const hooks = this.hooksOf(this);
    this.hooks = hooks;
    // What the one before still does on its way out concerns nobody.
    const asks: Ask[] = [];
    this.asks = asks;
    const underWay = new Set<Promise<unknown>>();
    this.underWay = underWay;
    const setAlarm = (time: number | Date) => {
      if (life !== this.life) return Promise.resolve();
      const at = Number(time);
      // An alarm set for now or the past would be stored and never fire.
      if (at <= this.now) throw new Error(`setAlarm(${at}) at ${this.now}: not in the future`);
      this.alarm = at;
      return Promise.resolve();
    };
    const deleteAlarm = () => {
      if (life === this.life) this.alarm = null;
      return Promise.resolve();
    };
    this.engine = new QueueEngine({
      storage: this.storageOf(life),
      clock: new AlarmClock({ setAlarm, deleteAlarm } as DurableObjectStorage, this.alarm),
      config: { retryVariables: {}, targets: [], ...hooks.config },
      random: () => 0.5,
      now: () => this.now,
      after: new Timers(() => this.now).after,
      keepAlive: (promise) => {
        underWay.add(promise);
        const done = () => underWay.delete(promise);
        promise.then(done, done);
      },
      others: {
        ...NOBODY,
        noteChange: async () => undefined,
        enqueueAcross: (job) => new Promise((answer) => asks.push({ job, answer })),
        ...hooks.others,
      },
    });
    this.bound(this.engine);
    // What counts reads the clock by itself, which would take all of a history for very old.
    Object.assign(this.engine.q.observed.meters, { now: () => this.now });
    this.engine.armNext();
  }

  /**
   * Reads what is stored as a new object would, beside the one that lives. Nothing that it does stays.
   * @param isNew it is constructed; else one that was constructed for an earlier look rebuilds its memory, which is cheaper
   * @param look is given its engine, and when it would wake
   */
  asNew(isNew: boolean, look: (engine: QueueEngine, planned: () => number | null) => void): void {
    try {
      this.real.transactionSync(() => {
        if (!isNew) this.twin?.engine.q.load();
        if (isNew || !this.twin) this.twin = this.newTwin();
        const { engine, planned } = this.twin;
        look(engine, planned);
        throw ROLLED_BACK;
      });
    } catch (error) {
      if (error !== ROLLED_BACK) throw error;
    }
  }

  private newTwin(): Twin {
    const { real } = this;
    let planned: number | null = null;
    const setAlarm = (time: number | Date) => {
      planned = Number(time);
      return Promise.resolve();
    };
    const engine = new QueueEngine({
      storage: {
        sql: real.sql,
        sync: () => Promise.resolve(),
        transactionSync: <T>(closure: () => T): T => real.transactionSync(closure),
      } as DurableObjectStorage,
      clock: new AlarmClock({ setAlarm } as DurableObjectStorage, null),
      config: { retryVariables: {}, targets: [], ...this.hooks.config },
      random: () => 0.5,
      now: () => this.now,
      after: new Timers(() => this.now).after,
      keepAlive: never('an object that is only looked at does nothing'),
      others: { ...NOBODY, noteChange: NOBODY.noteAlert, enqueueAcross: NOBODY.enqueue, ...this.hooks.others },
    });
    return { engine, planned: () => planned };
  }

  /** The object has the bounds of the history; one beside it that reads all at once needs none. */
  private bound({ q }: QueueEngine): void {
    Object.assign(q.store.sizes, TURN, this.bounds);
    // It has read which jobs hold their groups up.
    if (this.bounds.holders !== undefined) q.store.gates.load();
  }

  /** The longest value that is stored, bytes: it may have grown where it lies, which no binding shows. */
  longestValue(): { table: string; bytes: number } {
    const { sql } = this.real;
    this.sizes ??= sizeQueries(sql);
    const sizes = this.sizes.map(({ name, query }) => ({ table: name, ...sql.exec<{ bytes: number }>(query).one() }));
    return sizes.reduce((longest, size) => (size.bytes > longest.bytes ? size : longest));
  }

  /** What is stored, past everything that watches over it. */
  get sql(): SqlStorage {
    return this.real.sql;
  }

  /** The object dies. What it still does reaches nothing. */
  kill(): void {
    this.life++;
  }

  /** Runs a turn at the end of which the object dies: nothing of it has become durable, the alarm included. */
  lose(turn: () => unknown): void {
    const { alarm } = this;
    try {
      this.real.transactionSync(() => {
        turn();
        throw ROLLED_BACK;
      });
    } catch (error) {
      if (error !== ROLLED_BACK) throw error;
    }
    this.alarm = alarm;
    this.kill();
  }

  /** Lets the alarm handler run, whenever the caller thinks it should. */
  fire(): void {
    this.alarm = null;
    if (this.hooks.alarm) this.hooks.alarm();
    else this.engine.alarm();
  }

  /** The `n`th SQL statement from now throws, once. */
  failAt(n: number): void {
    this.statementsUntilFault = n;
  }

  /** No fault is pending any more. */
  heal(): void {
    this.statementsUntilFault = Number.POSITIVE_INFINITY;
  }

  /** Will a statement be made to fail? */
  get isArmed(): boolean {
    return Number.isFinite(this.statementsUntilFault);
  }

  /** Does the object do something that waits for nobody? */
  get isBusy(): boolean {
    return this.underWay.size > this.asks.length + this.withheld.size;
  }

  /** Reads what the simulation wants to know, at times when nothing fails. */
  quietly<T>(read: () => T): T {
    const left = this.statementsUntilFault;
    this.heal();
    try {
      return read();
    } finally {
      this.statementsUntilFault = left;
    }
  }

  /** Does something go on that the object began? */
  get isUnderWay(): boolean {
    return this.underWay.size > 0;
  }

  /** Waits until the object has done what it can: whatever is under way waits for an answer. */
  async settled(): Promise<void> {
    for (let turns = 0; this.isBusy; turns++) {
      if (turns === MOST_TURNS) throw new Error('the object does not come to rest');
      await scheduler.wait(0);
    }
  }

  /** Whoever is dead reaches neither the storage nor the alarm of the one after it. */
  private mustLive(life: number): void {
    if (life !== this.life) throw new Died();
  }

  /** The storage of one life of the object. */
  private storageOf(life: number): DurableObjectStorage {
    const { real } = this;
    const exec = (query: string, ...bindings: unknown[]) => {
      this.mustLive(life);
      if (this.statementsUntilFault-- === 0) {
        this.heal();
        this.faulted = true;
        this.hasFailed = true;
        this.failedAt = this.now;
        this.faults++;
        throw new InjectedFault('injected');
      }
      if (query.includes('INTO checkpoints')) this.saves++;
      return real.sql.exec(query, ...(bindings as never[]));
    };
    let depth = 0;
    const sql = {
      exec,
      get databaseSize() {
        return real.sql.databaseSize;
      },
    };
    return {
      sql,
      sync: () => Promise.resolve(),
      transactionSync: <T>(closure: () => T): T => {
        this.mustLive(life);
        const before = this.alarm;
        depth++;
        let value: T;
        try {
          value = real.transactionSync(closure);
        } catch (error) {
          // The platform rolls back `setAlarm` together with the rows.
          if (life === this.life) this.alarm = before;
          if (--depth === 0) this.hooks.undone?.();
          throw error;
        }
        if (--depth === 0) {
          this.commits++;
          this.hooks.committed?.();
        }
        return value;
      },
    } as unknown as DurableObjectStorage;
  }
}

/** Ask for the longest value of each table. SQLite knows the length of a value without reading it. */
function sizeQueries(sql: SqlStorage): { name: string; query: string }[] {
  const columns = sql.exec<{ name: string; longest: string }>(
    `SELECT m.name, group_concat('coalesce(max(octet_length("' || c.name || '")), 0)') AS longest
     FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND substr(m.name, 1, 4) <> '_cf_' GROUP BY 1`,
  );
  return Array.from(columns, ({ name, longest }) => ({
    name,
    query: `SELECT max(${longest}, 0) AS bytes FROM ${name}`,
  }));
}
