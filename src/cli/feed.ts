/** The live feed that `tocsin tail` follows. */
import { setTimeout as pause } from 'node:timers/promises';
import type { TocsinClient } from '../client/client';
<<<<<<< HEAD
import type { QueueEvent } from '../client/events';
import { TocsinError } from '../producer/errors';
=======
import { TocsinError } from '../client/errors';
import type { QueueEvent } from '../client/event';
>>>>>>> 8a0ffaa (Let the client follow the live feed, over any break in the connection)

/** Events as they happen, until the signal fires. */
export type Feed = (signal: AbortSignal) => AsyncIterable<QueueEvent>;

/** What polling needs. */
export interface PollOptions {
  queue?: string | readonly string[];
  /** Between two looks, in ms. */
  everyMs?: number;
  /** Called when the queue stops answering (with the error), and when it answers again (without). */
  onConnection?: (error?: unknown) => void;
}

/**
 * Follows the feed by asking again and again for the events after the last one. A queue that does not answer for a while is
 * asked again; one that refuses ends the feed.
 */
export function polledFeed(tocsin: TocsinClient, options: PollOptions = {}): Feed {
  const { queue, everyMs = 500, onConnection } = options;
  return async function* follow(signal) {
    const client = tocsin.with({ signal });
    let lost = false;
    let last = await client.events.latest();
    while (!signal.aborted) {
      try {
        for await (const event of client.events.list({ ...(queue !== undefined && { queue }), after: last })) {
          last = event.id;
          yield event;
        }
        if (lost) onConnection?.();
        lost = false;
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof TocsinError && error.retryable)) throw error;
        if (!lost) onConnection?.(error);
        lost = true;
      }
      await pause(everyMs, undefined, { signal }).catch(() => undefined);
    }
  };
}
