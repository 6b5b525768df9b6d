/** The worker that pulls jobs with durable steps or children: the client's own runner, in the process of the test. */
import { runWorker } from '../../src/client';
import { families } from './children';
import { type Env, workDurably } from './durable';

interface Options {
  port: number;
  collector: string;
  queues: string[];
  id: string;
  signal: AbortSignal;
  /** Sends a request when the server may be asked. */
  fetch: typeof fetch;
}

export function pullDurably({ port, collector, queues, id, signal, fetch }: Options): Promise<void> {
  return runWorker<Env>(
    { 'durable.work': workDurably, ...families },
    {
      ...{ url: `http://127.0.0.1:${port}`, fetch, id, signal, queues },
      ...{ concurrency: 12, visibilityTimeoutMs: 2_000, waitMs: 500, timeoutMs: 10_000, env: { COLLECTOR: collector } },
      ...{ log: () => undefined, onError: () => undefined },
    },
  );
}
