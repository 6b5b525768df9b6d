/** Ids of jobs that moved away, known here alone: a repeated old request must not create the job again. */
import { recallAnswer, rememberAnswer } from '../../durable/inbox';
import type { Stored } from '../store/parts';

/** A producer repeats a request within this time, ms. */
const REMEMBER_MS = 90 * 86_400_000;

/** No key of a client has a line break, so none equals one of these. */
const requestOf = (id: string) => ({ key: `departed\n${id}`, hash: '' });

export function rememberDeparted(q: Stored, id: string, now: number): void {
  rememberAnswer(q.store.inbox, requestOf(id), true, now, REMEMBER_MS);
}

export const hasDeparted = (q: Stored, id: string, now: number): boolean =>
  recallAnswer(q.store.inbox, requestOf(id), now) !== undefined;
