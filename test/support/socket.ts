/** A client of a WebSocket, as any language would hold it: what it was told, and how it ended. */
import { until } from './clock';
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
  readonly socket: WebSocket;
  closed: { code: number; reason: string } | undefined;

  protected constructor(readonly response: Response) {
    this.socket = response.webSocket as WebSocket;
    this.socket.addEventListener('message', ({ data }) => {
      const text = String(data);
      this.messages.push(text.startsWith('{') ? JSON.parse(text) : { type: text });
    });
    this.socket.addEventListener('close', ({ code, reason }) => {
      this.closed = { code, reason };
    });
    this.socket.accept();
  }

  say(message: unknown): void {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  of(type: string): Json[] {
    return this.messages.filter((message) => message.type === type);
  }

  /** Waits until there are so many of these. */
  protected async heard(type: string, count: number): Promise<Json[]> {
    await until(
      () => this.of(type).length >= count,
      () => `${count} messages of type ${type}; there are ${JSON.stringify(this.messages.slice(-5))}`,
    );
    return this.of(type);
  }
}
