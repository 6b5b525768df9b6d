/** A handler Worker from outside: where it is called, and the signs that it is not there. */

export interface HandlerAnswer {
  status: number;
  retryAfter: string | null;
  body: string;
  /** The body was longer than is read. */
  isCut?: boolean;
}

/** A service binding leads to one Worker, so the host of its requests is only a name. */
export const ORIGIN = 'https://handler.tocsin';

/** A call that never reached a handler. */
export const NOT_RUNNING = 'not_running';

/** {@link NOT_RUNNING} for humans. */
export const WORKER_NOT_RUNNING = 'The handler Worker is not running.';

/** `wrangler dev` answers 503 with this text for a Worker that is not running; other 503s are ordinary failures. */
export const isNotRunning = (answer: HandlerAnswer): boolean =>
  answer.status === 503 && /^Worker "[^"]*" (?:not found|is not compatible)/.test(answer.body.slice(0, 500));
