/** Batches over several queues, as the documents have it: all or nothing, and until then nothing at all. */
import type { JobOrder, Model, ModelJob } from './model';

export type Act = 'cancel' | 'retry' | 'delete' | 'purge';

/** A batch of which this queue has a share. */
export interface Batch {
  id: string;
  /** Does this queue decide about it, or another one? */
  isOurs: boolean;
  at: number;
  state: 'prepared' | 'committed' | 'aborted';
  /** The job of the other queue that a decided batch replaces: nothing is committed before it has ended. */
  replaced?: 'open' | 'ended';
  /** What the other queue has decided, or has been told. */
  there: 'open' | 'committed' | 'aborted';
  /** Jobs that come to be by it; without `act`. */
  ids: string[];
  act?: Act;
  /** Of those that it acts on. */
  wanted: string[];
}

export const batchesOf = (model: Model): Batch[] => model.part<Batch[]>('shares', () => []);

/** A driver that is slower than this is refused, ms; shares that nobody finishes are asked about after that time. */
export const MAX_AGE_MS = 60_000;
export const CHECK_AFTER_MS = 10_000;

/** States of jobs that each action takes. */
const TAKES: Record<Act, readonly string[]> = {
  cancel: ['scheduled', 'available', 'pending', 'retryable'],
  retry: ['discarded', 'cancelled', 'retryable'],
  delete: ['completed', 'cancelled', 'discarded'],
  purge: ['scheduled', 'available', 'pending', 'retryable', 'completed', 'cancelled', 'discarded'],
};

/** Jobs that do not exist yet for anybody. */
export function hold(model: Model, batch: Batch, orders: readonly JobOrder[], now: number): void {
  const placement = model.enqueue(orders, now);
  if (!('placed' in placement)) throw new Error('a job of a batch is not unique');
  for (const [at, { job }] of placement.placed.entries()) {
    job.id = batch.ids[at] as string;
    job.state = 'gone';
    job.undecided = batch.id;
  }
}

/** May it be locked? `locked`: something else is being decided about it. */
export function mayLock(model: Model, job: ModelJob, act: Act, now: number): boolean | 'locked' {
  if (job.undecided !== undefined) return job.state === 'gone' ? false : 'locked';
  return TAKES[act].includes(model.stateOf(job, now));
}

export function lock(batch: Batch, jobs: readonly ModelJob[]): void {
  // A completed job needs no lock: nothing but a removal can happen to it.
  for (const job of jobs) if (job.state !== 'completed') job.undecided = batch.id;
}

export function commit(model: Model, batch: Batch, now: number): void {
  if (batch.state !== 'prepared') return;
  if (batch.replaced === 'open') throw new Error(`${batch.id} is committed, and what it replaces has not ended`);
  batch.state = 'committed';
  for (const job of model.jobs) {
    if (job.undecided !== batch.id) continue;
    delete job.undecided;
    if (batch.act) act(model, job, batch.act, now);
    else job.state = job.order.pending ? 'pending' : 'waiting';
  }
  if (batch.act !== 'delete' && batch.act !== 'purge') return;
  for (const job of model.jobs) if (job.state === 'completed' && batch.wanted.includes(job.id)) job.state = 'gone';
}

function act(model: Model, job: ModelJob, action: Act, now: number): void {
  if (action === 'cancel') model.cancel(job, now);
  else if (action === 'retry') model.redrive(job, now);
  else job.state = 'gone';
}

export function abort(model: Model, batch: Batch): void {
  if (batch.state !== 'prepared' || batch.replaced) return;
  batch.state = 'aborted';
  for (const job of model.jobs) {
    if (job.undecided !== batch.id) continue;
    delete job.undecided;
    // One that did not exist will never have been.
    if (!batch.act) job.forgotten = true;
  }
}
