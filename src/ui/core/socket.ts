/**
 * The WebSocket behind live updates: reconnects by itself after the last event received; if a gap cannot be filled,
 * the page reloads.
 *
 * Not the client's event streams: browsers open six HTTP/1.1 connections per host, and streams need one per channel;
 * here all channels share one connection.
 */
import type { StreamItem } from '../../contract/event-messages';
import type { LiveMessage, LiveRequest } from '../../contract/live-socket';
import { API } from './router';

export type LiveEvent = Readonly<StreamItem>;

export type ConnectionState = 'off' | 'connecting' | 'live' | 'lost';

export interface SocketListener {
  state(state: ConnectionState): void;
  event(channel: string, event: LiveEvent): void;
  /** Events of the channel may be missing. */
  gap(channel: string): void;
  /** The server does not offer this channel. */
  refused(channel: string, message: string): void;
}

/** First and longest pause before another try, and how often the connection is proved, in ms. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
const PROOF_MS = 25_000;
const PROOF_LIMIT_MS = 10_000;

/** A connection that no one needs is kept this long, for the next page. */
const LINGER_MS = 5_000;

/** Ids of events that are kept, so that none is shown twice. */
const REMEMBERED = 500;

export class LiveSocket {
  /** Of each channel: the last event, after which a new connection continues. */
  private readonly channels = new Map<string, { last?: string }>();
  private readonly seen = new Set<string>();
  private socket: WebSocket | undefined;
  private tries = 0;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private proof: ReturnType<typeof setTimeout> | undefined;
  private linger: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly listener: SocketListener) {
    const hurry = () => {
      if (this.retry === undefined || document.visibilityState === 'hidden') return;
      this.tries = 0;
      this.connect();
    };
    window.addEventListener('online', hurry);
    document.addEventListener('visibilitychange', hurry);
  }

  add(channel: string): void {
    if (this.channels.has(channel)) return;
    clearTimeout(this.linger);
    this.channels.set(channel, {});
    if (this.socket?.readyState === WebSocket.OPEN) this.subscribe(channel);
    else if (!this.socket && this.retry === undefined) this.connect();
  }

  remove(channel: string): void {
    if (!this.channels.delete(channel)) return;
    this.send({ action: 'unsubscribe', channel });
    if (this.channels.size === 0) this.linger = setTimeout(() => this.stop(), LINGER_MS);
  }

  /** Ends the connection, as when nothing is followed any more. */
  private stop(): void {
    clearTimeout(this.retry);
    clearTimeout(this.proof);
    this.retry = undefined;
    const { socket } = this;
    this.socket = undefined;
    socket?.close(1000);
    this.tries = 0;
    this.listener.state('off');
  }

  private connect(): void {
    clearTimeout(this.retry);
    this.retry = undefined;
    this.listener.state(this.tries === 0 ? 'connecting' : 'lost');
    const address = new URL('ws', API);
    address.protocol = address.protocol.replace('http', 'ws');
    const socket = new WebSocket(address, 'ojs.v1');
    this.socket = socket;
    socket.onopen = () => {
      this.tries = 0;
      this.listener.state('live');
      for (const channel of this.channels.keys()) this.subscribe(channel);
      this.proveLater();
    };
    socket.onmessage = ({ data }) => {
      if (this.socket !== socket) return;
      this.proveLater();
      if (data !== 'pong') this.receive(JSON.parse(data as string));
    };
    socket.onclose = () => this.lost(socket);
  }

  /** Comes back after a pause that grows, and differs between browsers so that they do not come all at once. */
  private lost(socket: WebSocket): void {
    if (this.socket !== socket) return;
    this.socket = undefined;
    clearTimeout(this.proof);
    this.listener.state('lost');
    const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.tries++);
    this.retry = setTimeout(() => this.connect(), longest * (0.5 + Math.random() / 2));
  }

  /** A connection may be gone without a word. The Worker alone answers this; no queue is woken. */
  private proveLater(): void {
    clearTimeout(this.proof);
    const { socket } = this;
    this.proof = setTimeout(() => {
      if (socket?.readyState !== WebSocket.OPEN) return;
      socket.send('ping');
      this.proof = setTimeout(() => {
        socket.close();
        this.lost(socket);
      }, PROOF_LIMIT_MS);
    }, PROOF_MS);
  }

  private subscribe(channel: string): void {
    const after = this.channels.get(channel)?.last;
    this.send({ action: 'subscribe', channel, ...(after !== undefined && { after }) });
  }

  private receive(message: LiveMessage): void {
    if (message.type === 'ping') this.send({ action: 'pong', n: message.n });
    if (!('channel' in message) || message.channel === undefined) return;
    const { channel } = message;
    const followed = this.channels.get(channel);
    if (!followed) return;
    if (message.type === 'subscribed') followed.last ??= message.position;
    else if (message.type === 'error') this.listener.refused(channel, message.message);
    else if (message.type === 'unsubscribed') this.channels.delete(channel);
    else this.take(channel, followed, message as LiveEvent);
  }

  private take(channel: string, followed: { last?: string }, event: LiveEvent): void {
    if (event.event.startsWith('system.')) {
      this.listener.gap(channel);
      return;
    }
    followed.last = event.id;
    const mark = `${channel} ${event.id} ${event.event}`;
    if (this.seen.has(mark)) return;
    this.seen.add(mark);
    for (const oldest of this.seen) {
      if (this.seen.size <= REMEMBERED) break;
      this.seen.delete(oldest);
    }
    this.listener.event(channel, event);
  }

  private send(message: LiveRequest): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
}
