/** Which moves of a job are counted, and as what. */
import type { Move } from '../job/states';
import type { Counter } from './meter';

export const COUNTED: Partial<Record<Move, Counter>> = {
  commit: 'enqueued',
  retry: 'retried',
  discard: 'discarded',
  quarantine: 'discarded',
  drop: 'discarded',
  purge: 'discarded',
  cancel: 'cancelled',
  expire: 'expired',
};

/** Moves by which an attempt fails. */
export const FAILS: ReadonlySet<Move> = new Set<Move>(['retry', 'discard']);
