/** The memory of an opened queue: a transaction's changes can be marked and undone, and are written at its end. */
import { gatherNotices } from '../../across/feed/notices';
import type { Memory, Undo } from '../../durable/group-commit';
import { readMeta } from '../../durable/sql';
import type { BlocksMark } from './block';
import { Configuration, type Variables } from './configuration';
import { CountingSql } from './counting-sql';
import type { Handlers } from './handlers';
import { JobStore } from './job-store';
import type { MetersMark } from './meters';
import { Observations } from './observations';
import type { QueueParts } from './parts';
import type { RetriesMark } from './retry-index';
import { Wake } from './wake';

export interface Opening<H> {
  readonly storage: Pick<DurableObjectStorage, 'sql' | 'transactionSync'>;
  readonly variables: Variables;
  /** The types of jobs that handlers take from the queue with this name. */
  handlers(name: string): H;
  /** Does a worker that pulls wait for jobs? */
  isAwaited(): boolean;
}

export class QueueMemory<H extends Handlers = Handlers> implements Memory, QueueParts {
  readonly name: string;
  readonly route: number;
  readonly handlers: H;
  readonly config: Configuration;
  readonly wake: Wake;
  readonly store: JobStore;
  readonly observed: Observations;
  private readonly storage: Opening<H>['storage'];

  /** Reads a queue from storage. The schema must be there. */
  constructor({ storage, variables, handlers, isAwaited }: Opening<H>) {
    const meta = readMeta(storage.sql);
    const { sql, written } = CountingSql.over(storage.sql);
    this.storage = storage;
    this.name = meta.get('name') as string;
    this.route = meta.get('route') as number;
    this.handlers = handlers(this.name);
    this.config = new Configuration(sql, meta.get('created_at') as number, variables);
    this.wake = new Wake(this.config, this.handlers);
    this.store = new JobStore(sql, written, {
      overrides: this.config.overrides,
      groups: () => this.config.groups,
      wake: (at) => this.wake.at(at),
      carried: (carrier) => this.observed.meters.carried(carrier),
      isPulled: isAwaited,
      isAwaited: () => this.handlers.pushesAny || isAwaited(),
    });
    this.observed = new Observations(this.name, this.route, this.store);
    this.load(meta);
    this.observed.meters.open();
  }

  get wanted(): number {
    return this.wake.wanted;
  }

  get changes(): number {
    return this.store.changes;
  }

  get written(): CountingSql {
    return this.store.written;
  }

  load(meta: ReadonlyMap<string, unknown> = readMeta(this.store.sql)): void {
    this.config.load(meta);
    this.store.load(meta);
    this.wake.reset();
  }

  mark(): Undo {
    return new Mark(this);
  }

  flush(): void {
    const { store, observed } = this;
    store.flush(this.config.retentionMs('completed'));
    const routes = this.config.defaults?.webhooks ?? [];
    if (routes.length > 0) gatherNotices(store.outbox, routes, observed.events.unpublished());
    store.runs.post(store.outbox);
    store.outbox.flush();
    observed.meters.flush();
    store.flushBlocks(this.wake.workArrived);
  }

  publish(): void {
    this.wake.wanted = Number.POSITIVE_INFINITY;
    this.store.committed();
    this.observed.publish();
  }

  /** Writes a job that was held back and not claimed: it becomes durable with the rest of the turn. */
  finish(): void {
    const { blocks } = this.store;
    const { alone } = blocks.line;
    if (!alone) return;
    this.storage.transactionSync(() => {
      blocks.flush();
      this.observed.meters.wroteLate(alone.type, alone.at);
    });
  }
}

/** Notes what a transaction has gathered up to a moment. One object: each operation makes one. */
class Mark implements Undo {
  private readonly archived: number;
  private readonly line: BlocksMark;
  private readonly due: BlocksMark;
  private readonly retries: RetriesMark;
  private readonly events: number;
  private readonly messages: number;
  private readonly runs: number;
  private readonly logs: number;
  private readonly isFirstLimit: boolean;
  private readonly meters: MetersMark;
  private readonly wanted: number;
  private readonly workArrived: boolean;

  constructor(private readonly q: QueueMemory) {
    const { store, observed, wake } = q;
    this.archived = store.archive.size;
    this.line = store.blocks.line.mark();
    this.due = store.blocks.due.mark();
    this.retries = store.blocks.retries.mark();
    this.events = observed.events.pendingCount;
    this.messages = store.outbox.size;
    this.runs = store.runs.size;
    this.logs = observed.logs.changes;
    this.isFirstLimit = store.limiters.mark();
    this.meters = observed.meters.mark();
    this.wanted = wake.wanted;
    this.workArrived = wake.workArrived;
  }

  gathered(): void {
    const { archive, blocks } = this.q.store;
    archive.rollback(this.archived);
    blocks.line.rollback(this.line);
    blocks.due.rollback(this.due);
    blocks.retries.rollback(this.retries);
  }

  rest(): void {
    const { store, observed, wake } = this.q;
    observed.events.rollback(this.events);
    store.outbox.rollback(this.messages);
    store.runs.rollback(this.runs);
    store.limiters.rollback(this.isFirstLimit);
    observed.meters.rollback(this.meters);
    observed.logs.rollback(this.logs);
    wake.reset(this.wanted, this.workArrived);
  }
}
