/**
 * An answer of type `text/event-stream`, written by the Worker. A client that does not read is disconnected once too
 * much waits for it. It may come back and name the last event that it had.
 */
import type { Redactor } from '../../access/redaction';
import type { StreamItem } from '../../contract/event-messages';
import { Share } from '../../durable/unread';
import { utf8Bytes } from '../../job/bytes';
import { type AppContext, asShown, media } from '../context';
import { hasEnded } from '../session/identify';

/** How long a client waits before it comes back, ms. */
const RETRY_MS = 3_000;

/** A stream shows at least this often that it is alive, ms. */
export const HEARTBEAT_MS = 15_000;

/** Bytes that wait for a client at most, beside what is on record of its job. */
const MAX_BACKLOG = 512 * 1024;
/** Below this many there is room for a page of 256 KiB. */
const ROOM = 128 * 1024;

const TYPE = 'text/event-stream';
const HEADERS = {
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
};

const encoder = new TextEncoder();

export class EventStream {
  private controller!: ReadableStreamDefaultController<Uint8Array>;
  private readonly body: ReadableStream<Uint8Array>;
  private readonly heart: ReturnType<typeof setInterval>;
  private readonly shown: Redactor;
  private readonly share = new Share();
  isOver = false;
  private drained: () => void = () => undefined;
  /** Bytes that may wait for it. */
  private most = MAX_BACKLOG;

  /** @param on `beat` at every heartbeat; `over` once, when nothing can be written any more */
  constructor(
    private readonly c: AppContext,
    private readonly on: { beat: () => void; over: () => void },
  ) {
    this.shown = asShown(c);
    const start = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      this.controller = controller;
    };
    const room = new ByteLengthQueuingStrategy({ highWaterMark: MAX_BACKLOG });
    const pull = () => this.note();
    this.body = new ReadableStream<Uint8Array>({ start, pull, cancel: () => this.over() }, room);
    this.heart = setInterval(() => void this.beat(), HEARTBEAT_MS);
    this.write(`retry: ${RETRY_MS}\n\n`);
  }

  response() {
    return media(this.c, this.body, TYPE, HEADERS);
  }

  /** @param areOnRecord they are sent at once, before the client can read, and may be more than waits otherwise */
  send(items: readonly StreamItem[], areOnRecord = false): void {
    if (items.length === 0) return;
    const text = items.map((item) => this.written(item)).join('');
    if (areOnRecord) this.most = MAX_BACKLOG + utf8Bytes(text);
    this.write(text);
  }

  /** A message without a name, or under one that is not its type. */
  message(id: string, data: unknown, event?: string): void {
    this.write(this.written({ id, data, ...(event !== undefined && { event }) }));
  }

  /** Messages whose data are as the caller may see them. */
  shownAlready(messages: readonly Parameters<EventStream['written']>[0][]): void {
    this.write(messages.map((message) => this.written(message, (data) => data)).join(''));
  }

  get hasRoom(): boolean {
    return this.share.bytes < ROOM;
  }

  /** Waits until the client has read most of what waits for it, or is gone. */
  async room(): Promise<void> {
    while (!this.isOver && !this.hasRoom) {
      await new Promise<void>((resolve) => {
        this.drained = resolve;
      });
    }
  }

  /** The client has everything up to here, even if it had no event here to come back to. */
  mark(id: string): void {
    this.write(`id: ${id}\n\n`);
  }

  end(): void {
    if (this.isOver) return;
    this.over();
    this.controller.close();
  }

  private async beat(): Promise<void> {
    if (await hasEnded(this.c)) return this.end();
    this.note();
    this.write(':heartbeat\n\n');
    if (!this.isOver) this.on.beat();
  }

  private written({ id, event, data }: { id: string; event?: string; data: unknown }, shown = this.shown): string {
    const name = event === undefined ? '' : `event: ${event}\n`;
    return `id: ${id}\n${name}data: ${JSON.stringify(shown(data))}\n\n`;
  }

  private write(text: string): void {
    if (this.isOver) return;
    this.controller.enqueue(encoder.encode(text));
    this.note();
    if (this.share.bytes < this.most && !this.share.isTooMuch) return;
    this.over();
    // What waits is dropped with it.
    this.controller.error(new Error('the client of a stream does not read'));
  }

  private note(): void {
    this.share.bytes = MAX_BACKLOG - (this.controller.desiredSize ?? 0);
    this.drained();
  }

  private over(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.share.end();
    this.drained();
    clearInterval(this.heart);
    this.on.over();
  }
}

/** The answer to a request for the headers alone. */
export const headersOnly = (c: AppContext) => media(c, null, TYPE, HEADERS);
