import type { OpenTelemetry } from '../handler/telemetry';
import type { HandlerWorker } from '../handler/worker-types';
import { namesOf } from '../producer/known';
import type { RetryOptions } from './retry';
import type { Endpoint } from './transport';

export type ClientOptions = Endpoint & {
  /** API key, sent as a bearer token. */
  key?: string | undefined;
  /** How long to wait for each answer, in ms. Default 30000. */
  timeoutMs?: number | undefined;
  /** Aborts all requests with an {@link AbortedError} and sends no more. For one call: `tocsin.with({ signal })`. */
  signal?: AbortSignal | undefined;
  /** How requests are repeated; `false`: never. */
  retry?: RetryOptions | false | undefined;
  /**
   * Choose the ids of jobs in the client, so that an enqueue may be repeated after a lost answer without making a
   * second job. Costs the server a row for each job. Default false.
   */
  safeRetries?: boolean | undefined;
  /** Most jobs in one request when enqueues are gathered, 1 … 1000; 1: never gather. Default 100. */
  maxBatch?: number | undefined;
  /**
   * What `enqueue` answers. `minimal`: the job's given options, and the server's `id`, `state`, `maxAttempts`,
   * `createdAt` and `scheduledAt`. `full`: everything, such as its policies in force; this takes longer. A job that
   * existed already is always shown whole. Default `minimal`.
   */
  answers?: 'minimal' | 'full' | undefined;
  /** How long to gather, in ms. Default: the present turn. A Worker must not send on behalf of another request. */
  linger?: number | undefined;
  /**
   * Send what was gathered over a WebSocket to its queue, in a process that lives long and whose runtime has
   * WebSockets: Node from 22 on, Bun, Deno. Over HTTP otherwise, while no connection holds, and with `answers: 'full'`.
   * End it by {@link TocsinClient.close}: a connection keeps a process alive. Not for Workers, where a connection
   * belongs to the request that opened it. Default false.
   */
  socket?: boolean | undefined;
  /** Receives the server's warnings, as of a job type without handler. Default: `console.warn`, each text once. */
  onWarning?: ((warning: string) => void) | undefined;
  /** What `defineHandlers` returned: jobs of its types get the `defaults` registered there. */
  handlers?: HandlerWorker | undefined;
  /**
   * The module `@opentelemetry/api`: enqueues are then spans, and jobs take the trace along to their handlers.
   * @example
   * import * as otel from '@opentelemetry/api';
   * const tocsin = new TocsinClient({ service: env.TOCSIN, otel });
   */
  otel?: OpenTelemetry | undefined;
  /** Source of randomness in [0, 1). Default `Math.random`. */
  random?: (() => number) | undefined;
  /** Clock, epoch ms. Default `Date.now`. */
  now?: (() => number) | undefined;
  /** Waits between tries. Default: a timer. */
  sleep?: ((ms: number) => Promise<void>) | undefined;
};

export const CLIENT_OPTIONS = namesOf<ClientOptions>({
  ...{ service: true, url: true, fetch: true, key: true, timeoutMs: true, signal: true },
  ...{ retry: true, safeRetries: true },
  ...{ maxBatch: true, answers: true, linger: true, socket: true, onWarning: true, handlers: true, otel: true },
  ...{ random: true, now: true, sleep: true },
});
