/** Streams of events as they happen. */
import { type Channel, Feed, timeOf } from '../../across/feed/feed';
import { ENDS, type QueueEvent } from '../../durable/event-log';
import { readQueueName } from '../../job/envelope/fields';
import { invalidRequest } from '../../job/errors';
import { TERMINAL_STATES } from '../../job/states';
import { formatInstant } from '../../job/time';
import { nameGiven, namesOf } from '../../ojs/names';
import { type AppContext, noContent } from '../context';
import { callJob, pathParam, queueNameIn } from '../request/path';
import { booleanParam, queueParam, textParam, wordParam } from '../request/query';
import { EventStream, headersOnly } from './event-stream';
import { eventsOnRecord, keyOf } from './on-record';
import { placeOf, readPlace } from './place';
import { endOf, FORMATS, itemsOf, type Shown, systemItem } from './render';
import { typesParam, typesToFollow } from './types';

export const streamOfJob = (c: AppContext) => stream(c, { job: pathParam(c, 'id') }, booleanParam(c, 'live') !== true);

export const streamOfQueue = (c: AppContext) => stream(c, { queue: queueNameIn(c) });

/** Events of the channel that the request names. */
export async function streamOfChannel(c: AppContext) {
  const channel = readChannel(textParam(c, 'channel') ?? 'all', 'channel');
  const queues = queueParam(c, 'queue', 'queues');
  if (queues === undefined) return stream(c, channel, 'job' in channel && textParam(c, 'after') === FROM_THE_FIRST);
  if (textParam(c, 'channel') !== undefined && ('job' in channel || 'queue' in channel)) {
    throw invalidRequest('queue', 'queue narrows only the channel "all"; omit one of the two.');
  }
  return stream(c, queues.length === 1 ? { queue: queues[0] as string } : { queues });
}

/** `job:ID`, `queue:NAME` or `all`. @throws {ApiError} 400 */
export function readChannel(text: string, field: string): Channel {
  if (text === 'all') return {};
  const [, kind, name = ''] = /^(job|queue):(.+)$/s.exec(text) ?? [];
  if (kind === 'job') return { job: name };
  if (kind === 'queue') return { queue: readQueueName(name, field) };
  throw invalidRequest(field, `${field} must be "job:" and an id, "queue:" and a name, or "all".`);
}

/** In the place of an event, for the channel of a job: tell what is on record. */
const FROM_THE_FIRST = '0';

/** The place from which a client wants events. `isLost`: it named an unknown place. */
function readAfter(c: AppContext, withRecord: boolean): { after?: string; isLost?: true } {
  const asked = textParam(c, nameGiven('StreamQuery', 'after', c.req.query()));
  const header = c.req.header('Last-Event-ID');
  // A client that comes back names the last event that it had, not its first position.
  if (header) {
    const after = placeOf(header);
    return after === undefined ? { isLost: true } : { after };
  }
  return asked === undefined || (withRecord && asked === FROM_THE_FIRST) ? {} : { after: readPlace(asked, 'after') };
}

/** @param withRecord it begins with what is on record of its job, and so after each gap */
async function stream(c: AppContext, channel: Channel, withRecord = false) {
  const types = typesParam(c, ...namesOf('StreamQuery', 'types'));
  const format = wordParam(c, 'format', FORMATS, 'flat');
  const { after, isLost } = readAfter(c, withRecord);
  if (c.req.method === 'HEAD') return headersOnly(c);
  // The end of a job is needed in any case.
  const followed = 'job' in channel ? undefined : typesToFollow(types);
  const feed = await Feed.open(c.env, channel, { after, types: followed });
  const shown: Shown = { format, types: types && new Set(types), keyed: withRecord };
  const now = Date.now();
  const about = (event: 'system.gap' | 'system.events_dropped', id: string, members: Record<string, unknown>) =>
    systemItem(event, id, members, { format, now: Date.now() });

  const { job } = feed;
  const hasEnded = job !== undefined && TERMINAL_STATES.includes(job.state);
  if (hasEnded && after !== undefined && feed.missed.length === 0 && timeOf(after) >= (job.ended_at ?? now)) {
    feed.close();
    // It has received everything. This answer keeps a browser from asking again.
    return noContent(c);
  }
  const record = withRecord ? new OnRecord(c, feed) : undefined;
  const isGap = after === undefined || isLost || feed.gaps.length > 0;
  const told = isGap ? await record?.read(after) : undefined;
  const out = new EventStream(c, { beat: () => feed.beat(), over: () => feed.close() });
  let last = after ?? feed.position;
  const send = (happened: readonly QueueEvent[], areOnRecord = false) => {
    const events = record?.fresh(happened) ?? happened;
    last = events.at(-1)?.id ?? last;
    out.send(
      events.flatMap((event) => itemsOf(event, shown)),
      areOnRecord,
    );
    if (job && events.some(({ type }) => ENDS.has(type))) out.end();
  };
  if (told) send(told, true);
  else if (isLost) out.send([about('system.gap', feed.position, {})]);
  if (!told && feed.gaps.length > 0)
    out.send([about('system.gap', last, { after, queues: feed.gaps.filter(Boolean) })]);
  send(feed.missed);
  if (told?.some(({ type }) => ENDS.has(type))) return out.response();
  if (job && hasEnded) {
    if (feed.missed.length === 0) send([endOf(job, feed.queue)]);
    out.end();
    return out.response();
  }
  out.mark(feed.position);
  last = feed.position;
  feed.start({
    events: send,
    gap: (from, queue) => {
      if (record)
        return void record.read(from).then(
          (again) => send(again, true),
          () => out.end(),
        );
      out.send([about('system.gap', last, { after: from, queues: queue ? [queue] : [] })]);
    },
    dropped: (count, from, queue) => {
      const members = { dropped: count, ...(from && { after: from }), ...(queue && { queue }) };
      out.send([about('system.events_dropped', last, members)]);
    },
    ended: () => out.end(),
  });
  return out.response();
}

/** Keys that a stream remembers. */
const MOST_KEYS = 5_000;

/** The record of a job whose stream begins with it: what was sent is not sent again. */
class OnRecord {
  private readonly sent = new Set<string>();

  constructor(
    private readonly c: AppContext,
    private readonly feed: Feed,
  ) {}

  /** @param after from the moment of this event on. @throws {ApiError} 404, and the feed is closed */
  async read(after: string | undefined): Promise<QueueEvent[]> {
    const story = await this.feed.orClose(callJob(this.c, (queue, id) => queue.story(id), this.feed.job?.id));
    return eventsOnRecord(story, after === undefined ? 0 : timeOf(after));
  }

  /** Those that were not sent yet. From now on they were. */
  fresh(events: readonly QueueEvent[]): QueueEvent[] {
    return events.filter((event) => {
      const key = keyOf(event);
      const isNew = !this.sent.has(key);
      this.sent.add(key);
      if (this.sent.size > MOST_KEYS) this.sent.delete(this.sent.values().next().value as string);
      return isNew;
    });
  }
}

const LAST_PROGRESS: Readonly<Record<string, string>> = {
  completed: 'completed',
  cancelled: 'cancelled',
  discarded: 'failed',
};

/** What a report of progress says besides. */
interface Said {
  message?: unknown;
  data?: unknown;
}

/** Each report of a job's progress twice, named and unnamed, and how the job ends. */
export async function progressStream(c: AppContext) {
  if (c.req.method === 'HEAD') return headersOnly(c);
  const id = pathParam(c, 'id');
  const feed = await Feed.open(c.env, { job: id });
  const { progress, at, state, ...said } = await feed.orClose(callJob(c, (queue) => queue.progress(id)));
  const out = new EventStream(c, { beat: () => feed.beat(), over: () => feed.close() });
  const tell = (place: string, name: string, data: Record<string, unknown>) =>
    out.message(place, { job_id: id, ...data }, name);
  const report = (place: string, at: number, progress: number, { message = null, data = null }: Said) => {
    const told = { progress, message, data, updated_at: formatInstant(at) };
    tell(place, 'progress', told);
    out.message(place, { job_id: id, ...told });
  };
  if (progress !== undefined && at !== undefined) report(feed.position, at, progress, said);
  const end = LAST_PROGRESS[state];
  if (end) {
    tell(feed.position, end, { state, progress: progress ?? null });
    out.end();
    return out.response();
  }
  feed.start({
    events: (events) => {
      for (const { id: place, type, data, time, change } of events) {
        if (type === 'job.progress') {
          report(place, time, (data.progress as number) / 100, data);
        } else if (ENDS.has(type)) {
          const state = change?.to ?? 'discarded';
          tell(place, LAST_PROGRESS[state] ?? 'failed', { state, updated_at: formatInstant(time) });
          out.end();
        }
      }
    },
    ended: () => out.end(),
  });
  return out.response();
}
