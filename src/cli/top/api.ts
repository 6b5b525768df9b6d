/** The calls of `top`: reads that are repeated after a failure, writes that are not, and events as they happen. */
import { TocsinClient } from '../../client/client';
import type { QueueEvent } from '../../client/follow';
import { requestsTo } from '../connection';
import type { Endpoint } from '../failure';

export interface Write {
  method: 'POST' | 'PATCH' | 'DELETE';
  path: string;
  body?: Readonly<Record<string, unknown>>;
}

export type Api = ReturnType<typeof createApi>;

/** @param signal ends whatever continues */
export function createApi(endpoint: Endpoint, signal: AbortSignal) {
  // Warnings to producers: there is no place for them on the screen.
  const onWarning = () => undefined;
  const requests = requestsTo(endpoint, { signal, onWarning });
  const client = new TocsinClient({ ...endpoint, signal, onWarning });
  return {
    /** @param path below `/ojs/v1`; names in it as `pathTo` writes them @throws {TocsinError} */
    get: async <T>(path: string) => (await requests.safely('GET', path)) as T,
    write: async ({ method, path, body }: Write) => {
      const answer = await requests.once(method, path, body && JSON.stringify(body));
      return (answer ?? {}) as Readonly<Record<string, unknown>>;
    },
    /** Events of all queues from now on, until `signal` fires. @param onConnection without an error: connected */
    follow: async function* (onConnection: (error?: Error) => void): AsyncGenerator<QueueEvent> {
      onConnection();
      for await (const event of client.events.follow({}, { onConnection })) {
        // It comes with the event that says why.
        if (event.type !== 'job.state_changed') yield event;
      }
    },
  };
}
