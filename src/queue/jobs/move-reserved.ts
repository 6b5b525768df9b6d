/**
 * Moves jobs whose unique policy looks across queues; for their lock objects an enqueue into the target, under a
 * ticket:
 *
 *     reserve ──▶ the target takes the jobs under the ticket ──▶ they go from here ──▶ release
 *
 * So the lock objects know the target before it can show the jobs, and later requests look into both queues. If the
 * move is cut off, the ticket is decided as any other, and a refused move is repeated under another ticket.
 */

import type { Reservations } from '../../across/reservation';
import type { MovedJob } from '../../rpc/operations';
import type { Named, Stored } from '../store/parts';
import { globalFingerprintIn, knownFingerprints } from '../store/unique-keys';

/**
 * Runs `move` while the fingerprints of `jobs` are reserved for `target`; without any it runs at once.
 * @param reservations whose ticket this queue can give up @param move lets the target take the jobs, then removes them
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
