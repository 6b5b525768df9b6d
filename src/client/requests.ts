/** The ways to send a request, by what may be done when there was no answer to it. */
import { NotFoundError } from './errors';
import { type Retrier, withRetries } from './retry';
import type { Send } from './transport';

export interface Requests {
  /** For what has the same effect sent twice as sent once: sent again whatever became of it. */
  safely: Send;
  /** For everything else: sent again only when it was refused unseen. */
  once: Send;
  /** Sends a `DELETE`; what is gone after a try without an answer counts as deleted. */
  remove: (path: string) => Promise<void>;
}

/** Makes {@link Requests} of a function that sends one. */
export function createRequests(send: Send, retrier: Retrier): Requests {
  return {
    safely: (method, path, body) => withRetries(retrier, true, () => send(method, path, body)),
    once: (method, path, body) => withRetries(retrier, false, () => send(method, path, body)),
    remove: (path) =>
      withRetries(retrier, true, async ({ mayHaveHappened }) => {
        try {
          await send('DELETE', path);
        } catch (error) {
          if (!(mayHaveHappened && error instanceof NotFoundError)) throw error;
        }
      }),
  };
}
