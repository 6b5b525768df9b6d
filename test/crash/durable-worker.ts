/** The worker that pulls jobs with durable steps: the client's own runner. Bundled, and run in the process of the test. */
import { runWorker } from '../../src/client';
import { type Env, workDurably } from './durable';

interface Options {
  port: number;
  collector: string;
  queue: string;
  id: string;
  signal: AbortSignal;
  /** Sends a request when the server may be asked. */
  fetch: typeof fetch;
}

export function pullDurably({ port, collector, queue, id, signal, fetch }: Options): Promise<void> {
  return runWorker<Env>(
    { 'durable.work': workDurably },
    {
      ...{ url: `http://127.0.0.1:${port}`, fetch, id, signal, queues: [queue] },
      ...{ concurrency: 12, visibilityTimeoutMs: 2_000, waitMs: 500, timeoutMs: 10_000, env: { COLLECTOR: collector } },
      ...{ log: () => undefined, onError: () => undefined },
    },
  );
}
