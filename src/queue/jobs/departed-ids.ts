/**
 * Ids that name this queue and whose jobs went to another one. No other object is asked whether such an id is taken. So
 * this queue remembers it: a producer that repeats an old request must not create the job again.
 */
import { recallAnswer, rememberAnswer } from '../../durable/inbox';
import type { Stored } from '../store/parts';

/** A producer repeats a request within this time, ms. */
const REMEMBER_MS = 90 * 86_400_000;

/** No key of a client has a line break, so it cannot be taken for one of these. */
const requestOf = (id: string) => ({ key: `departed\n${id}`, hash: '' });

/** The job with this id goes to another queue. Two rows written. */
export function rememberDeparted(q: Stored, id: string, now: number): void {
  rememberAnswer(q.store.inbox, requestOf(id), true, now, REMEMBER_MS);
}

/** Has the job with this id gone to another queue? */
export function hasDeparted(q: Stored, id: string, now: number): boolean {
  return recallAnswer(q.store.inbox, requestOf(id), now) !== undefined;
}
