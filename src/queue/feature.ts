/**
 * A feature: something a queue does besides answering verbs. Adding one takes a folder below `features/`, and a line
 * in the engine's list (see `docs/reference`).
 */
import type { TargetConfig } from '../dispatch/config';
import type { TransactionStep } from '../durable/group-commit';
import type { MessageKind, OutboxRelay } from '../durable/outbox-relay';
import type { After } from '../durable/timers';
import type { Outcome } from '../job/errors';
import type { WaitingFor } from '../job/waiting';
import type { Others } from './others';
import type { JobRow } from './store/job-row';
import type { QueueParts } from './store/parts';

/** The jobs that an operation is about, by their keys. Asked only if some may be overdue. */
export type About = (q: QueueParts) => Iterable<number | undefined>;

export interface Feature {
  /** When it next has work of its own, epoch ms: the alarm is set for the earliest of all features. */
  due?(now: number): number | undefined;
  /** Work due at this moment (epoch ms) must be done before any read of the queue. Infinity: there is none. */
  readonly overdueAt?: number;
  /** First in every transaction: treats what is due as due. Must not throw because of a single job. */
  before?(now: number): void;
  steps?(now: number, when: 'before' | 'after'): readonly TransactionStep[];
  /** Ends each operation, as a part of it. */
  follow?(now: number): void;
  /** Cleans up, in a transaction of the alarm's own. Bounded: the rest waits for the next alarm. */
  tidy?(now: number): void;
  /** A commit has made jobs available. */
  workArrived?(): void;
  /** Continues long work after every commit and at every alarm. Neither waits nor throws. */
  start?(why: 'commit' | 'alarm'): void;
  /**
   * Why an available job does not run, if this feature is the reason, by the predicates that decide about it. Bounded.
   */
  waitsFor?(row: JobRow, now: number): WaitingFor | undefined;
  /** Its messages to other objects, or to itself later: the outbox relay delivers them. */
  readonly messages?: readonly MessageKind[];
}

export interface Host {
  readonly q: QueueParts;
  readonly targets: readonly TargetConfig[];
  /** One number in [0, 1). */
  readonly random: () => number;
  /** Epoch ms. */
  now(): number;
  /** Keeps the object alive until the promise ends. */
  keepAlive(promise: Promise<unknown>): void;
  readonly after: After;
  write<T>(operation: (now: number) => T): Promise<T>;
  /** Runs an operation in a transaction of its own, at once. @throws what the operation throws */
  writeNow<T>(operation: (now: number) => T): T;
  /** Runs a part of the open transaction in a savepoint: what fails leaves nothing behind. @returns what it threw */
  apart(run: () => void): { error: unknown } | undefined;
  /** As {@link write} on behalf of a request: a refusal comes back as data. */
  request<T>(operation: (now: number) => T): Promise<Outcome<T>>;
  /** Arms the alarm for `at`, epoch ms. */
  wakeAt(at: number): void;
  /** When the alarm is armed for, epoch ms. */
  wakesAt(): number | null;
  /** When the first feature is overdue for readers, epoch ms. */
  overdueAt(): number;
  /** Does the running transaction only continue work after a commit of the same event? */
  following(): boolean;
  /** The next operation is about these jobs: however many are overdue, these are processed before it. */
  about(jobs: About): void;
  readonly others: Others;
  /** Delivers the messages of features. */
  relay(): OutboxRelay;
}
