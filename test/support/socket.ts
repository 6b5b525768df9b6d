/** A client of a WebSocket, as any language would hold it: what it was told, and how it ended. */
import { expect } from 'vitest';
import { until } from './clock';
import { MessageWatch } from './described';
import { type Json, type TestServer, V1 } from './server';

/** Asks for a socket below `/ojs/v1` that must be given. */
export async function upgrade(path: string, headers: Record<string, string>, from: TestServer): Promise<Response> {
  const request = new Request(`http://localhost${V1}${path}`, { headers: { Upgrade: 'websocket', ...headers } });
  const response = await from.send(request);
  if (!response.webSocket) throw new Error(`${response.status}: ${await response.text()}`);
  return response;
}

export class TestSocket {
  readonly messages: Json[] = [];
  private readonly byType = new Map<unknown, Json[]>();
  readonly socket: WebSocket;
  closed: { code: number; reason: string } | undefined;

  private readonly watch: MessageWatch;

  /** @param channel in the document of the messages */
  protected constructor(
    readonly response: Response,
    channel: string,
  ) {
    this.socket = response.webSocket as WebSocket;
    this.watch = new MessageWatch([channel]);
    this.socket.addEventListener('message', ({ data }) => {
      const text = String(data);
      const message: Json = text.startsWith('{') ? JSON.parse(text) : { type: text };
      this.messages.push(message);
      const alike = this.byType.get(message.type);
      if (alike) alike.push(message);
      else this.byType.set(message.type, [message]);
      if (text.startsWith('{')) this.watch.look(text);
    });
    this.socket.addEventListener('close', ({ code, reason }) => {
      this.closed = { code, reason };
    });
    this.socket.accept();
  }

  say(message: unknown): void {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  /** Those of a type until now. */
  of(type: string): Json[] {
    expect(this.watch.difference).toBeUndefined();
    return [...(this.byType.get(type) ?? [])];
  }

  /** How many of a type there are, also where there are very many. */
  count(type: string): number {
    return this.byType.get(type)?.length ?? 0;
  }

  /** The nth of a type from the end, also where there are very many. */
  last(type: string, n: number): Json | undefined {
    return this.byType.get(type)?.at(-n);
  }

  /** Waits until there are so many of these. */
  protected async heard(type: string, count: number): Promise<Json[]> {
    await until(
      () => this.count(type) >= count,
      () => `${count} messages of type ${type}; there are ${JSON.stringify(this.messages.slice(-5))}`,
    );
    return this.of(type);
  }
}
