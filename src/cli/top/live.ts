/**
 * All events over the WebSocket of the dashboard. A connection that breaks off is made again and goes on after the last event;
 * where none comes about, or the runtime has no WebSocket, the event stream of the same server is followed instead.
 */
import type { QueueEvent } from '../../client/event';
import { isRepeated } from '../../client/follow';
import { Backoff, Changes, wait } from '../../client/timing';
import { authorization } from '../../client/transport';
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

export async function* follow(options: LiveOptions): AsyncGenerator<QueueEvent> {
  const { signal, onConnection, stream } = options;
  const place: Place = { after: undefined, seen: new Set() };
  const pauses = new Backoff(FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  let wasThere = false;
  while (!signal.aborted) {
    let isThere = false;
    if (typeof WebSocket === 'function') {
      for await (const event of connection(options, place)) {
        if (event === 'open') {
          onConnection();
          pauses.reset();
          [isThere, wasThere] = [true, true];
        } else yield event;
      }
    }
    if (signal.aborted) return;
    if (!wasThere) return yield* overHttp(stream, onConnection);
    if (isThere) onConnection(new Error('The connection was lost.'));
    await wait(pauses.next(), signal);
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
  const headers = authorization(key);
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
      if (message.type === 'ping') socket.send(JSON.stringify({ action: 'pong', n: message.n }));
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
  const changes = new Changes();
  async function* read(): AsyncGenerator<T> {
    for (;;) {
      while (waiting.length > 0) yield waiting.shift() as T;
      await changes.next();
    }
  }
  const put = (message: T) => {
    waiting.push(message);
    changes.notify();
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
function isNew(event: QueueEvent, place: Place): boolean {
  const { id, type } = event;
  if (!type.startsWith('system.')) place.after = id;
  return type !== 'job.state_changed' && !isRepeated(event, place.seen);
}

const refusalOf = ({ code, message }: Message) =>
  errorFor(String(message), { status: 422, code: String(code), retryable: false });
