/**
 * Moves jobs whose unique policy looks across queues. For their lock objects a move is one more enqueue, into the
 * target under a ticket:
 *
 *     reserve ──▶ the target takes the jobs under the ticket ──▶ they go from here ──▶ release
 *
 * So the lock objects have the target on disk before it can show the jobs. An earlier request for the same fingerprint
 * is done, and a later one looks into both queues.
 *
 * If the move is cut off, or is slower than the reservation, the ticket is decided like any other. Either the jobs are
 * in the target, or it will refuse them. Then they are still here, and the move is repeated under another ticket.
 */

import type { Reservations } from '../../across/reservation';
import type { MovedJob } from '../../rpc/operations';
import type { Named, Stored } from '../store/parts';
import { globalFingerprintIn, knownFingerprints } from '../store/unique-keys';

/**
 * Runs `move` while the fingerprints of `jobs` are reserved for `target`; without any it runs at once.
 * @param reservations begins reservations whose ticket this queue can give up
 * @param move has the target take the jobs, under the ticket if there is one, and removes them here
 * @throws {ApiError} 503 when others keep a fingerprint for too long; what `move` throws
 */
export async function moveReserved<T>(
  q: Named & Stored,
  jobs: readonly Pick<MovedJob, 'body'>[],
  target: string,
  reservations: (coordinator: string) => Reservations,
  move: (ticket?: string) => Promise<T>,
): Promise<T> {
  const fingerprints = [...new Set(jobs.flatMap((job) => globalFingerprintIn(job) ?? []))];
  if (fingerprints.length === 0) return move();
  const reserved = reservations(target);
  try {
    await reserved.reserve(fingerprints.map((fingerprint) => ({ fingerprint, queue: target })));
    const moved = await reserved.use(() => move(reserved.ticket));
    const left = new Set(knownFingerprints(q.store.sql, fingerprints));
    reserved.foundVacant(
      fingerprints.flatMap((fingerprint) => (left.has(fingerprint) ? [] : [{ fingerprint, queue: q.name }])),
    );
    return moved;
  } finally {
    await reserved.release();
  }
}
