/**
 * Answers remembered under an idempotency key: written in the transaction that enqueues, so that a request which is sent
 * again, whatever became of the first answer, gets that answer and enqueues nothing.
 */
import { usedOtherwise } from '../../job/errors';
import type { IdempotencyKey } from '../../rpc/receipts';
import type { QueueState } from '../store/state';

/** An answer is remembered so long, ms. */
export const REMEMBER_ANSWER_MS = 24 * 3_600_000;

/** Characters in a part; a row holds 2 MB, and a character takes up to three bytes. */
const PART = 512 * 1024;

/**
 * What was answered under this key, if anything.
 * @throws {ApiError} 409 when it was the answer to another request
 */
export function recallAnswer<T>(q: QueueState, { key, hash }: IdempotencyKey, now: number): T | undefined {
  const parts = q.sql
    .exec<{ hash: string; data: string }>(
      'SELECT hash, data FROM idempotency WHERE key = ? AND expires_at > ? ORDER BY part',
      key,
      now,
    )
    .toArray();
  const [first] = parts;
  if (!first) return undefined;
  if (first.hash !== hash) throw usedOtherwise(key);
  return JSON.parse(parts.map(({ data }) => data).join('')) as T;
}

/**
 * Remembers an answer. One row written for each half megabyte, one more for its expiry.
 * @param forMs how long
 */
export function rememberAnswer(
  q: QueueState,
  { key, hash }: IdempotencyKey,
  answer: unknown,
  now: number,
  forMs = REMEMBER_ANSWER_MS,
): void {
  const text = JSON.stringify(answer);
  const expiresAt = now + forMs;
  q.sql.exec('DELETE FROM idempotency WHERE key = ?', key).toArray();
  for (let part = 0; part * PART < text.length || part === 0; part++) {
    q.sql
      .exec(
        'INSERT INTO idempotency (key, part, hash, expires_at, data) VALUES (?, ?, ?, ?, ?)',
        key,
        part,
        hash,
        expiresAt,
        text.slice(part * PART, (part + 1) * PART),
      )
      .toArray();
  }
  q.wake(expiresAt);
}

/** Answers once under a key: `act` runs only when nothing is remembered. @throws as {@link recallAnswer} and `act` */
export function once<T>(
  q: QueueState,
  idempotency: IdempotencyKey | undefined,
  now: number,
  act: () => T,
  forMs = REMEMBER_ANSWER_MS,
): T {
  if (!idempotency) return act();
  const remembered = recallAnswer<T>(q, idempotency, now);
  if (remembered !== undefined) return remembered;
  const answer = act();
  rememberAnswer(q, idempotency, answer, now, forMs);
  return answer;
}

/** Forgets answers whose time is over, at most `limit` rows. */
export function forgetAnswers(q: QueueState, now: number, limit: number): void {
  if ((oldestAnswer(q) ?? now) > now - REMEMBER_ANSWER_MS) return;
  const due = 'SELECT key, part FROM idempotency WHERE expires_at <= ? ORDER BY expires_at LIMIT ?';
  q.sql.exec(`DELETE FROM idempotency WHERE (key, part) IN (${due})`, now, limit).toArray();
}

/** When the answer was given that is forgotten next; {@link REMEMBER_ANSWER_MS} before that moment, if it is kept longer. */
export function oldestAnswer(q: QueueState): number | undefined {
  const first = q.sql.exec<{ at: number | null }>('SELECT min(expires_at) AS at FROM idempotency').one().at;
  return first === null ? undefined : first - REMEMBER_ANSWER_MS;
}
