/**
 * The live feed of a job, a queue, several, or all with the workers. Each object is followed over its own socket,
 * which lets it sleep; a feed of all follows the directory for new queues.
 */
import type { Env } from '../../config';
import { Allowance } from '../../durable/allowance';
import type { QueueEvent } from '../../durable/event-log';
import type { FollowRequest, Hello, StreamNews } from '../../durable/feed-messages';
import { askToFollow } from '../../durable/followed';
import { inParallel } from '../../durable/parallel';
import { type Outcome, unwrap } from '../../job/errors';
import { decodeId, mintId } from '../../job/ids';
import { type FollowedJob, QUEUE_CREATED } from '../../rpc/follow';
import { directoryStub, queueStub } from '../../rpc/stubs';
import { withJob } from '../locate';
import { busiestQueues, queuesOf } from '../queues';
import { Link } from './link';

/** What is followed. `queues`: these; absent: all, and the workers. */
export type Channel = { job: string } | { queue: string } | { queues?: readonly string[] };

export interface FeedOptions {
  /** Only events of these types. Default: all. */
  types?: readonly string[] | undefined;
  /** Everything up to the event with this id is known. */
  after?: string | undefined;
  /** Of a job: also this output stream. */
  stream?: string | undefined;
}

/** The receiver of the feed. `queue` is absent for the workers. */
export interface FeedSink {
  /** Oldest first, within one queue. */
  events(events: readonly QueueEvent[]): void;
  /** Something has happened in this queue, whether its events are sent or were left out. */
  touched?(queue: string | undefined): void;
  /** Events of this queue after this one may be missing. */
  gap?(after: string, queue: string | undefined): void;
  /** This many events of this queue were left out; `after`: the last one before them. */
  dropped?(count: number, after: string | undefined, queue: string | undefined): void;
  /** Chunks of the output stream that is followed. */
  stream?(news: StreamNews): void;
  /** Nothing follows. `gone`: what was followed is deleted. `lost`: it cannot be reached. */
  ended(why: 'gone' | 'lost'): void;
}

/** Maximum objects per follower; of very many queues the busiest, and the first new ones. */
const MAX_LINKS = 256;

/** Queues whose sockets are opened at a time. */
const WIDTH = 20;

/** Ids of different queues are in order to about this, ms; a follower of several receives these events again. */
const OVERLAP_MS = 1_000;

const WORKERS = '';

/** The id of an event before all others of a moment, epoch ms. */
const idAt = (time: number): string => `evt_${mintId(Math.max(time, 0), 0, 0)}`;

export class Feed {
  private readonly links = new Map<string, Link>();
  private readonly allowance = new Allowance();
  private sink: FeedSink | undefined;
  private isClosed = false;
  /** The job that is followed, as it was at the beginning. */
  job: FollowedJob | undefined;
  queue = '';
  /** Where the feed begins, as the id of an event. */
  position = idAt(Date.now());
  /** What happened since `after`, oldest first. */
  missed: QueueEvent[] = [];
  /** Queues whose events since `after` may be incomplete. */
  readonly gaps: (string | undefined)[] = [];

  private timer: ReturnType<typeof setTimeout> | undefined;

  private constructor(
    private readonly env: Env,
    private readonly channel: Channel,
    private readonly options: FeedOptions,
  ) {}

  private get isOfSeveral(): boolean {
    return !('queue' in this.channel || 'job' in this.channel);
  }

  /** Begins to follow. @throws {ApiError} 404 when there is no such job or queue; 422 when too many are named */
  static async open(env: Env, channel: Channel, options: FeedOptions = {}): Promise<Feed> {
    const feed = new Feed(env, channel, options);
    await feed.orClose(feed.openAll());
    feed.missed.sort((a, b) => (a.id < b.id ? -1 : 1));
    return feed;
  }

  /** Waits for what is read once it is open. @throws as that, and it is closed */
  async orClose<T>(read: Promise<T>): Promise<T> {
    try {
      return await read;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  private async openAll(): Promise<void> {
    const { env, channel } = this;
    const { after } = this.options;
    if ('job' in channel) {
      const hello = unwrap(
        await withJob(env, channel.job, (_, queue) => this.link(queue, { job: channel.job, after })),
      );
      this.job = hello.about;
      this.queue = [...this.links.keys()][0] ?? '';
      this.position = hello.position;
    } else if ('queue' in channel) {
      this.position = unwrap(await this.link(channel.queue, { after })).position;
    } else {
      const from = after === undefined ? undefined : idAt(timeOf(after) - OVERLAP_MS);
      const all = channel.queues === undefined;
      // Before the queues are listed, so that none is created unseen.
      if (all) unwrap(await this.link(WORKERS, { after, from }));
      const names = channel.queues ? await queuesOf(env, { queues: channel.queues }) : await this.all();
      const open = async (queue: string) => {
        const opened = await this.link(queue, { after, from });
        // When all are followed, one may be deleted meanwhile.
        if (!opened.ok && !(all && opened.error.status === 404)) unwrap(opened);
      };
      await inParallel(names, open, WIDTH);
    }
  }

  private async all(): Promise<string[]> {
    const { names, leftOut } = await busiestQueues(this.env);
    if (leftOut > 0) this.gaps.push(undefined);
    return names;
  }

  private async link(name: string, wanted: FollowRequest): Promise<Outcome<Hello<FollowedJob>>> {
    const link = this.linkTo(name, wanted);
    const opened = await link.connect();
    if (!opened.ok) return opened;
    this.links.set(name, link);
    const { gap, events } = opened.value;
    if (gap) this.gaps.push(name || undefined);
    this.missed.push(...events);
    return opened;
  }

  private linkTo(name: string, wanted: FollowRequest): Link<FollowedJob> {
    const { types, stream } = this.options;
    const open = (request: FollowRequest) =>
      askToFollow(name === WORKERS ? directoryStub(this.env) : queueStub(this.env, name), request);
    return new Link(open, { ...wanted, ...(types && { types }), ...(stream !== undefined && { stream }) });
  }

  /** From now on the sink receives everything. Earlier events are in {@link missed}. */
  start(sink: FeedSink): void {
    this.sink = sink;
    for (const [name, link] of [...this.links]) this.startLink(name, link);
  }

  private startLink(name: string, link: Link): void {
    const queue = name || undefined;
    link.start({
      events: (events) => {
        this.sink?.touched?.(queue);
        this.pass(events);
      },
      gap: (after) => {
        this.sink?.touched?.(queue);
        this.sink?.gap?.(after, queue);
      },
      dropped: (count, after) => {
        this.sink?.touched?.(queue);
        this.sink?.dropped?.(count, after, queue);
      },
      stream: (news) => this.sink?.stream?.(news),
      notice: (notice, subject) => {
        if (notice === QUEUE_CREATED) void this.join(subject);
      },
      ended: (why) => {
        this.links.delete(name);
        // One of several queues was deleted: the others continue, and it may be created again.
        if (why === 'gone' && this.isOfSeveral && this.links.size > 0) void this.join(name);
        else this.end(why);
      },
    });
  }

  private async join(queue: string): Promise<void> {
    if (this.links.has(queue) || this.isClosed) return;
    // Followers that name it follow it already.
    if (this.links.size >= MAX_LINKS) return;
    const link = this.linkTo(queue, { from: idAt(Date.now() - OVERLAP_MS) });
    this.links.set(queue, link);
    try {
      const opened = await link.connectSoon();
      if (!opened.ok) {
        // It was not created after all.
        this.links.delete(queue);
        return;
      }
      if (this.isClosed) return link.close();
      this.sink?.touched?.(queue);
      this.pass(opened.value.events);
      this.startLink(queue, link);
    } catch (error) {
      console.warn(`tocsin: queue ${queue} cannot be followed:`, error);
      this.links.delete(queue);
      this.sink?.gap?.(idAt(Date.now()), queue);
    }
  }

  /** Each object limits what a follower may be sent in a second; several objects must share that limit. */
  private pass(events: readonly QueueEvent[]): void {
    if (events.length === 0) return;
    const count = this.links.size < 2 ? events.length : this.allowance.take(events.length, Date.now());
    if (count > 0) this.sink?.events(events.slice(0, count));
    if (count === events.length || this.timer !== undefined) return;
    const wait = Math.min(Math.max((this.allowance.tellAt ?? 0) - Date.now(), 0), 1000);
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.sink?.dropped?.(this.allowance.takeDropped(), undefined, undefined);
    }, wait);
  }

  /** Checks whether every object is still there. Call it periodically. */
  beat(): void {
    for (const link of this.links.values()) link.beat();
  }

  private end(why: 'gone' | 'lost'): void {
    if (this.isClosed) return;
    this.close();
    this.sink?.ended(why);
  }

  close(): void {
    this.isClosed = true;
    if (this.timer !== undefined) clearTimeout(this.timer);
    for (const link of this.links.values()) link.close();
    this.links.clear();
  }
}

/** When the event with this id happened, epoch ms. */
export const timeOf = (id: string): number => decodeId(id.slice('evt_'.length)).time;
