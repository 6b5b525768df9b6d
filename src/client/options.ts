/** What a client can be told about itself. */
import type { RetryOptions } from './retry';
import type { Endpoint } from './transport';

/** Settings of a client. */
export type ClientOptions = Endpoint & {
  /** API key, sent as a bearer token. */
  key?: string | undefined;
  /** How long to wait for each answer, in ms. Default 30000. */
  timeoutMs?: number;
  /**
   * Gives up what is under way when it fires, with an {@link AbortedError}; nothing is sent afterwards. For one call:
   * `tocsin.with({ signal })`.
   */
  signal?: AbortSignal | undefined;
  /** How requests are repeated; `false`: never. */
  retry?: RetryOptions | false;
  /**
   * Choose the ids of jobs here, so that an enqueue without an answer can be repeated without making a second job.
   * Costs the server a row for each job. Default false.
   */
  safeRetries?: boolean;
  /** Most jobs in one request when enqueues are gathered, 1 … 1000; 1: never gather. Default 100. */
  maxBatch?: number;
  /**
   * How long to gather, in ms. Default: the present turn only. Set it only where one client serves one request, or
   * outside of Workers: a Worker must not send on behalf of another request.
   */
  linger?: number;
  /** Source of randomness in [0, 1). Default `Math.random`. */
  random?: () => number;
  /** Clock, epoch ms. Default `Date.now`. */
  now?: () => number;
  /** Waits between tries. Default: a timer. */
  sleep?: (ms: number) => Promise<void>;
};
