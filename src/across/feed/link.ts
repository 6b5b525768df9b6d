/** A socket to a followed object, reopened after the last event; possible gaps are reported. */
import type { QueueEvent } from '../../durable/event-log';
import {
  CLOSED,
  type FeedMessage,
  type FollowRequest,
  type Hello,
  PING,
  PONG,
  READ,
  READ_EVERY,
  type StreamNews,
} from '../../durable/feed-messages';
import { closeSocket, sendTo } from '../../durable/upgrade';
import type { ErrorData, Outcome } from '../../job/errors';

/** Pauses before a socket that broke off, or could not be opened, is opened again, ms. */
const PAUSES_MS = [100, 1_000, 4_000];

export interface LinkSink {
  events(events: readonly QueueEvent[]): void;
  /** Events after this one may be missing. */
  gap(after: string): void;
  dropped(count: number, after: string | undefined): void;
  notice(notice: string, name: string): void;
  /** Chunks of the output stream that is followed. */
  stream(news: StreamNews): void;
  /** `gone`: what was followed is deleted. `lost`: it cannot be reached. */
  ended(why: 'gone' | 'lost'): void;
}

export class Link<About = unknown> {
  private socket: WebSocket | undefined;
  private sink: LinkSink | undefined;
  /** Events before there was a listener. */
  private early: FeedMessage[] = [];
  private unread = 0;
  private isAlive = true;
  private isClosed = false;
  /** The last event, or where following began. */
  private last = '';

  /** @param open asks the object for a socket */
  constructor(
    private readonly open: (wanted: FollowRequest) => Promise<Outcome<WebSocket>>,
    private readonly wanted: FollowRequest,
  ) {}

  /** Opens it. @returns the first message, or why the object refuses */
  async connect(wanted: FollowRequest = this.wanted): Promise<Outcome<Hello<About>>> {
    const opened = await this.open(wanted);
    if (!opened.ok) return opened;
    const socket = opened.value;
    const hello = await this.greeted(socket);
    this.last = hello.position;
    if (this.isClosed) closeSocket(socket, 1000);
    return { ok: true, value: hello };
  }

  /** As {@link connect}, repeated for a while if the object is not there yet. */
  async connectSoon(): Promise<Outcome<Hello<About>>> {
    let answer = await this.connect();
    for (const pause of PAUSES_MS) {
      if (answer.ok || answer.error.status !== 404 || this.isClosed) return answer;
      await scheduler.wait(pause);
      answer = await this.connect();
    }
    return answer;
  }

  private greeted(socket: WebSocket): Promise<Hello<About>> {
    this.socket = socket;
    this.isAlive = true;
    this.unread = 0;
    return new Promise((resolve, reject) => {
      let isGreeted = false;
      socket.addEventListener('message', ({ data }) => {
        if (socket !== this.socket || typeof data !== 'string') return;
        this.isAlive = true;
        if (data === PONG) return;
        const message = JSON.parse(data) as FeedMessage<About>;
        if ('hello' in message) {
          isGreeted = true;
          resolve(message.hello);
        } else {
          this.noteRead(socket, data.length);
          if (this.sink) this.tell(message, this.sink);
          else this.early.push(message);
        }
      });
      const over = (code: number | undefined) => {
        if (!isGreeted) return reject(new Error('the object closed the socket of a follower'));
        if (socket === this.socket && !this.isClosed) void this.brokeOff(code);
      };
      socket.addEventListener('close', ({ code }) => over(code));
      socket.addEventListener('error', () => over(undefined));
      socket.accept();
    });
  }

  private noteRead(socket: WebSocket, length: number): void {
    this.unread += length;
    if (this.unread < READ_EVERY) return;
    this.unread = 0;
    sendTo(socket, READ);
  }

  /** From now on everything is passed on. */
  start(sink: LinkSink): void {
    this.sink = sink;
    const { early } = this;
    this.early = [];
    for (const message of early) this.tell(message, sink);
  }

  private tell(message: FeedMessage, sink: LinkSink): void {
    if ('events' in message) {
      this.last = message.events.at(-1)?.id ?? this.last;
      sink.events(message.events);
    } else if ('dropped' in message) sink.dropped(message.dropped, message.after);
    else if ('notice' in message) sink.notice(message.notice, message.name);
    else if ('stream' in message) sink.stream(message.stream);
  }

  /** Asks for a sign of life; a socket without one since the last call counts as broken off. */
  beat(): void {
    const { socket } = this;
    if (this.isClosed || !socket) return;
    if (!this.isAlive) {
      closeSocket(socket, 1000);
      return void this.brokeOff(undefined);
    }
    this.isAlive = false;
    sendTo(socket, PING);
  }

  private async brokeOff(code: number | undefined): Promise<void> {
    this.socket = undefined;
    if (code === CLOSED.gone) return this.end('gone');
    if (code === CLOSED.slow) return this.end('lost');
    const { after: _, ...wanted } = this.wanted;
    for (const pause of PAUSES_MS) {
      await scheduler.wait(pause);
      if (this.isClosed) return;
      const after = this.last;
      const again = await this.connect({ ...wanted, after, from: after }).catch(
        (error): { ok: false; error?: ErrorData } => {
          console.warn('tocsin: a live feed cannot be followed for now:', error);
          return { ok: false };
        },
      );
      if (again.ok) {
        if (again.value.gap) this.sink?.gap(after);
        // What came meanwhile must be read elsewhere.
        if (wanted.stream !== undefined) this.sink?.stream({ run: 0, first: 0 });
        if (again.value.events.length > 0) this.sink?.events(again.value.events);
        return;
      }
      if (again.error?.status === 404) return this.end('gone');
    }
    this.end('lost');
  }

  private end(why: 'gone' | 'lost'): void {
    if (this.isClosed) return;
    this.close();
    this.sink?.ended(why);
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    if (this.socket) closeSocket(this.socket, 1000);
  }
}
