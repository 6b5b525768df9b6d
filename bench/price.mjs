/**
 * What a million jobs cost on Cloudflare's paid plan, from counted rows and the published rates. Left out: what the plan
 * includes for nothing, storage, and the duration an object is awake (which depends on how busy the queue is).
 */
import { round } from './stats.mjs';

/** Dollars per million. */
export const RATES = { rowWritten: 1.0, rowRead: 0.001, objectRequest: 0.15, workerRequest: 0.3 };

/** Cloudflare Queues, dollars per million messages: a write, a read and a delete at 0.40 each. */
export const CLOUDFLARE_QUEUES = 1.2;

export const FORMULA =
  'written × 1.00 + read × 0.001 + (object requests × 0.15 + Worker requests × 0.30) ÷ batch, in dollars per million jobs';

/** @param life rows written (with alarms) and read per job, and how many jobs share an enqueue request */
export function price({ written, read, batch }) {
  const rows = written * RATES.rowWritten + read * RATES.rowRead;
  // One HTTP request and one call to the object bring a batch in. Calls to a bound handler are free.
  const requests = (RATES.objectRequest + RATES.workerRequest) / batch;
  return { rows: round(rows, 2), requests: round(requests, 3), total: round(rows + requests, 2) };
}
