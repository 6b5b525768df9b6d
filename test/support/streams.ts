/** Clients of the live feed: of event streams, and of the WebSocket. */
import { expect } from 'vitest';
import { until } from './clock';
import { MessageWatch } from './described';
import type { TestQueue } from './queue';
import { type Json, server, type TestServer, V1 } from './server';
import { TestSocket, upgrade } from './socket';

/** A message of an event stream. */
export interface Message {
  id: string;
  event: string;
  data: Json;
}

/** The streams, as the document of the messages calls them. */
const STREAMS = ['events.stream', 'events.progress', 'stats.stream', 'streams.show'];

/** Reads an answer of type `text/event-stream` while it is being written. */
export class StreamReader {
  readonly messages: Message[] = [];
  readonly comments: string[] = [];
  /** The place that the client would come back to. */
  lastId = '';
  isOver = false;
  error: unknown;
  private readonly watch = new MessageWatch(STREAMS);
  private readonly reader: ReadableStreamDefaultReader<Uint8Array>;

  constructor(readonly response: Response) {
    this.reader = (response.body as ReadableStream<Uint8Array>).getReader();
    void this.readAll();
  }

  /** Asks for a stream that must be given. */
  static async open(
    path: string,
    headers: Record<string, string> = {},
    from: TestServer = server,
  ): Promise<StreamReader> {
    const response = await from.send(new Request(new URL(V1 + path, 'http://localhost'), { headers }));
    if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
    expect(response.headers.get('Content-Type')).toBe('text/event-stream');
    return new StreamReader(response);
  }

  private async readAll(): Promise<void> {
    const decoder = new TextDecoder();
    let text = '';
    try {
      for (;;) {
        const { value, done } = await this.reader.read();
        if (done) break;
        text += decoder.decode(value, { stream: true });
        const blocks = text.split('\n\n');
        text = blocks.pop() ?? '';
        for (const block of blocks) this.take(block);
      }
    } catch (error) {
      this.error = error;
    }
    this.isOver = true;
  }

  private take(block: string): void {
    const fields = new Map<string, string>();
    for (const line of block.split('\n')) {
      const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
      if (name === '') this.comments.push(value);
      else fields.set(name, value);
    }
    this.lastId = fields.get('id') ?? this.lastId;
    const data = fields.get('data');
    if (data !== undefined) {
      this.watch.look(data);
      this.messages.push({ id: this.lastId, event: fields.get('event') ?? 'message', data: JSON.parse(data) });
    }
  }

  names(): string[] {
    expect(this.watch.difference).toBeUndefined();
    return this.messages.map(({ event }) => event);
  }

  of(event: string): Message[] {
    expect(this.watch.difference).toBeUndefined();
    return this.messages.filter((message) => message.event === event);
  }

  /** Waits until there are so many of these. */
  async get(event: string, count = 1): Promise<Message[]> {
    await until(
      () => this.of(event).length >= count,
      () => `${count} of ${event}; there are ${JSON.stringify(this.messages.slice(-5))}, over: ${this.isOver}`,
    );
    return this.of(event);
  }

  async over(): Promise<void> {
    await until(
      () => this.isOver,
      () => `the stream to end; it had ${this.names()}`,
    );
  }

  async close(): Promise<void> {
    await this.reader.cancel();
  }
}

/** A client of `GET /ws`. */
export class SocketClient extends TestSocket {
  static async open(headers: Record<string, string> = {}, from: TestServer = server): Promise<SocketClient> {
    return new SocketClient(await upgrade('/ws', headers, from), 'events.socket');
  }

  /** Waits until there are so many of these. */
  get(type: string, count = 1): Promise<Json[]> {
    return this.heard(type, count);
  }

  async subscribe(channel: string, rest: Json = {}): Promise<Json> {
    const before = this.count('subscribed');
    this.say({ action: 'subscribe', channel, ...rest });
    return (await this.get('subscribed', before + 1)).at(-1) as Json;
  }

  events(): Json[] {
    return this.of('event');
  }
}

/** Those who follow an object, from inside. */
export function followersOf(instance: { life: { followers: unknown } }) {
  return instance.life.followers as { followers: Map<WebSocket, unknown>; timer: unknown };
}

/** So many events with long texts. */
export async function longEvents(queue: TestQueue, count: number): Promise<void> {
  const [message, data] = ['m'.repeat(900), { text: 'd'.repeat(1900) }];
  const job_id = await queue.add();
  await queue.claim({ count: 100 });
  const reports = Array.from({ length: count }, () =>
    queue.api.reportProgress({ job_id, progress: 0.5, message, data }),
  );
  await Promise.all(reports);
  await queue.ack(job_id);
}
