/** Tickets: what an enqueue or a move is known by to its coordinator, which can give it up. */
import { unavailable } from '../../job/errors';
import { decodeId, isUuidV7 } from '../../job/ids';
import { MAX_TICKET_AGE_MS } from '../../rpc/queue';
import { type Decision, readBatch } from '../store/batches';
import type { QueueState } from '../store/state';

/**
 * Refuses what stands under a ticket that was given up: somebody waited for it in vain, asked for the decision, and went
 * on. Refuses a ticket too that is so old that nobody remembers it.
 * @throws {ApiError} 503
 */
export function refuseGivenUp(q: QueueState, ticket: string, now: number): void {
  const tooOld = isUuidV7(ticket) && now - decodeId(ticket).time > MAX_TICKET_AGE_MS;
  if (tooOld || readBatch<Decision>(q, ticket, 'coordinator')?.committed === false) throw tookTooLong();
}

/** 503: it was given up. */
export function tookTooLong(): Error {
  return unavailable('The batch took too long and was given up; nothing was changed.');
}
