/** What lives beside an opened queue and goes on by itself needs of the engine around it. */
import type { QueueState } from './state';

export interface DutyHost {
  readonly q: QueueState;
  /** Epoch ms. */
  now(): number;
  /** Keeps the object alive until the promise settles. */
  keepAlive(promise: Promise<unknown>): void;
  /** Runs an operation in the next shared transaction. */
  write<T>(operation: (now: number) => T): Promise<T>;
  /** Arms the alarm for `at`, epoch ms. */
  wakeAt(at: number): void;
}
