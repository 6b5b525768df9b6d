/** The jobs that are enqueued: about a hundred bytes, as a job that sends a mail would have. */
import { call, load, request } from './http.mjs';

/** One job as a producer writes it. */
export function job(
  queue,
  { type = 'bench.noop', args = [{ to: 'someone@example.com', template: 'welcome', n: 1 }], ...options } = {},
) {
  return { type, args, options: { queue, ...options } };
}

/** The bytes of a request that enqueues `batch` of these jobs. `minimal`: asks for an answer without what it brings */
export function enqueueRequest(batch, one, minimal = false) {
  const headers = minimal ? 'Prefer: return=minimal\r\n' : '';
  return batch === 1
    ? request('POST', '/ojs/v1/jobs', one, headers)
    : request('POST', '/ojs/v1/jobs/batch', { jobs: Array.from({ length: batch }, () => one) }, headers);
}

/** Enqueues `count` jobs, `batch` to a request, one request after the other. @throws when one is refused */
export async function fill(port, count, batch, one) {
  const bytes = enqueueRequest(batch, one);
  let left = Math.ceil(count / batch);
  const { errors } = await load({ port, connections: 1, next: () => (left-- > 0 ? bytes : undefined) });
  if (errors > 0) throw new Error(`${errors} enqueue requests were refused.`);
}

export async function pause(port, queue) {
  // Only a queue that exists is paused.
  await call(port, 'POST', '/ojs/v1/queues', { name: queue }).catch(() => undefined);
  return await call(port, 'POST', `/ojs/v1/queues/${queue}/pause`);
}
export const resume = (port, queue) => call(port, 'POST', `/ojs/v1/queues/${queue}/resume`);
export const configure = (port, queue, change) => call(port, 'PUT', `/ojs/v1/queues/${queue}/config`, change);
/** See `workers/queue.ts`. */
export const bench = (port, action, queue) => call(port, 'GET', `/bench/${action}/${queue}`);
