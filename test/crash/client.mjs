/**
 * Requests to the server, and what becomes of them when it dies. Every call ends in one of three ways:
 *
 *     answer   the server answered
 *     cut      the request was sent, nobody knows what it did
 *     unsent   there was no server to send it to
 *
 * The gate holds all callers back while the server is down or must be left alone.
 */
import { Agent, request } from 'node:http';

/** A living server answers within this time, ms, or it hangs. */
const ANSWER_LIMIT_MS = 15_000;

export class Gate {
  #open = false;
  #waiting = [];

  get isOpen() {
    return this.#open;
  }

  open() {
    this.#open = true;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  close() {
    this.#open = false;
  }

  /** Resolves while the gate is open. */
  async passed() {
    while (!this.#open) await new Promise((resolve) => this.#waiting.push(resolve));
  }
}

export class Client {
  #agent = new Agent({ keepAlive: true });

  /** @param unexpected is told of answers that no server should give: none at all, or 5xx other than 503 */
  constructor({ port, gate, unexpected }) {
    this.port = port;
    this.gate = gate;
    this.unexpected = unexpected;
    this.calls = 0;
  }

  /** Forgets connections to a server that is gone. */
  reset() {
    this.#agent.destroy();
    this.#agent = new Agent({ keepAlive: true });
  }

  /** One request, once the gate lets it pass. Never rejects. `sentAt` is epoch ms. */
  async call(method, path, body) {
    await this.gate.passed();
    return this.send(method, path, body);
  }

  /** One request, whatever the gate says. */
  async send(method, path, body) {
    this.calls++;
    const sentAt = Date.now();
    const outcome = await this.#exchange(method, path, body);
    if (outcome.kind === 'answer' && outcome.status >= 500 && outcome.status !== 503) {
      this.unexpected(`${method} ${path} was answered ${outcome.status}: ${JSON.stringify(outcome.body)}`);
    }
    if (outcome.kind === 'cut' && outcome.late) {
      this.unexpected(`${method} ${path} was not answered within ${ANSWER_LIMIT_MS} ms`);
    }
    return { ...outcome, sentAt, answeredAt: Date.now() };
  }

  #exchange(method, path, body) {
    return new Promise((resolve) => {
      const json = body === undefined ? undefined : JSON.stringify(body);
      const outgoing = request(
        {
          ...{ host: '127.0.0.1', port: this.port, method, path: `/ojs/v1${path}`, agent: this.#agent },
          headers:
            json === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(json) },
        },
        (incoming) => {
          const parts = [];
          incoming.on('data', (part) => parts.push(part));
          incoming.on('error', () => resolve({ kind: 'cut' }));
          incoming.on('end', () => {
            try {
              const text = Buffer.concat(parts).toString();
              const isFile = incoming.headers['content-type'] === 'application/x-ndjson';
              const body = isFile ? text : text === '' ? {} : JSON.parse(text);
              resolve({ kind: 'answer', status: incoming.statusCode, body });
            } catch {
              resolve({ kind: 'cut' });
            }
          });
        },
      );
      outgoing.setTimeout(ANSWER_LIMIT_MS, () => {
        resolve({ kind: 'cut', late: true });
        outgoing.destroy();
      });
      outgoing.on('error', (error) => resolve({ kind: error.code === 'ECONNREFUSED' ? 'unsent' : 'cut' }));
      outgoing.end(json);
    });
  }
}
