import type { FeedEvent } from '../contract/event-messages';
import { messageOf, orThrow } from '../job/thrown';
import { AbortedError, aborted, NotFoundError, TocsinError, unanswered } from '../producer/errors';
import { type Named, named } from '../producer/names';
import { malformed } from './answers';
import { messagesOf, type StreamMessage } from './event-stream';
import { parametersFrom } from './pages';
import { checked, pathTo } from './requests';
import { pause, type Retrier } from './retry';
import type { Open } from './transport';

/** Which events to follow. Without `queue` and `job`: those of all queues, and of the workers. */
export interface FollowQuery {
  queue?: string | readonly string[];
  job?: string;
  /** With `job`: begin with what is on record of it. Default: true. */
  history?: boolean;
  /** Names of events, or of kinds: `job.*`. */
  types?: readonly string[];
  /** Continue after the event with this id. Default: from now on. */
  after?: string | undefined;
}

export interface FollowOptions {
  /** Called when the connection is lost, with the error, and when it is there again, without. */
  onConnection?: (error?: TocsinError) => void;
}

export interface Following {
  open: Open;
  retrier: Retrier;
}

/** The server shows every 15 s that it is alive. */
const SILENT_MS = 45_000;

/** Pauses before connecting again, in ms: the first, unless the server names one, and the longest. */
const FIRST_PAUSE_MS = 3_000;
const LONGEST_PAUSE_MS = 30_000;

/** Ids of events that a server may send again. */
const REMEMBERED = 2_000;

const ENDS: ReadonlySet<unknown> = new Set(['job.completed', 'job.discarded', 'job.cancelled', 'job.expired']);
const LAST_STATES: ReadonlySet<unknown> = new Set(['completed', 'discarded', 'cancelled']);

/** Follows; ends when a job that is followed ends. */
export async function* follow(
  following: Following,
  query: FollowQuery,
  options: FollowOptions,
): AsyncGenerator<QueueEvent> {
  const seen = new Set<string>();
  const isOfJob = query.job !== undefined;
  for await (const { data } of received(following, pathOf(query), query.after, { ...options, isOfJob })) {
    const event = data === undefined ? undefined : eventOf(data);
    if (!event || isRepeated(event, seen)) continue;
    yield event;
    if (isOfJob && isEnd(event)) return;
  }
}

/** The messages of a stream, over as many connections as it takes. @param last the place to continue from */
export async function* received(
  { open, retrier }: Following,
  path: string,
  last: string | undefined,
  { onConnection, isOfJob }: FollowOptions & { isOfJob: boolean },
): AsyncGenerator<StreamMessage> {
  const { signal } = retrier;
  let firstPause = FIRST_PAUSE_MS;
  let failures = 0;
  let wasThere = false;
  let isLost = false;
  for (;;) {
    const connection = new AbortController();
    let retryAfterMs = 0;
    try {
      const body = await open(path, last === undefined ? {} : { 'Last-Event-ID': last }, connection.signal);
      // There is nothing more to come.
      if (!body) return;
      if (isLost) onConnection?.();
      isLost = false;
      failures = 0;
      wasThere = true;
      for await (const message of messagesOf(body, SILENT_MS)) {
        firstPause = message.retry ?? firstPause;
        last = message.id || last;
        yield message;
      }
    } catch (error) {
      if (signal?.aborted) throw error instanceof AbortedError ? error : aborted(signal, false);
      // A job that is no longer kept has no further events.
      if (wasThere && isOfJob && error instanceof NotFoundError) return;
      if (error instanceof TocsinError && !error.retryable) throw error;
      const failure = error instanceof TocsinError ? error : brokeOff(error);
      retryAfterMs = failure.retryAfterMs ?? 0;
      if (!isLost) onConnection?.(failure);
      isLost = true;
    } finally {
      connection.abort();
    }
    const ceiling = Math.min(LONGEST_PAUSE_MS, firstPause * 2 ** Math.min(failures++, 10));
    await pause(retrier, Math.max(retryAfterMs, ceiling * (0.5 + retrier.random() / 2)));
    if (signal?.aborted) throw aborted(signal, false);
  }
}

const CONDITIONS = { queue: true, job: true, types: true, history: true };

function pathOf({ after: _, ...conditions }: FollowQuery): string {
  const { queue, job, types, history } = checked<Omit<FollowQuery, 'after'>>(conditions, CONDITIONS);
  if (queue !== undefined && job !== undefined) throw new TypeError('events.follow: name a queue or a job, not both');
  if (history !== undefined && job === undefined) throw new TypeError('events.follow: history needs a job');
  const live = history === false ? true : undefined;
  const parameters = parametersFrom({ types, format: 'cloudevents', live });
  if (job !== undefined) return pathTo`/jobs/${job}/events?` + parameters;
  if (typeof queue === 'string') return pathTo`/queues/${queue}/events?` + parameters;
  if (queue !== undefined) parameters.set('queue', queue.join(','));
  return `/events/stream?${parameters}`;
}

const eventOf = (data: string): QueueEvent =>
  orThrow(
    () => named(JSON.parse(data)) as QueueEvent,
    () => malformed('an event'),
  );

/** Has it come before? Messages about the stream never repeat. @param seen ids and keys so far */
function isRepeated({ id: place, type, data }: QueueEvent, seen: Set<string>): boolean {
  if (type.startsWith('system.')) return false;
  const id = typeof data.key === 'string' ? data.key : place;
  if (seen.has(id)) return true;
  seen.add(id);
  if (seen.size > REMEMBERED) for (const oldest of [...seen].slice(0, REMEMBERED / 2)) seen.delete(oldest);
  return false;
}

const isEnd = ({ type, data }: QueueEvent): boolean =>
  ENDS.has(type) || (type === 'job.state_changed' && LAST_STATES.has(data.to));

const brokeOff = (cause: unknown) => unanswered(`The event stream was interrupted: ${messageOf(cause)}`, true, cause);

/** Something that happened. `data` is in the wire's names. */
export type QueueEvent = Named<FeedEvent>;
