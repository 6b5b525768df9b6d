/**
 * A small HTTP/1.1 client over keep-alive sockets. It costs a few microseconds per request, so that on two cores the
 * benchmark measures the server and not the client.
 */
import { connect } from 'node:net';

const HEAD_END = Buffer.from('\r\n\r\n');

/** The bytes of a request. `headers` are lines that end as such. */
export function request(method, path, body, headers = '') {
  const json = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
  return Buffer.from(
    `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n` +
      `${headers}Content-Length: ${Buffer.byteLength(json)}\r\n\r\n${json}`,
  );
}

export class Connection {
  #socket;
  #buffer = Buffer.alloc(0);
  #waiting = [];

  static open(port) {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => resolve(new Connection(socket)));
      socket.once('error', reject);
    });
  }

  constructor(socket) {
    this.#socket = socket;
    socket.on('data', (chunk) => this.#read(chunk));
    const fail = (error) => {
      for (const { reject } of this.#waiting.splice(0)) reject(error ?? new Error('The server closed the connection.'));
    };
    socket.on('error', fail);
    socket.on('close', () => fail());
  }

  /** Sends a request; several may be under way at once (pipelining). */
  send(bytes) {
    return new Promise((resolve, reject) => {
      // The runtime closes a connection on which nothing was sent for five seconds.
      if (!this.#socket.writable) return reject(new Error('The connection is closed.'));
      this.#waiting.push({ resolve, reject });
      this.#socket.write(bytes);
    });
  }

  close() {
    this.#socket.destroy();
  }

  #read(chunk) {
    this.#buffer = this.#buffer.length === 0 ? chunk : Buffer.concat([this.#buffer, chunk]);
    for (;;) {
      const message = parse(this.#buffer);
      if (message === undefined) return;
      this.#buffer = this.#buffer.subarray(message.end);
      this.#waiting.shift()?.resolve({ status: message.status, body: message.body });
    }
  }
}

/** The first complete response in `bytes`, or undefined. */
function parse(bytes) {
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd < 0) return undefined;
  const head = bytes.latin1Slice(0, headEnd);
  const status = Number(head.slice(9, 12));
  const start = headEnd + 4;
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) {
    const end = start + Number(length);
    return bytes.length < end ? undefined : { status, body: bytes.subarray(start, end), end };
  }
  return /\r\ntransfer-encoding: *chunked/i.test(head)
    ? parseChunks(bytes, start, status)
    : { status, body: Buffer.alloc(0), end: start };
}

function parseChunks(bytes, start, status) {
  const parts = [];
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(bytes.latin1Slice(at, lineEnd), 16);
    const next = lineEnd + 2 + size + 2;
    if (bytes.length < next) return undefined;
    if (size === 0) return { status, body: Buffer.concat(parts), end: next };
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = next;
  }
}

/** One request on a connection of its own: status and parsed JSON. @throws for a status of 400 and above */
export async function call(port, method, path, body) {
  const connection = await Connection.open(port);
  try {
    const answer = await connection.send(request(method, path, body));
    const text = answer.body.toString();
    if (answer.status >= 400) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 300)}`);
    return text === '' ? undefined : JSON.parse(text);
  } finally {
    connection.close();
  }
}

/**
 * Sends requests for a while, each connection one after the other's answer.
 * @param options.next gives the bytes of the next request, or undefined when there is nothing left
 * @returns requests answered, ms taken, latencies in ms, and how many answers were not 2xx
 */
export async function load({ port, connections, ms = Number.POSITIVE_INFINITY, next }) {
  const open = await Promise.all(Array.from({ length: connections }, () => Connection.open(port)));
  const latencies = [];
  let errors = 0;
  const start = performance.now();
  const lane = async (connection) => {
    for (;;) {
      const sentAt = performance.now();
      if (sentAt - start >= ms) return;
      const bytes = next();
      if (bytes === undefined) return;
      const { status } = await connection.send(bytes);
      if (status < 200 || status > 299) errors++;
      latencies.push(performance.now() - sentAt);
    }
  };
  try {
    await Promise.all(open.map(lane));
  } finally {
    for (const connection of open) connection.close();
  }
  return { requests: latencies.length, ms: performance.now() - start, latencies, errors };
}
