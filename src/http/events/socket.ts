/**
 * The WebSocket of the protocol, subprotocol `ojs.v1`: a client names channels and is sent their events.
 *
 *     client                                          server
 *        │ {action: "subscribe", channel, event_types?, after?}  ─▶
 *        │ ◀─ {type: "subscribed", channel, event_types?, position}
 *        │ ◀─ {type: "event", channel, event, data, id, timestamp}
 *        │ {action: "unsubscribe", channel} ─▶ ◀─ {type: "unsubscribed", channel}
 *        │ ◀─ {type: "error", code, message, channel?, details?}
 *        │ {action: "ping"} ─▶ ◀─ {type: "pong"}
 *        │ ◀─ {type: "ping", n}
 *        │ {action: "pong", n} ─▶                     it has read what was sent before that ping
 *
 * The runtime does not report how much waits to be sent (`durable/unread.ts`). A client that does not answer pings is
 * disconnected once the maximum waits for it. It may come back and name the last event that it had.
 */
import type { Redactor } from '../../access/redaction';
import { Feed } from '../../across/feed/feed';
import type { Env } from '../../config';
import type { StreamItem } from '../../contract/event-messages';
import type { LiveEventMessage, LiveMessage } from '../../contract/live-socket';
import type { QueueEvent } from '../../durable/event-log';
import { errorDataOf } from '../../durable/platform-errors';
import { Unread } from '../../durable/unread';
import { closeSocket, sendTo } from '../../durable/upgrade';
import { invalidPayload, invalidRequest } from '../../job/errors';
import { own } from '../../job/own';
import { TERMINAL_STATES } from '../../job/states';
import { orThrow } from '../../job/thrown';
import { nameGiven } from '../../ojs/names';
import { type AppContext, asShown } from '../context';
import { offeredProtocols, switched } from '../request/upgrade';
import { hasEnded } from '../session/identify';
import { HEARTBEAT_MS } from './event-stream';
import { readPlace } from './place';
import { endOf, itemsOf, type Shown, systemItem } from './render';
import { readChannel } from './streams';
import { readTypes, typesToFollow } from './types';

const SUBPROTOCOL = 'ojs.v1';

const MAX_CHANNELS = 100;

/** Longest message of a client, in characters, and how many may wait their turn. */
const MAX_MESSAGE = 8 * 1024;
const MAX_WAITING = 200;

/** Bytes after which a client is asked whether it has read them; and bytes that may wait for it at most. */
const ASK_AFTER = 32 * 1024;
const MAX_UNREAD = 2 * 1024 * 1024;

/** Close codes: try again later; violates the protocol. */
const TRY_LATER = 1013;
const POLICY = 1008;

/** Answers the upgrade. @throws {ApiError} 426 for any other request */
export function openSocket(c: AppContext) {
  const offered = offeredProtocols(c, 'GET /ojs/v1/events/stream gives the same over plain HTTP.');
  const { 0: theirs, 1: ours } = new WebSocketPair();
  new Subscriber(ours, c.env, asShown(c), () => hasEnded(c)).start();
  return switched(c, theirs, offered.includes(SUBPROTOCOL) ? SUBPROTOCOL : undefined);
}

type Message = Record<string, unknown>;

/** One client and the channels it follows. */
class Subscriber {
  private readonly feeds = new Map<string, Feed>();
  private readonly heart: ReturnType<typeof setInterval>;
  /** Messages of the client are handled one after the other. */
  private turn: Promise<void> = Promise.resolve();
  private waiting = 0;
  private readonly unread = new Unread(ASK_AFTER);
  private isOver = false;

  constructor(
    private readonly socket: WebSocket,
    private readonly env: Env,
    private readonly shown: Redactor,
    private readonly keyHasEnded: () => Promise<boolean>,
  ) {
    this.heart = setInterval(() => void this.beat(), HEARTBEAT_MS);
  }

  private async beat(): Promise<void> {
    if (await this.keyHasEnded()) return this.cutOff(POLICY, 'the key has ended');
    for (const feed of this.feeds.values()) feed.beat();
  }

  start(): void {
    const { socket } = this;
    socket.addEventListener('message', ({ data }) => this.hear(data));
    socket.addEventListener('close', () => this.gone());
    socket.addEventListener('error', () => this.gone());
    socket.accept();
  }

  private hear(data: unknown): void {
    if (this.isOver) return;
    if (data === 'ping') this.send('pong');
    else if (++this.waiting > MAX_WAITING) this.cutOff(POLICY, 'too many messages at once');
    else {
      this.turn = this.turn.then(async () => {
        this.waiting--;
        if (!this.isOver) await this.handle(data);
      });
    }
  }

  private async handle(data: unknown): Promise<void> {
    let channel: unknown;
    try {
      const message = read(data);
      channel = message.channel;
      await this.act(message);
    } catch (thrown) {
      const error = errorDataOf(thrown);
      if (!error) console.error('tocsin: a message of a follower could not be handled:', thrown);
      const { code, message, details } = error ?? {
        code: 'backend_error',
        message: 'The request failed unexpectedly.',
      };
      const named = typeof channel === 'string' && { channel };
      this.tell({ type: 'error', code, message, ...named, ...(details && { details }) });
    }
  }

  private async act(message: Message): Promise<void> {
    switch (message.action) {
      case 'subscribe':
      case 'resume':
        return await this.subscribe(message);
      case 'unsubscribe': {
        const channel = nameIn(message);
        this.drop(channel);
        return this.tell({ type: 'unsubscribed', channel });
      }
      case 'ping':
        return this.tell({ type: 'pong' });
      case 'pong':
        return this.unread.answered(message.n, Date.now());
      default:
        throw invalidRequest('action', 'action must be subscribe, unsubscribe, resume or ping.');
    }
  }

  private async subscribe(message: Message): Promise<void> {
    const name = nameIn(message);
    const channel = readChannel(name, 'channel');
    const types = readTypes(listIn(message, 'event_types'), 'event_types');
    const place = message[nameGiven('Subscribe', 'after', message)] ?? undefined;
    const after = place === undefined ? undefined : readPlace(String(place), 'after');
    if (!this.feeds.has(name) && this.feeds.size >= MAX_CHANNELS) {
      throw invalidRequest('channel', `A socket follows at most ${MAX_CHANNELS} channels.`, {
        max_channels: MAX_CHANNELS,
      });
    }
    const feed = await Feed.open(this.env, channel, { after, types: typesToFollow(types) });
    if (this.isOver) return feed.close();
    this.drop(name);
    this.feeds.set(name, feed);
    this.follow(name, feed, { types, after });
  }

  private follow(
    channel: string,
    feed: Feed,
    { types, after }: { types?: string[] | undefined; after?: string | undefined },
  ): void {
    const shown: Shown = { format: 'flat', types: types && new Set(types) };
    this.tell({ type: 'subscribed', channel, ...(types && { event_types: types }), position: feed.position });
    const send = (items: readonly StreamItem[]) => {
      for (const item of items) this.tell({ type: 'event', channel, ...item } as LiveEventMessage);
    };
    const events = (list: readonly QueueEvent[]) => send(list.flatMap((event) => itemsOf(event, shown)));
    let last = after ?? feed.position;
    const about = (event: 'system.gap' | 'system.events_dropped', members: Message) =>
      send([systemItem(event, last, members, { format: 'flat', now: Date.now() })]);
    if (feed.gaps.length > 0) about('system.gap', { after, queues: feed.gaps.filter(Boolean) });
    events(feed.missed);
    const { job } = feed;
    if (job && feed.missed.length === 0 && TERMINAL_STATES.includes(job.state)) events([endOf(job, feed.queue)]);
    last = feed.position;
    feed.start({
      events: (list) => {
        last = list.at(-1)?.id ?? last;
        events(list);
      },
      gap: (from, queue) => about('system.gap', { after: from, queues: queue ? [queue] : [] }),
      dropped: (dropped, from, queue) =>
        about('system.events_dropped', { dropped, ...(from && { after: from }), ...(queue && { queue }) }),
      ended: (why) => {
        if (this.feeds.get(channel) === feed) this.feeds.delete(channel);
        if (why === 'gone') this.tell({ type: 'unsubscribed', channel });
        else this.cutOff(TRY_LATER, 'a queue cannot be reached');
      },
    });
  }

  private drop(channel: string): void {
    this.feeds.get(channel)?.close();
    this.feeds.delete(channel);
  }

  private tell(message: LiveMessage): void {
    this.send(JSON.stringify(this.shown(message)));
  }

  private send(text: string): void {
    if (this.isOver) return;
    const n = this.unread.sent(text, Date.now());
    if (this.unread.bytes > MAX_UNREAD) this.cutOff(TRY_LATER, 'the client does not confirm that it reads');
    else if (this.unread.isTooMuch) this.cutOff(TRY_LATER, 'too much data waits for the clients of this server');
    else if (!sendTo(this.socket, text)) this.over();
    if (n !== undefined) this.send(JSON.stringify({ type: 'ping', n }));
  }

  private cutOff(code: number, reason: string): void {
    this.over();
    closeSocket(this.socket, code, reason);
  }

  /** Nothing waits for it any more. What waits for a disconnected client that has not left is still there. */
  private gone(): void {
    this.over();
    this.unread.end();
  }

  private over(): void {
    if (this.isOver) return;
    this.isOver = true;
    clearInterval(this.heart);
    for (const feed of this.feeds.values()) feed.close();
    this.feeds.clear();
  }
}

function read(data: unknown): Message {
  if (typeof data !== 'string') throw invalidPayload('Send one JSON object as text.');
  if (data.length > MAX_MESSAGE) throw invalidPayload(`A message has at most ${MAX_MESSAGE} characters.`);
  const notJson = () => invalidPayload('The message is not valid JSON.');
  const message: unknown = orThrow(() => JSON.parse(data), notJson);
  if (typeof message === 'object' && message !== null && !Array.isArray(message)) return message as Message;
  throw invalidPayload('Send one JSON object.');
}

function nameIn({ channel }: Message): string {
  if (typeof channel === 'string') return channel;
  throw invalidRequest('channel', 'channel must be a string.');
}

function listIn(message: Message, name: string): string[] | undefined {
  const list = own(message, name) ?? undefined;
  if (list === undefined) return undefined;
  if (Array.isArray(list) && list.length > 0 && list.every((entry) => typeof entry === 'string')) return list;
  throw invalidRequest(name, `${name} must be a list of types; omit it for all.`);
}
