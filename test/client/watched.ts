/** A client of the queue itself, with what it asks, and its sockets: these may be spoiled. */
import { type ClientOptions, TocsinClient } from '../../src/client';
import { server } from '../support/server';

type Listener = (event: { data?: unknown }) => void;

/** A socket that tells what was said over it, and may keep answers back. */
export class WatchedSocket {
  readonly said: Record<string, unknown>[] = [];
  readonly heard: Record<string, unknown>[] = [];
  /** Called with each message of the queue; false keeps it back. */
  hears: (message: Record<string, unknown>) => boolean = () => true;
  /** Called before anything is said; false keeps it from the queue. */
  says: (message: Record<string, unknown>) => boolean = () => true;
  readonly #listeners: Listener[] = [];
  #kept: unknown[] = [];

  constructor(
    readonly socket: WebSocket,
    readonly queue: string,
  ) {}

  accept(): void {
    this.socket.accept();
  }

  send(text: string): void {
    const message = text.startsWith('{') ? JSON.parse(text) : { type: text };
    this.said.push(message);
    if (this.says(message)) this.socket.send(text);
  }

  close(code?: number): void {
    this.socket.close(code);
  }

  addEventListener(type: string, listener: Listener): void {
    if (type !== 'message') {
      this.socket.addEventListener(type as 'close', listener as never);
      return;
    }
    this.#listeners.push(listener);
    this.socket.addEventListener('message', (event) => {
      const text = String(event.data);
      const message = text.startsWith('{') ? JSON.parse(text) : { type: text };
      this.heard.push(message);
      if (this.hears(message)) listener(event);
      else this.#kept.push(event.data);
    });
  }

  /** As if the queue had said this. */
  tell(message: unknown): void {
    const data = typeof message === 'string' ? message : JSON.stringify(message);
    for (const listener of this.#listeners) listener({ data });
  }

  /** Hands over what was kept back. */
  release(): void {
    this.hears = () => true;
    for (const data of this.#kept.splice(0)) this.tell(data);
  }

  /** What was said of this type. */
  of(type: string): Record<string, unknown>[] {
    return this.said.filter((message) => message.type === type);
  }
}

/** @param refuses paths below `/ojs/v1` that the server does not know */
export function watched(
  refuses: (path: string, query: URLSearchParams) => boolean = () => false,
  options: Partial<ClientOptions> = {},
) {
  const asked: string[] = [];
  const sockets: WatchedSocket[] = [];
  const service = {
    fetch: async (input: string, init?: object) => {
      const { pathname, searchParams } = new URL(input);
      const path = pathname.replace('/ojs/v1', '');
      asked.push(path);
      if (refuses(path, searchParams))
        return Response.json({ error: { code: 'not_found', message: 'no' } }, { status: 404 });
      const response = await server.send(new Request(input, init as RequestInit));
      if (!response.webSocket) return response;
      const socket = new WatchedSocket(response.webSocket, searchParams.get('queue') ?? '');
      sockets.push(socket);
      return { status: 101, webSocket: socket } as unknown as Response;
    },
  };
  return { client: new TocsinClient({ ...options, service } as ClientOptions), asked, sockets };
}
