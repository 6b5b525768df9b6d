/** The one handle on a queue object: over RPC, from inside, its alarm, its rows, and dying at any moment. */

import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import type { AttemptOutcome } from '../../src/job/attempt/outcome';
import { type ErrorData, type Outcome, unwrap } from '../../src/job/errors';
import type { JobBody, JobRecord, NewJob, ReportedError } from '../../src/job/record';
import type { QueueEngine } from '../../src/queue/engine';
import type { QueueObject } from '../../src/queue/object';
import type { QueueMemory } from '../../src/queue/store/memory';
import type { DeadLetterRequest, QueueApi } from '../../src/rpc/queue';
import { unpackReceipt } from '../../src/rpc/receipts';
import type { AttemptName, ClaimRequest } from '../../src/rpc/workers';
import { clock, until } from './clock';
import { countRows, type RowCount, rowsWhile, rowsWritten, startCounting } from './rows';

let made = 0;

/** A name that no other test of this file has. */
export function freshName(prefix = 'q'): string {
  return `${prefix}-${++made}`;
}

export type JobChange = Partial<Omit<NewJob, 'body'>> & { body?: Partial<JobBody> };

/** A valid new job. What its body needs to know is copied there. */
export function newJob(change: JobChange = {}): NewJob {
  const { body, ...rest } = change;
  const type = change.type ?? 'test.job';
  const full: JobBody = {
    type,
    args: [],
    meta: {},
    ...(change.scheduledAt !== undefined && { scheduled_at: change.scheduledAt }),
    ...(change.expiresAt !== undefined && { expires_at: change.expiresAt }),
    ...(change.retry && { retry: change.retry }),
    ...body,
  };
  return { type, priority: 0, ...rest, body: JSON.stringify(full) };
}

/** A retry policy without chance: so many attempts, the same delay after each. */
export const steady = (attempts: number, delayMs = 1000) => ({
  max_attempts: attempts,
  initial_interval: delayMs,
  backoff_strategy: 'constant',
  jitter: false,
});

/** What is inside a queue object. */
export interface Inside {
  instance: QueueObject;
  engine: QueueEngine;
  q: QueueMemory;
  storage: DurableObjectStorage;
  sql: SqlStorage;
}

/** One queue object and its operations; a refusal is thrown as ApiError by all but the `try…` ones. */
export class TestQueue {
  constructor(readonly name: string = freshName()) {}

  get stub(): DurableObjectStub<QueueObject> {
    return env.QUEUES.getByName(this.name);
  }

  get api(): QueueApi {
    return this.stub as unknown as QueueApi;
  }

  async enqueue(...changes: JobChange[]): Promise<JobRecord[]> {
    const jobs = (changes.length === 0 ? [{}] : changes).map(newJob);
    return unpackReceipt(unwrap(await this.api.enqueue(jobs))).jobs.map(({ record }) => record);
  }

  async add(change: JobChange = {}): Promise<string> {
    return ((await this.enqueue(change))[0] as JobRecord).id;
  }

  async claim(request: Partial<ClaimRequest> = {}): Promise<JobRecord[]> {
    return unwrap(await this.api.claim({ count: 1, ...request })).map(({ record }) => record);
  }

  /** Ids of all that can be claimed now, in order; they stay claimed. */
  async claimAll(request: Partial<ClaimRequest> = {}): Promise<string[]> {
    const ids: string[] = [];
    for (;;) {
      const jobs = await this.claim({ count: 100, ...request });
      if (jobs.length === 0) return ids;
      ids.push(...jobs.map(({ id }) => id));
    }
  }

  async ack(job_id: string, rest: Partial<AttemptName> & { result?: string } = {}): Promise<JobRecord> {
    return unwrap(await this.api.settle({ kind: 'completed', job_id, ...rest })).record;
  }

  async nack(
    job_id: string,
    error: ReportedError = { message: 'failed' },
    { requeue, ...name }: Partial<AttemptName> & { requeue?: boolean } = {},
  ): Promise<JobRecord> {
    const outcome: AttemptOutcome = requeue
      ? { kind: 'released', release: { attempt: 'used', error } }
      : { kind: 'failed', error };
    return unwrap(await this.api.settle({ job_id, ...name, ...outcome })).record;
  }

  async get(id: string): Promise<JobRecord> {
    return unwrap(await this.api.get(id)).record;
  }

  async state(id: string): Promise<string> {
    const outcome = await this.api.get(id);
    return outcome.ok ? outcome.value.record.state : String(outcome.error.status);
  }

  async cancel(id: string): Promise<JobRecord> {
    return unwrap(await this.api.cancel(id)).record;
  }

  async activate(id: string): Promise<JobRecord> {
    return unwrap(await this.api.activate(id)).record;
  }

  async redrive(id: string): Promise<JobRecord> {
    return unwrap(await this.api.redrive(id, { deadLetterOnly: false })).record;
  }

  /** The newest dead letters that match, and how many match in all. */
  async deadLetters(request: DeadLetterRequest) {
    const { places, total } = unwrap(await this.api.deadLetterList(request));
    const { jobs } = unwrap(await this.api.deadLettersAt(places.map(({ key }) => key)));
    return { jobs, total };
  }

  async stats() {
    return unwrap(await this.api.stats());
  }

  /** Counts of the states that have any. */
  async counts(): Promise<Record<string, number>> {
    const { counts } = await this.stats();
    return Object.fromEntries(Object.entries(counts).filter(([, n]) => n !== 0));
  }

  async listAll(limit = 200): Promise<JobRecord[]> {
    const all: JobRecord[] = [];
    let before: number | undefined;
    for (;;) {
      const page = unwrap(await this.api.list({ limit, ...(before !== undefined && { before }) }));
      all.push(...page.jobs.map(({ record }) => record));
      before = page.jobs.at(-1)?.position;
      if (!page.has_more) return all;
    }
  }

  /** The object loses its memory. One that nobody has called may be asked to, too. */
  async evict(): Promise<void> {
    const evict = async () => {
      await this.armedAt();
      await evictDurableObject(this.stub);
    };
    // A turn of seconds before it uses up the time that the runtime waits for the object's last references.
    await evict().catch(evict);
  }

  /** The object ends at once, and its calls to handlers break off. */
  async die(): Promise<void> {
    await runInDurableObject(this.stub, (_, state) => state.abort('killed by a test')).catch(() => undefined);
  }

  /** Runs the alarm if one is set, whatever its time. Answers whether one was. */
  alarm(): Promise<boolean> {
    return clock.ring(this.stub);
  }

  /** See {@link clock.passTo}. */
  passTo(time: number): Promise<void> {
    return clock.passTo(this.stub, time);
  }

  /** See {@link clock.jumpTo}. */
  jumpTo(time: number): Promise<void> {
    return clock.jumpTo(this.stub, time);
  }

  /** When the alarm is set for, epoch ms. */
  armedAt(): Promise<number | null> {
    return clock.armedAt(this.stub);
  }

  /** Transactions that the queue makes while `act` runs, savepoints included. */
  async transactionsOf(act: () => Promise<unknown>): Promise<number> {
    const original = await this.inside(({ storage }) => {
      const { transactionSync } = storage;
      const counting = Object.assign(storage, { made: 0 });
      storage.transactionSync = (run) => {
        counting.made++;
        return transactionSync.call(storage, run) as never;
      };
      return { transactionSync };
    });
    await act();
    return this.inside(({ storage }) => {
      storage.transactionSync = original.transactionSync;
      return (storage as unknown as { made: number }).made;
    });
  }

  /** Runs inside the object. */
  inside<T>(look: (inside: Inside) => T | Promise<T>): Promise<T> {
    return runInDurableObject(this.stub, (instance, state) => {
      const object = instance as unknown as QueueObject;
      const engine = object.life.engine as QueueEngine;
      return look({ instance: object, engine, q: engine?.q, storage: state.storage, sql: state.storage.sql });
    });
  }

  /** Enqueues a job alone while a worker waits for one: it is claimed at once. The queue must exist, without work. */
  async addTaken(change: JobChange = {}, request: Partial<ClaimRequest> = {}): Promise<string> {
    const taken = this.api.claim({ count: 1, wait_ms: 20_000, ...request });
    await this.waiting('work', 1);
    const id = await this.add(change);
    const ids = unwrap(await taken).map(({ record }) => record.id);
    if (ids[0] !== id) throw new Error(`The worker that waited was given ${ids}, not ${id}.`);
    return id;
  }

  /** Until so many requests wait here for the end of a job (`ends`) or for work (`work`). */
  async waiting(what: 'ends' | 'work', count: number): Promise<void> {
    await until(
      () =>
        this.inside(({ engine, q }) => {
          const { waiters } = engine.pull as unknown as { waiters: { waiting: Set<unknown> } };
          const { events } = q.observed as unknown as { events: { listeners: Set<unknown> } };
          return (what === 'ends' ? events.listeners : waiters.waiting).size === count;
        }),
      `${count} requests to wait`,
    );
  }

  /** Counts rows from now on. */
  startCounting(): Promise<void> {
    return runInDurableObject(this.stub, (_, { storage }) => startCounting(storage));
  }

  /** What was read and written since the last look. */
  counted(): Promise<RowCount> {
    return runInDurableObject(this.stub, (_, { storage }) => countRows(storage));
  }

  /** Rows that it reads while `act` runs. */
  async rowsRead(act: () => Promise<unknown>): Promise<number> {
    return (await rowsWhile(this.stub, act)).read;
  }

  /** See {@link rowsWritten}. */
  rowsWritten(act: () => Promise<unknown>): Promise<number> {
    return rowsWritten(this.stub, act);
  }

  /** It cannot reach these queues, until it is constructed anew. */
  cutOff(...names: string[]): Promise<void> {
    return this.inside(({ engine }) => {
      const { others } = (engine as unknown as { host: { others: { queue(name: string): unknown } } }).host;
      const { queue } = others;
      others.queue = (name) => {
        if (names.includes(name)) throw new Error(`queue ${name} cannot be reached`);
        return queue(name);
      };
    });
  }

  /** Rows of a query inside the object. */
  rows<T extends Record<string, SqlStorageValue>>(query: string, ...bindings: unknown[]): Promise<T[]> {
    return this.inside(({ sql }) => sql.exec<T>(query, ...bindings).toArray());
  }
}

/** The error of an outcome that must be one. */
export function refusal(outcome: Outcome<unknown>): ErrorData {
  if (outcome.ok) throw new Error(`expected a refusal, got ${JSON.stringify(outcome.value)}`);
  return outcome.error;
}
