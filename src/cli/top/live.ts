/**
 * All events over the WebSocket of the dashboard. A connection that breaks off is made again and goes on after the last event;
 * where none comes about, or the runtime has no WebSocket, the event stream of the same server is followed instead.
 */
import type { QueueEvent } from '../../client/event';
import { errorFor } from '../../producer/errors';

/** Where to connect, and what ends it. */
export interface LiveOptions {
  url: string;
  key: string | undefined;
  signal: AbortSignal;
  /** Hears when the connection is there, and when it is lost, with the error. */
  onConnection(error?: Error): void;
  /** The same events over plain HTTP. */
  stream(onConnection: (error?: Error) => void): AsyncGenerator<QueueEvent>;
}

const CHANNEL = 'all';

/** First and longest pause before another try; how often a silent connection is proved, and how long that may take; in ms. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
const PROOF_MS = 25_000;
const PROOF_LIMIT_MS = 10_000;

/** Ids of events that are kept, so that none is told twice. */
const REMEMBERED = 1_000;

export async function* follow(options: LiveOptions): AsyncGenerator<QueueEvent> {
  const { signal, onConnection, stream } = options;
  const place: Place = { after: undefined, seen: new Set() };
  let wasThere = false;
  for (let tries = 0; !signal.aborted; tries++) {
    let isThere = false;
    if (typeof WebSocket === 'function') {
      for await (const event of connection(options, place)) {
        if (event === 'open') {
          onConnection();
          [isThere, wasThere, tries] = [true, true, 0];
        } else yield event;
      }
    }
    if (signal.aborted) return;
    if (!wasThere) return yield* overHttp(stream, onConnection);
    if (isThere) onConnection(new Error('The connection was lost.'));
    await pause(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tries) * (0.5 + Math.random() / 2), signal);
  }
}

async function* overHttp(stream: LiveOptions['stream'], onConnection: LiveOptions['onConnection']) {
  onConnection();
  yield* stream(onConnection);
}

/** Where the events go on. */
interface Place {
  after: string | undefined;
  seen: Set<string>;
}

type Message = { type?: string; position?: string } & Readonly<Record<string, unknown>>;

/** One connection until it ends: `open` once all is followed, then the events. @throws {TocsinError} when the server refuses */
async function* connection({ url, key, signal }: LiveOptions, place: Place): AsyncGenerator<QueueEvent | 'open'> {
  const address = new URL(`${url.replace(/\/+$/, '')}/ojs/v1/ws`);
  address.protocol = address.protocol.replace('http', 'ws');
  const headers = key === undefined ? {} : { Authorization: `Bearer ${key}` };
  const socket = new WebSocket(address, { protocols: ['ojs.v1'], headers });
  const { messages, put } = mailbox<Message | 'end'>();
  let proof: ReturnType<typeof setTimeout> | undefined;
  // A connection may be gone without a word.
  const proveLater = () => {
    clearTimeout(proof);
    proof = setTimeout(() => {
      if (socket.readyState === WebSocket.OPEN) socket.send('ping');
      proof = setTimeout(over, PROOF_LIMIT_MS);
    }, PROOF_MS);
  };
  const over = () => put('end');
  socket.onopen = () => {
    const after = place.after === undefined ? {} : { after: place.after };
    socket.send(JSON.stringify({ action: 'subscribe', channel: CHANNEL, ...after }));
  };
  socket.onmessage = ({ data }) => {
    proveLater();
    if (data !== 'pong') put(JSON.parse(String(data)) as Message);
  };
  socket.onclose = over;
  socket.onerror = over;
  signal.addEventListener('abort', over, { once: true });
  proveLater();
  try {
    for await (const message of messages) {
      if (message === 'end') return;
      if (message.type === 'ping') socket.send(JSON.stringify({ action: 'pong' }));
      else if (message.type === 'error') throw refusalOf(message);
      else if (message.type === 'subscribed') {
        place.after ??= message.position;
        yield 'open';
      } else if (message.type === 'event') {
        const event = eventOf(message);
        if (isNew(event, place)) yield event;
      }
    }
  } finally {
    clearTimeout(proof);
    signal.removeEventListener('abort', over);
    socket.close();
  }
}

/** What is put in, in that order. */
function mailbox<T>(): { messages: AsyncGenerator<T>; put(message: T): void } {
  const waiting: T[] = [];
  let wake: () => void = () => undefined;
  async function* read(): AsyncGenerator<T> {
    for (;;) {
      while (waiting.length > 0) yield waiting.shift() as T;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
  const put = (message: T) => {
    waiting.push(message);
    wake();
  };
  return { messages: read(), put };
}

/** The names of the socket's events as those of the list. */
function eventOf(message: Message): QueueEvent {
  const { event, id, timestamp, data } = message as { event: string; id: string; timestamp: string } & {
    data: Record<string, unknown>;
  };
  const { type: jobType, subject, job_id: job, worker_id: worker, workflow_id: workflow, queue, ...rest } = data;
  return {
    ...{ specversion: '1.0', id, type: event, source: '', time: timestamp },
    subject: String(subject ?? job ?? worker ?? workflow ?? queue ?? ''),
    data: {
      ...Object.fromEntries(Object.entries(rest).filter(([name]) => name !== 'event' && name !== 'timestamp')),
      ...(job !== undefined && { job_id: job }),
      ...(worker !== undefined && { worker_id: worker }),
      ...(workflow !== undefined && { workflow_id: workflow }),
      ...(queue !== undefined && { queue }),
      ...(typeof jobType === 'string' && jobType !== event && { job_type: jobType }),
    },
  };
}

/** A change of state comes with the event that says why; what was told before is told again after a break. */
function isNew({ id, type }: QueueEvent, place: Place): boolean {
  if (type.startsWith('system.')) return true;
  place.after = id;
  if (type === 'job.state_changed' || place.seen.has(id)) return false;
  place.seen.add(id);
  for (const oldest of place.seen) {
    if (place.seen.size <= REMEMBERED) break;
    place.seen.delete(oldest);
  }
  return true;
}

const refusalOf = ({ code, message }: Message) =>
  errorFor(String(message), { status: 422, code: String(code), retryable: false });

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    signal.addEventListener('abort', wake);
  });
}
