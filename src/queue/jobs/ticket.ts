import { recallAnswer, rememberAnswer } from '../../durable/inbox';
import { unavailable } from '../../job/errors';
import { decodeId, isUuidV7 } from '../../job/ids';
import { MAX_TICKET_AGE_MS } from '../../rpc/queue';
import type { Stored } from '../store/parts';

/** Refuses a ticket that was given up, or is too old to be remembered. @throws {ApiError} 503 */
export function refuseGivenUp(q: Stored, ticket: string, now: number): void {
  const tooOld = isUuidV7(ticket) && now - decodeId(ticket).time > MAX_TICKET_AGE_MS;
  if (tooOld || recallAnswer(q.store.inbox, answerAbout(ticket), now) !== undefined) throw tookTooLong();
}

export function giveUp(q: Stored, ticket: string, now: number): void {
  rememberAnswer(q.store.inbox, answerAbout(ticket), 'aborted', now);
}

const answerAbout = (ticket: string) => ({ key: `ticket ${ticket}`, hash: '' });

/** 503: the ticket was given up. */
export const tookTooLong = (): Error => unavailable('The batch timed out; nothing was changed.');
