/** A thread sends heartbeats while a handler blocks the event loop, so that the worker's leases do not run out. */
import { startThread, type Thread } from './node';

export interface Address {
  base: string;
  headers: Readonly<Record<string, string>>;
}

/** Members of the shared memory: turns of the loop, and ms between two heartbeats. */
const TURN = 0;
const EVERY = 1;

/** How often the thread looks, and how long the loop must have been blocked for that, in ms. */
const LOOK_MS = 100;
const STILL_MS = 400;

/** The longest interval, in ms. */
const LONGEST_MS = 2 ** 31 - 1;

const THREAD = `
const { parentPort, workerData } = require('node:worker_threads');
const { url, headers, memory, times } = workerData;
let { body } = workerData;
parentPort.on('message', (next) => { body = next; });
let turn = -1, turned = Date.now(), beaten = 0, sending = false;
setInterval(() => {
  const now = Date.now(), latest = Atomics.load(memory, ${TURN}), every = Atomics.load(memory, ${EVERY});
  if (latest !== turn) { turn = latest; turned = now; return; }
  if (sending || now - turned < Math.max(${STILL_MS}, every / 2) || now - beaten < every) return;
  sending = true;
  beaten = now;
  const signal = AbortSignal.timeout(Math.max(1000, every));
  fetch(url, { method: 'POST', headers, body, signal }).then((answer) => {
    if (answer.ok) times[0] = now;
    return answer.arrayBuffer();
  }).catch(() => undefined).finally(() => { sending = false; });
}, ${LOOK_MS});
`;

export class Pulse {
  readonly #memory = new Int32Array(new SharedArrayBuffer(8));
  readonly #times = new Float64Array(new SharedArrayBuffer(8));
  #thread: Thread | undefined;

  /** @param body of the heartbeats */
  constructor({ base, headers }: Address, body: string) {
    this.every(LONGEST_MS);
    const json = { ...headers, 'Content-Type': 'application/json' };
    const shared = { memory: this.#memory, times: this.#times };
    const data = { url: `${base}/ojs/v1/workers/heartbeat`, headers: json, body, ...shared };
    try {
      this.#thread = startThread(THREAD, data, 'tocsin heartbeats');
      this.#thread?.unref();
      // Without it the worker is as one on a platform without threads.
      this.#thread?.on('error', () => {
        this.#thread = undefined;
      });
    } catch {
      // As above.
    }
  }

  get works(): boolean {
    return this.#thread !== undefined;
  }

  turn(): void {
    Atomics.add(this.#memory, TURN, 1);
  }

  /** Interval between two heartbeats, ms. */
  every(ms: number): void {
    Atomics.store(this.#memory, EVERY, Math.min(LONGEST_MS, Math.round(ms)));
  }

  setBody(body: string): void {
    this.#thread?.postMessage(body);
  }

  /** When the last one was sent that was answered, epoch ms; 0: never. */
  get lastBeatAt(): number {
    return this.#times[0] as number;
  }

  stop(): void {
    void this.#thread?.terminate();
  }
}
