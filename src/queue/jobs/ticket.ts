/** Tickets: what an enqueue or a move is known by to its coordinator, which can give it up. */
import { recallAnswer, rememberAnswer } from '../../durable/inbox';
import { unavailable } from '../../job/errors';
import { decodeId, isUuidV7 } from '../../job/ids';
import { MAX_TICKET_AGE_MS } from '../../rpc/queue';
import type { Stored } from '../store/parts';

/**
 * Refuses what stands under a ticket that was given up: somebody waited for it in vain, asked for the decision, and went
 * on. Refuses a ticket too that is so old that nobody remembers it.
 * @throws {ApiError} 503
 */
export function refuseGivenUp(q: Stored, ticket: string, now: number): void {
  const tooOld = isUuidV7(ticket) && now - decodeId(ticket).time > MAX_TICKET_AGE_MS;
  if (tooOld || recallAnswer(q.store.inbox, answerAbout(ticket), now) !== undefined) throw tookTooLong();
}

/** Gives a ticket up. It is remembered for as long as something may come late under it. */
export function giveUp(q: Stored, ticket: string, now: number): void {
  rememberAnswer(q.store.inbox, answerAbout(ticket), 'aborted', now);
}

const answerAbout = (ticket: string) => ({ key: `ticket ${ticket}`, hash: '' });

/** 503: it was given up. */
export function tookTooLong(): Error {
  return unavailable('The batch timed out; nothing was changed.');
}
