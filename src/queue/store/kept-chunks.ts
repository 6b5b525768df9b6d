/**
 * Numbers of archive chunks with their own retention encode their jobs' common removal moment, so no column or index
 * is needed, and pruning finds the first at the front:
 *
 *     chunk = (moment − 2^44) × 512 + slot         negative, and in the order of the moments
 *
 * Chunks of other jobs are numbered from 1 on, in the order of completion.
 */

import { cell } from '../../durable/sql';

/** Chunks with the same moment. One that finds no slot free stays a millisecond longer. */
const SLOTS = 512;

/** Moments lie below this (epoch ms; the year 2527), which keeps numbers negative and exact. */
const BEYOND = 2 ** 44;

/** The lowest number for this moment, epoch ms. */
const firstNumber = (until: number): number => (until - BEYOND) * SLOTS;

/** The highest number of a chunk that is due at `now`. */
export const lastDue = (now: number): number => firstNumber(Math.floor(now)) + SLOTS - 1;

/** When the first of these chunks is due, epoch ms; undefined when there is none. */
export function firstKeptUntil(sql: SqlStorage): number | undefined {
  const chunk = cell<number>(sql, 'SELECT min(chunk) FROM archive WHERE chunk < 0');
  return chunk === undefined ? undefined : Math.floor(chunk / SLOTS) + BEYOND;
}

/** A free number for a chunk that is due at `until`, epoch ms. */
export function freeNumber(sql: SqlStorage, until: number): number {
  for (let moment = Math.min(until, BEYOND - 1); moment < BEYOND; moment++) {
    const first = firstNumber(moment);
    const taken = 'SELECT max(chunk) FROM archive WHERE chunk >= ? AND chunk < ?';
    const last = cell<number>(sql, taken, first, first + SLOTS);
    if (last === undefined) return first;
    if (last < first + SLOTS - 1) return last + 1;
  }
  throw new Error('No number is free for an archive chunk.');
}
