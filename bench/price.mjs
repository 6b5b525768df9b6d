/**
 * What a million jobs cost on Cloudflare's paid plan, from counted rows and requests and the published rates, and what they
 * cost elsewhere. Left out: what each plan includes for nothing, storage, traffic, and the handlers' own time.
 */
import { round } from './stats.mjs';

/** Dollars per million; duration: per million GB-seconds. */
export const RATES = { rowWritten: 1.0, rowRead: 0.001, objectRequest: 0.15, workerRequest: 0.3, duration: 12.5 };

/** Memory that an object is billed for while it is awake. */
const OBJECT_GB = 0.128;
/** Messages of a WebSocket that are billed as one request. */
export const MESSAGES_PER_REQUEST = 20;

export const FORMULA =
  'written × 1.00 + read × 0.001 + object requests × 0.15 + Worker requests × 0.30 + ms awake × 0.0016, in dollars per million jobs';

/**
 * @param life of one job: rows `written` (with alarms) and `read`, `objectRequests`, `workerRequests`, and the `ms` for
 * which it keeps its object awake
 */
export function price({ written, read, objectRequests, workerRequests, ms = 0 }) {
  const rows = written * RATES.rowWritten + read * RATES.rowRead;
  const requests = objectRequests * RATES.objectRequest + workerRequests * RATES.workerRequest;
  const duration = (ms / 1000) * OBJECT_GB * RATES.duration;
  return {
    rows: round(rows, 3),
    requests: round(requests, 3),
    duration: round(duration, 4),
    total: round(rows + requests + duration, 2),
  };
}

/**
 * Other services, for a million messages below 64 KB: dollars per million operations, and the operations of a message.
 * Cloudflare Queues: a write, a read and a delete, each on its own also in a batch; a retry is one more read. SQS, standard
 * queue: send, receive, delete, in tens where they can be; a retry is one more receive. Cloud Tasks: the call that creates a task, and each attempt.
 * QStash: each attempt to deliver.
 */
const SERVICES = {
  'Cloudflare Queues': { rate: 0.4, batch: 3, alone: 3, delayed: 3, retry: 4 },
  SQS: { rate: 0.4, batch: 0.3, alone: 3, delayed: 0.3, retry: 0.4 },
  'Cloud Tasks': { rate: 0.4, batch: 2, alone: 2, delayed: 2, retry: 3 },
  QStash: { rate: 10, batch: 1, alone: 1, delayed: 1, retry: 2 },
};

export const OTHERS = Object.keys(SERVICES);

/** Dollars for a million of this kind: `batch`, `alone`, `delayed` or `retry`. */
export function priceElsewhere(service, kind) {
  const { rate, [kind]: operations } = SERVICES[service];
  return round(rate * operations, 2);
}
