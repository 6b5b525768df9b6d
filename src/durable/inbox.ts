/** Answers to repeatable messages by key, written in the transaction that acts: a repetition changes nothing. */
import { usedOtherwise } from '../job/errors';
import { piecesOf } from '../job/text';
import { LIMIT, rows } from './sql';

export interface Inbox {
  readonly sql: SqlStorage;
  /** Something that the running transaction wrote becomes due at `at`, epoch ms. */
  wake(at: number): void;
}

export interface RequestKey {
  key: string;
  /** Hash of what was asked for. */
  hash: string;
}

/** Default retention of an answer; ms. */
export const REMEMBER_ANSWER_MS = 24 * 3_600_000;

/** Characters in a part; a row holds 2 MB, and a character takes up to three bytes. */
const PART = 512 * 1024;

/** The earlier answer under this key, if any. @throws {ApiError} 409 when it was the answer to another request */
export function recallAnswer<T>(q: Inbox, { key, hash }: RequestKey, now: number): T | undefined {
  const query = 'SELECT hash, data FROM inbox WHERE key = ? AND expires_at > ? ORDER BY part';
  const parts = rows<{ hash: string; data: string }>(q.sql, query, key, now);
  const [first] = parts;
  if (!first) return undefined;
  if (first.hash !== hash) throw usedOtherwise(key);
  return JSON.parse(parts.map(({ data }) => data).join('')) as T;
}

/** Remembers an answer for `forMs`. One row written for each half megabyte, one more for its expiry. */
export function rememberAnswer(
  q: Inbox,
  { key, hash }: RequestKey,
  answer: unknown,
  now: number,
  forMs = REMEMBER_ANSWER_MS,
): void {
  const text = JSON.stringify(answer);
  const expiresAt = now + forMs;
  rows(q.sql, 'DELETE FROM inbox WHERE key = ?', key);
  const insert = 'INSERT INTO inbox (key, part, hash, expires_at, data) VALUES (?, ?, ?, ?, ?)';
  for (const [part, piece] of piecesOf(text, PART).entries()) rows(q.sql, insert, key, part, hash, expiresAt, piece);
  q.wake(expiresAt);
}

/** Answers once under a key: `act` runs only when nothing is remembered. @throws as {@link recallAnswer} and `act` */
export function answerOnce<T>(
  q: Inbox,
  request: RequestKey | undefined,
  now: number,
  act: () => T,
  forMs = REMEMBER_ANSWER_MS,
): T {
  if (!request) return act();
  const remembered = recallAnswer<T>(q, request, now);
  if (remembered !== undefined) return remembered;
  const answer = act();
  rememberAnswer(q, request, answer, now, forMs);
  return answer;
}

/** Forgets expired answers, at most `limit` rows. @returns how many */
export function forgetAnswers(q: Inbox, now: number, limit: number): number {
  if ((oldestAnswer(q) ?? now) > now - REMEMBER_ANSWER_MS) return 0;
  const due = `SELECT key, part FROM inbox WHERE expires_at <= ? ORDER BY expires_at ${LIMIT}`;
  return rows(q.sql, `DELETE FROM inbox WHERE (key, part) IN (${due}) RETURNING part`, now, limit).length;
}

/** When the answer that expires next was given; {@link REMEMBER_ANSWER_MS} before its expiry, if it is kept longer. */
export function oldestAnswer(q: Inbox): number | undefined {
  const first = q.sql.exec<{ at: number | null }>('SELECT min(expires_at) AS at FROM inbox').one().at;
  return first === null ? undefined : first - REMEMBER_ANSWER_MS;
}
