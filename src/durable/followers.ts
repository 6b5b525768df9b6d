/**
 * Followers of an object's live feed, over hibernating WebSockets whose attachments hold the requests: they cost no
 * row and keep no object awake.
 *
 * A commit sends one message per follower; equal requests share its text. {@link EVENTS_PER_SECOND} applies, and a
 * follower that confirms no reading is dropped.
 *
 *     follower                                   object
 *        │ upgrade ?follow={job?, types?, after?}   │
 *        │ ◀─ {hello: {position, gap, events}}      │  what it missed
 *        │ ◀─ {events: […]}                         │  one for each commit
 *        │ ◀─ {dropped: n, after?}                  │  too many in this second
 *        │ ◀─ {stream: {run, first, chunks?}}       │  of the output stream that it follows
 *        │ ── read ─▶                               │  after every {@link READ_EVERY_BYTES}
 *        │ ── ping ─▶ ◀─ pong                       │  answered by the runtime: the object stays asleep
 */
import { unavailable } from '../job/errors';
import { getOrInsert } from '../job/get-or-insert';
import { Allowance } from './allowance';
import type { EventLog, Published, QueueEvent } from './event-log';
import { CLOSED, type FeedMessage, type FollowRequest, type Hello, PING, PONG, READ } from './feed-messages';
import { closeSocket, sendTo } from './upgrade';

/** A follower with this many unread characters is dropped. */
const MAX_UNREAD = 1024 * 1024;

/** Characters of output streams that one follower is sent in a second. */
const STREAM_CHARS_PER_SECOND = 2 * 1024 * 1024;

/** Followers of one object at most; the runtime takes 32,768 sockets. A further one may retry after these seconds. */
const MAX_FOLLOWERS = 10_000;
const FULL_FOR_S = 30;

/** Marks the sockets of followers among those of the object. */
const TAG = 'follower';

interface Follower {
  socket: WebSocket;
  allowance: Allowance;
  /** Of output streams, in characters. */
  chars: Allowance | undefined;
  unread: number;
  last?: string;
}

interface Group {
  types: ReadonlySet<string> | undefined;
  members: Set<Follower>;
}

/** Chunks of an output stream. */
export interface ShownChunks {
  name: string;
  run: number;
  /** The number of the first. */
  first: number;
  /** JSON texts. */
  chunks: readonly string[];
}

export type SocketHost = Pick<DurableObjectState, 'acceptWebSocket' | 'getWebSockets' | 'setWebSocketAutoResponse'>;

/** Everything that is not about one job. */
const ALL_JOBS = '';

export class Followers {
  private readonly followers = new Map<WebSocket, { follower: Follower; wanted: FollowRequest }>();
  /** By job, and by the types that are wanted. */
  private readonly groups = new Map<string, Map<string, Group>>();
  private log: EventLog | undefined;
  private unlisten: (() => void) | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** Events that followers were not sent, because they were too many, since this object was constructed. */
  dropped = 0;

  /** @param now epoch ms */
  constructor(
    private readonly host: SocketHost,
    private readonly now: () => number,
  ) {}

  /** Sends followers what is published here from now on. After an eviction the runtime knows them. */
  attach(log: EventLog): void {
    this.unlisten?.();
    this.unlisten = undefined;
    this.log = log;
    for (const socket of this.host.getWebSockets(TAG)) {
      if (!this.followers.has(socket)) this.join(socket, socket.deserializeAttachment() as FollowRequest);
    }
    this.listen();
  }

  private listen(): void {
    const { log } = this;
    if (!log || this.followers.size === 0) {
      this.unlisten?.();
      this.unlisten = undefined;
    } else this.unlisten ??= log.listen((published) => this.publish(log, published));
  }

  /**
   * Answers the upgrade of a follower, which joins in the turn that reads what it missed. @param about in the first
   * message
   * @throws {ApiError} 503 when there are too many
   */
  accept(wanted: FollowRequest, about?: unknown): Response {
    const { log } = this;
    if (!log || this.followers.size >= MAX_FOLLOWERS) {
      throw unavailable('The maximum number of event followers is reached.', FULL_FOR_S);
    }
    const { 0: theirs, 1: ours } = new WebSocketPair();
    this.host.setWebSocketAutoResponse(new WebSocketRequestResponsePair(PING, PONG));
    this.host.acceptWebSocket(ours, [TAG]);
    const { job, types, after, from = after, stream } = wanted;
    ours.serializeAttachment({ job, types, stream });
    this.join(ours, wanted);
    const kept = { ...(job !== undefined && { subject: job }), ...(types && { types: [...types] }) };
    const hello: Hello = {
      gap: after !== undefined && log.isGapAfter(after),
      events: from === undefined ? [] : log.read({ ...kept, after: from, limit: Number.POSITIVE_INFINITY }),
      position: log.position(this.now()),
      ...(about !== undefined && { about }),
    };
    ours.send(JSON.stringify({ hello } satisfies FeedMessage));
    return new Response(null, { status: 101, webSocket: theirs });
  }

  /** A follower confirms that it has read. */
  received(socket: WebSocket, message: string | ArrayBuffer): void {
    const known = this.followers.get(socket);
    if (known && message === READ) known.follower.unread = 0;
  }

  left(socket: WebSocket): void {
    this.leave(socket);
    closeSocket(socket, 1000);
  }

  /** Notifies all followers of something that is not an event of the feed. */
  announce(notice: string, name: string): void {
    const text = JSON.stringify({ notice, name } satisfies FeedMessage);
    for (const { follower } of [...this.followers.values()]) this.send(follower, text);
  }

  /** Sends chunks of an output stream to those who follow it; only that there are some where it would be too much. */
  show(job: string, { name, run, first, chunks }: ShownChunks): void {
    const groups = this.groups.get(job);
    if (!groups) return;
    const text = `{"stream":{"run":${run},"first":${first},"chunks":[${chunks.join(',')}]}}`;
    const news = JSON.stringify({ stream: { run, first } } satisfies FeedMessage);
    for (const { members } of groups.values()) {
      for (const follower of [...members]) {
        const { chars, socket, unread } = follower;
        if (!chars || this.followers.get(socket)?.wanted.stream !== name) continue;
        const mayHave = unread + text.length <= MAX_UNREAD / 2 && chars.take(text.length, this.now()) === text.length;
        chars.takeDropped();
        this.send(follower, mayHave ? text : news);
      }
    }
  }

  /** What they follow is deleted. */
  dismiss(): void {
    for (const socket of [...this.followers.keys()]) {
      this.leave(socket);
      closeSocket(socket, CLOSED.gone, 'gone');
    }
  }

  // ---- followers -------------------------------------------------------------------------------

  private join(socket: WebSocket, wanted: FollowRequest): void {
    const chars = wanted.stream === undefined ? undefined : new Allowance(STREAM_CHARS_PER_SECOND);
    const follower = { socket, allowance: new Allowance(), chars, unread: 0 };
    this.followers.set(socket, { follower, wanted });
    const { job = ALL_JOBS, types } = wanted;
    const ofJob = getOrInsert(this.groups, job, () => new Map<string, Group>());
    const make = (): Group => ({ types: types && new Set(types), members: new Set() });
    const group = getOrInsert(ofJob, nameOf(types), make);
    group.members.add(follower);
    this.listen();
  }

  private leave(socket: WebSocket): void {
    const known = this.followers.get(socket);
    if (!known) return;
    this.followers.delete(socket);
    const { job = ALL_JOBS, types } = known.wanted;
    const ofJob = this.groups.get(job);
    const group = ofJob?.get(nameOf(types));
    group?.members.delete(known.follower);
    if (group?.members.size === 0) ofJob?.delete(nameOf(types));
    if (ofJob?.size === 0) this.groups.delete(job);
    this.listen();
  }

  // ---- messages to them ------------------------------------------------------------------------

  private publish(log: EventLog, published: readonly Published[]): void {
    const texts = new Texts(log, published);
    const every = published.map((_, index) => index);
    for (const group of this.groups.get(ALL_JOBS)?.values() ?? []) this.tellGroup(group, texts, every);
    if (this.groups.size === (this.groups.has(ALL_JOBS) ? 1 : 0)) return;
    for (const [job, indexes] of Map.groupBy(every, (index) => published[index]?.subject ?? ALL_JOBS)) {
      if (job === ALL_JOBS) continue;
      for (const group of this.groups.get(job)?.values() ?? []) this.tellGroup(group, texts, indexes);
    }
  }

  private tellGroup({ types, members }: Group, texts: Texts, indexes: readonly number[]): void {
    const wanted = types ? indexes.filter((index) => types.has(texts.typeOf(index))) : indexes;
    if (wanted.length === 0) return;
    const now = this.now();
    // Most may be sent all of it, or as much of it as the others.
    const messages = new Map<number, string>();
    for (const follower of [...members]) {
      // Under constant events the timer may have no turn.
      this.tellDropped(follower, now);
      const count = follower.allowance.take(wanted.length, now);
      this.dropped += wanted.length - count;
      if (follower.allowance.tellAt !== undefined) this.tellLater();
      if (count === 0 || !this.followers.has(follower.socket)) continue;
      const message = getOrInsert(messages, count, () => texts.message(wanted.slice(0, count)));
      follower.last = texts.idOf(wanted[count - 1] as number);
      this.send(follower, message);
    }
  }

  /** At the end of the second, followers are notified of the events they did not get. */
  private tellLater(): void {
    if (this.timer !== undefined) return;
    const due = [...this.followers.values()].map(
      ({ follower }) => follower.allowance.tellAt ?? Number.POSITIVE_INFINITY,
    );
    const at = Math.min(...due);
    if (at === Number.POSITIVE_INFINITY) return;
    const wait = Math.min(Math.max(at - this.now(), 0), 1000);
    this.timer = setTimeout(() => {
      this.timer = undefined;
      for (const { follower } of [...this.followers.values()]) this.tellDropped(follower, at);
      this.tellLater();
    }, wait);
  }

  private tellDropped(follower: Follower, now: number): void {
    const { tellAt } = follower.allowance;
    if (tellAt === undefined || tellAt > now) return;
    const after = follower.last === undefined ? {} : { after: follower.last };
    const dropped = follower.allowance.takeDropped();
    this.send(follower, JSON.stringify({ dropped, ...after } satisfies FeedMessage));
  }

  private send(follower: Follower, message: string): void {
    follower.unread += message.length;
    const { socket, unread } = follower;
    if (unread <= MAX_UNREAD && sendTo(socket, message)) return;
    this.leave(socket);
    closeSocket(socket, CLOSED.slow, 'does not read');
  }
}

/** The texts of published events, each made once, on demand. */
class Texts {
  private readonly events: (QueueEvent | undefined)[] = [];
  private readonly texts: (string | undefined)[] = [];

  constructor(
    private readonly log: EventLog,
    private readonly published: readonly Published[],
  ) {}

  typeOf(index: number): string {
    return this.published[index]?.type ?? '';
  }

  idOf(index: number): string {
    return this.eventAt(index).id;
  }

  message(indexes: readonly number[]): string {
    return `{"events":[${indexes.map((index) => this.textAt(index)).join(',')}]}`;
  }

  private eventAt(index: number): QueueEvent {
    this.events[index] ??= this.log.shown(this.published[index] as Published);
    return this.events[index];
  }

  private textAt(index: number): string {
    this.texts[index] ??= JSON.stringify(this.eventAt(index));
    return this.texts[index];
  }
}

const nameOf = (types: readonly string[] | undefined): string => types?.toSorted().join() ?? '*';
