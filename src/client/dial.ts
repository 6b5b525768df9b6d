/** Opens WebSockets to the queue, where the runtime and the way to the queue allow it. */
import { atMost } from '../handler/timing';
import { unanswered } from '../producer/errors';
import { authorization, connect, type Endpoint, type SendSettings } from './transport';

export interface SocketLike {
  send(text: string): void;
  close(code?: number, reason?: string): void;
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void;
  addEventListener(type: 'close' | 'error' | 'open', listener: (event: object) => void): void;
}

/** Opens a socket at a path below `/ojs/v1`. @throws {UnavailableError} when none comes about in time */
export type Dial = (path: string, protocol: string) => Promise<SocketLike>;

type SocketClass = new (url: string, options: unknown) => SocketLike & { readyState: number };

/** How long a socket may take to come about, at most, in ms. */
const PATIENCE_MS = 5_000;

/** Undefined where there are no sockets: in Node before 22, and with a `fetch` of the caller's own. */
export function createDial(endpoint: Endpoint, settings: SendSettings): Dial | undefined {
  if (endpoint.service) return overBinding(endpoint, settings);
  const { WebSocket } = globalThis as { WebSocket?: SocketClass };
  if (!WebSocket || endpoint.fetch) return undefined;
  const { base } = connect(endpoint);
  return async (path, protocol) => {
    const url = new URL(`${base.replace(/^http/, 'ws')}/ojs/v1${path}`);
    const { key } = settings;
    if (key !== undefined && !takesHeaders()) url.searchParams.set('access_token', key);
    const headers = authorization(key);
    const socket = new WebSocket(url.href, takesHeaders() ? { protocols: [protocol], headers } : [protocol]);
    await opened(socket, Math.min(PATIENCE_MS, settings.timeoutMs));
    return socket;
  };
}

/** Where sockets send headers, the key need not be in the address. */
function takesHeaders(): boolean {
  const { process } = globalThis as { process?: { versions?: { node?: string } } };
  const { Deno } = globalThis as { Deno?: unknown };
  return process?.versions?.node !== undefined && Deno === undefined;
}

async function opened(socket: SocketLike, ms: number): Promise<void> {
  const opening = new Promise<boolean>((resolve) => {
    socket.addEventListener('open', () => resolve(true));
    socket.addEventListener('error', () => resolve(false));
    socket.addEventListener('close', () => resolve(false));
  });
  if ((await atMost(ms, opening)) && (await opening)) return;
  socket.close();
  throw notOpened();
}

/** In a Worker: the answer to an upgrade has the socket. */
function overBinding(endpoint: Endpoint, { key }: SendSettings): Dial {
  const { base, call } = connect(endpoint);
  return async (path, protocol) => {
    const headers = { Upgrade: 'websocket', 'Sec-WebSocket-Protocol': protocol, ...authorization(key) };
    const { webSocket } = (await call(`${base}/ojs/v1${path}`, { method: 'GET', headers })) as {
      webSocket?: (SocketLike & { accept(): void }) | null;
    };
    if (!webSocket) throw notOpened();
    webSocket.accept();
    return webSocket;
  };
}

const notOpened = () => unanswered('No socket to the queue could be opened.', false);
