/** The memory of an opened queue: a transaction's changes can be marked and undone, and are written at its end. */
import { gatherNotices } from '../../across/feed/notices';
import type { Memory, Undo } from '../../durable/group-commit';
import { readMeta } from '../../durable/sql';
import { Configuration, type Variables } from './configuration';
import { CountingSql } from './counting-sql';
import type { Handlers } from './handlers';
import { JobStore } from './job-store';
import { Observations } from './observations';
import type { QueueParts } from './parts';
import { Wake } from './wake';

export interface Opening<H> {
  readonly storage: Pick<DurableObjectStorage, 'sql' | 'transactionSync'>;
  readonly variables: Variables;
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
    const { store, observed, wake } = this;
    const { archive, blocks, outbox, runs, limiters } = store;
    const { events, logs, meters } = observed;
    const marked = { archive: archive.size, outbox: outbox.size, runs: runs.size, logs: logs.changes };
    const inBlocks = { line: blocks.line.mark(), due: blocks.due.mark(), retries: blocks.retries.mark() };
    const pending = events.pendingCount;
    const isFirstLimit = limiters.mark();
    const counted = meters.mark();
    const { wanted, workArrived } = wake;
    return {
      gathered: () => {
        archive.rollback(marked.archive);
        blocks.line.rollback(inBlocks.line);
        blocks.due.rollback(inBlocks.due);
        blocks.retries.rollback(inBlocks.retries);
      },
      rest: () => {
        events.rollback(pending);
        outbox.rollback(marked.outbox);
        runs.rollback(marked.runs);
        limiters.rollback(isFirstLimit);
        meters.rollback(counted);
        logs.rollback(marked.logs);
        wake.reset(wanted, workArrived);
      },
    };
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
