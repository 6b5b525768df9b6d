/**
 * The proxy in front of `wrangler dev`, which trusts a client's `MF-Original-URL`: a hostile page whose name leads to
 * this machine could pose as localhost. The proxy removes such headers and gives requests whose `Host` is this
 * machine a secret; without it the queue requires a key. wrangler listens elsewhere.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import { text } from 'node:stream/consumers';
import { stripVTControlCharacters } from 'node:util';

/** The header with the secret, and the variable that passes it to the Worker. */
const HEADER = 'tocsin-localhost-secret';
const VARIABLE = 'LOCALHOST_SECRET';

/** A developer's machine has no places: the configured one applies in production only. */
export const ANYWHERE: readonly string[] = ['--var', 'DATA_LOCATION:'];

const LOCAL = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/i;

/** Headers of a client that say where it is and what it called, which are judged here. */
const CLAIMS = 'mf-.*|tocsin-localhost-secret|cf-connecting-ip|true-client-ip|forwarded|x-forwarded-.*|x-real-ip';
/** These, and those that are between two ends of a connection. */
const DROPPED = new RegExp(`^(?:${CLAIMS}|connection|keep-alive|proxy-.*|transfer-encoding|upgrade|expect)$`, 'i');

/** The runtime closes a connection that rests for 5 s: it is not used again shortly before. */
const REST_MS = 3_000;

/** Clients keep their connections longer than the runtime would. */
const KEEP_MS = 75_000;

/** Longest line and headers, as the runtime has it. */
const MAX_HEADERS = 65_536;

/** Answers of the queue that may have stacks, up to this size, bytes. */
const OF_QUEUE = 'application/openjobspec+json';
const MAX_READ = 1024 * 1024;

const STARTING = '{"error":{"code":"unavailable","message":"The development server is starting.","retryable":true}}';

/**
 * Listens, and passes requests on to wrangler once its address is known. @param port 0: any @param ip as for wrangler
 * @param reword what becomes of JSON answers of the queue
 * @throws {Error} where the port is taken
 */
export async function openFront(port: number, ip = 'localhost', reword = (json: string): string => json) {
  const secret = randomBytes(24).toString('base64url');
  const agent = new Agent({ keepAlive: true, timeout: REST_MS });
  let inner: URL | undefined;
  let line = '';
  const target = (message: IncomingMessage, headers: string[]) => ({
    host: inner?.hostname.replace(/^\[|\]$/g, ''),
    port: inner?.port,
    method: message.method,
    path: message.url,
    headers,
  });
  const serve = (message: IncomingMessage, answer: ServerResponse) => {
    if (!inner) return refuse(answer);
    pass(message, answer, request({ ...target(message, headersOf(message, secret)), agent }), reword);
  };
  const upgrade = (message: IncomingMessage, socket: Duplex) => {
    if (!inner) return socket.destroy();
    const headers = [...headersOf(message, secret), 'Connection', 'Upgrade', 'Upgrade', message.headers.upgrade ?? ''];
    join(socket, request({ ...target(message, headers), agent: false }));
  };
  const servers: Server[] = [];
  for (const host of ip === 'localhost' ? ['127.0.0.1', '::1'] : [ip === '*' ? '0.0.0.0' : ip]) {
    const server = createServer({ requestTimeout: 0, keepAliveTimeout: KEEP_MS, maxHeaderSize: MAX_HEADERS }, serve);
    server.on('upgrade', upgrade);
    const first = servers[0]?.address() as AddressInfo | undefined;
    try {
      await once(server.listen(first?.port ?? port, host), 'listening');
      servers.push(server);
    } catch (error) {
      // A second address need not be to be had: a machine may have no IPv6.
      if (first === undefined) throw error;
    }
  }
  const { port: listening } = (servers[0] as Server).address() as AddressInfo;
  const outer = `${ip === '*' ? '0.0.0.0' : ip.includes(':') ? `[${ip}]` : ip}:${listening}`;
  return {
    url: `http://${outer}`,
    /** What `wrangler dev` needs beside its own arguments. */
    args: ['--port', '0', '--ip', '127.0.0.1', ...ANYWHERE, '--var', `${VARIABLE}:${secret}`],
    /** The text with the addresses of wrangler as they are outside; learns from it where wrangler listens. */
    read: (output: string): string => {
      const printed = line + output;
      line = printed.slice(printed.lastIndexOf('\n') + 1);
      // In a colour terminal there are control sequences in it. A piece may end in the middle of an address.
      const [, found] = [...stripVTControlCharacters(printed).matchAll(/Ready on (http:\/\/\S+)\s/g)].at(-1) ?? [];
      if (found !== undefined) inner = new URL(found);
      return inner ? output.replaceAll(inner.host, outer) : output;
    },
    close: () => {
      agent.destroy();
      for (const server of servers) server.close().closeAllConnections();
    },
  };
}

function headersOf({ rawHeaders, headers, method = 'GET', socket }: IncomingMessage, secret: string): string[] {
  const passed = [...withoutDropped(rawHeaders), 'CF-Connecting-IP', socket.remoteAddress ?? ''];
  if (LOCAL.test(headers.host ?? '')) passed.push(HEADER, secret);
  if (headers['transfer-encoding'] !== undefined) passed.push('Transfer-Encoding', 'chunked');
  else if (headers['content-length'] === undefined && !['GET', 'HEAD'].includes(method))
    passed.push('Content-Length', '0');
  return passed;
}

const withoutDropped = (raw: readonly string[]): string[] =>
  raw.filter((_, at) => !DROPPED.test(raw[at - (at % 2)] as string));

/** Bodies flow in both directions as they come; who leaves takes the other end along. */
function pass(
  message: IncomingMessage,
  answer: ServerResponse,
  sent: ReturnType<typeof request>,
  reword: (json: string) => string,
): void {
  sent.on('response', (got) => {
    const { statusCode = 502, statusMessage, headers } = got;
    const passed = withoutDropped(got.rawHeaders);
    got.on('error', () => answer.destroy());
    const hasBody = message.method !== 'HEAD';
    if (hasBody && headers['content-type'] === OF_QUEUE && Number(headers['content-length']) <= MAX_READ) {
      const length = passed.findIndex((part, at) => at % 2 === 0 && /^content-length$/i.test(part));
      passed.splice(length, 2);
      const end = (json: string) => answer.writeHead(statusCode, statusMessage, passed).end(reword(json));
      return void text(got).then(end, () => answer.destroy());
    }
    answer.writeHead(statusCode, statusMessage, passed);
    answer.flushHeaders();
    got.pipe(answer);
  });
  sent.on('error', () => (answer.headersSent ? answer.destroy() : refuse(answer)));
  answer.on('close', () => sent.destroy());
  message.on('error', () => sent.destroy());
  message.pipe(sent);
}

/** A WebSocket: after the first answer its bytes are passed on unread. */
function join(socket: Duplex, sent: ReturnType<typeof request>): void {
  const head = (got: IncomingMessage, headers: readonly string[]) => {
    const lines = headers.map((_, at) => (at % 2 === 0 ? `${headers[at]}: ${headers[at + 1]}\r\n` : ''));
    socket.write(`HTTP/1.1 ${got.statusCode} ${got.statusMessage}\r\n${lines.join('')}\r\n`);
  };
  sent.on('upgrade', (got, other, first) => {
    head(got, got.rawHeaders);
    other.setNoDelay();
    other.unshift(first);
    pipeline(socket, other, socket, () => undefined);
  });
  sent.on('response', (got) => {
    head(got, [...withoutDropped(got.rawHeaders), 'Connection', 'close']);
    got.pipe(socket);
  });
  sent.on('error', () => socket.destroy());
  socket.on('error', () => sent.destroy());
  sent.end();
}

function refuse(answer: ServerResponse): void {
  answer.writeHead(503, { 'Content-Type': 'application/json', 'Retry-After': '1', Connection: 'close' }).end(STARTING);
}
