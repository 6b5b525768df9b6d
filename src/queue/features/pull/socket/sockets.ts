/**
 * Workers that hold a socket to their queue, each over a hibernating WebSocket: `job/worker/socket.ts` has the
 * messages.
 *
 * A worker that is ready for jobs is a claim among all waiting fetches, until there is work for it. So there is one way
 * to claim, and jobs are leased on disk before they are sent. Messages are handled like the requests of the same names,
 * in shared transactions. The runtime holds the sockets while the object is evicted, and the attachment of each holds
 * its worker's readiness. So a waiting worker keeps no object awake, and costs no row.
 *
 * When a socket breaks off, its worker connects again and continues its jobs: their leases count, and a report without
 * an answer is sent again. Jobs that could not be sent go back unused.
 */
import type { HeartbeatAnswer } from '../../../../contract/pull';
import type { SocketEnqueued } from '../../../../contract/worker-socket';
import type { Directive } from '../../../../contract/workers';
import { PING, PONG } from '../../../../durable/feed-messages';
import type { SocketHost } from '../../../../durable/followers';
import { errorDataOf } from '../../../../durable/platform-errors';
import { renderOutcomes } from '../../../../job/attempt/render-reported';
import type { Bounds } from '../../../../job/bounds';
import { ApiError, type ErrorData, jobNotFound, notFound, type Outcome, unavailable } from '../../../../job/errors';
import { own } from '../../../../job/own';
import type { Heartbeat } from '../../../../job/worker/heartbeat';
import {
  type ConnectedKey,
  type Connection,
  MAX_MESSAGE,
  MAX_READY,
  parseMessage,
  readMessage,
  type SpokenBatch,
  type WorkerMessage,
} from '../../../../job/worker/socket';
import type { Report, Reported, StreamReceipt, StreamRequest } from '../../../../rpc/workers';
import { type OpenQueue, SocketClaims } from './socket-claims';
import { type ConnectionHost, WorkerSocket } from './worker-socket';

/** Sockets of one object at most; the runtime takes 32,768, and followers need theirs. */
const MAX_SOCKETS = 10_000;
const FULL_FOR_S = 30;

/** Messages of one worker that may be under way, and unreadable ones in a row, before its socket is closed. */
const MAX_UNDER_WAY = 200;
const MAX_FAULTS = 20;

/** Characters of all workers' messages that may be under way: parsed, they take several times their size. */
const MAX_HELD = MAX_MESSAGE;

/** When to repeat a message for which there was no room, s. */
const HELD_FOR_S = 1;

/** Marks the sockets of workers among those of the object. */
const TAG = 'worker';

/** Close codes: try again later; violates the protocol, too large; its queue is gone. */
const TRY_LATER = 1013;
const POLICY = 1008;
const TOO_LARGE = 1009;
const GONE = 4004;

/** The outcome of an attempt that its worker has not reported, by the event. */
const TAKEN: Readonly<Record<string, 'cancelled' | 'lost'>> = {
  'job.cancelled': 'cancelled',
  'job.discarded': 'lost',
  'job.failed': 'lost',
};

export interface SocketsHost {
  ctx: SocketHost & Pick<DurableObjectState, 'getTags'>;
  /** Epoch ms. */
  now(): number;
  keepAlive(promise: Promise<unknown>): void;
  /** Must this worker get no more jobs, as far as is known? */
  isSilenced(workerId: string): boolean;
  askSilenced(workerId: string): Promise<boolean>;
  /** Extends leases, and makes the worker known. @returns the answer on the wire */
  heartbeat(heard: Heartbeat, bounds: Bounds | undefined): Promise<HeartbeatAnswer>;
  /** Enqueues jobs, all or none. @returns the answer on the wire. @throws {ApiError} */
  enqueue(batch: SpokenBatch, creator: string | undefined, key: ConnectedKey | undefined): Promise<SocketEnqueued>;
  keyOf: ConnectionHost['keyOf'];
  /** Shows chunks of an output stream. @returns once they are written. @throws {ApiError} */
  writeStream(request: StreamRequest): Promise<StreamReceipt>;
  directiveOf(workerId: string): Promise<Directive>;
}

export class WorkerSockets {
  private readonly lines = new Map<WebSocket, WorkerSocket>();
  private supply: SocketClaims | undefined;
  private unlisten: (() => void) | undefined;
  /** Workers whose sockets were closed here and have not left: they still hold jobs, and their messages are ignored. */
  private readonly closing = new Map<WebSocket, WorkerSocket>();
  private readonly linesOf = new Map<string, Set<WorkerSocket>>();
  private held = 0;
  private readonly lineHost: ConnectionHost;

  constructor(private readonly host: SocketsHost) {
    this.lineHost = {
      now: () => host.now(),
      doesNotRead: (line) => this.cutOff(line, TRY_LATER, 'the worker does not confirm that it reads'),
      keyOf: (worker) => host.keyOf(worker),
      hasNoKey: (line) => this.cutOff(line, POLICY, 'the key has ended'),
    };
  }

  /** The queue is open: serves waiting workers. After an eviction the runtime knows them. */
  attach(open: OpenQueue): void {
    this.supply = new SocketClaims(
      open,
      (workerId) => this.host.isSilenced(workerId),
      (promise) => this.host.keepAlive(promise),
    );
    for (const socket of this.host.ctx.getWebSockets(TAG)) {
      if (!this.lines.has(socket)) this.note(WorkerSocket.restored(socket, this.lineHost));
    }
    this.listen();
    for (const line of this.lines.values()) this.host.keepAlive(this.serveAllowed(line));
  }

  /** A restarted object does not know the quiet workers: it asks before it hands out jobs. */
  private async serveAllowed(line: WorkerSocket): Promise<void> {
    line.isSilenced = true;
    line.isSilenced = await this.host.askSilenced(line.worker.worker_id);
    this.supply?.serve(line);
  }

  /** The queue is no longer open, or was never created. */
  detach(): void {
    this.supply = undefined;
    for (const line of this.lines.values()) line.claim = undefined;
    this.listen();
  }

  /** Answers the upgrade of a worker. @throws {ApiError} 503 when there are too many */
  accept(worker: Connection): Response {
    if (this.lines.size >= MAX_SOCKETS)
      throw unavailable('The maximum number of connected workers is reached.', FULL_FOR_S);
    const { 0: theirs, 1: ours } = new WebSocketPair();
    this.host.ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(PING, PONG));
    this.host.ctx.acceptWebSocket(ours, [TAG]);
    const line = new WorkerSocket(ours, { ...worker, ready: 0, seq: 0 }, this.lineHost);
    if (worker.key) line.trust(worker.key);
    line.isSilenced = this.host.isSilenced(worker.worker_id);
    line.keep();
    this.note(line);
    this.listen();
    return new Response(null, { status: 101, webSocket: theirs });
  }

  knows(socket: WebSocket): boolean {
    return this.closing.has(socket) || this.lineOf(socket) !== undefined;
  }

  /** A socket that the runtime has kept while the queue was not open. */
  private lineOf(socket: WebSocket): WorkerSocket | undefined {
    const known = this.lines.get(socket) ?? this.closing.get(socket);
    if (known || !this.host.ctx.getTags(socket).includes(TAG)) return known;
    return this.note(WorkerSocket.restored(socket, this.lineHost));
  }

  private note(line: WorkerSocket): WorkerSocket {
    const { worker_id } = line.worker;
    this.lines.set(line.socket, line);
    this.linesOf.set(worker_id, (this.linesOf.get(worker_id) ?? new Set()).add(line));
    return line;
  }

  heard(socket: WebSocket, data: string | ArrayBuffer): void {
    const line = this.lineOf(socket);
    if (!line || line.isOver) return;
    const size = typeof data === 'string' ? data.length : data.byteLength;
    if (size > MAX_MESSAGE) this.cutOff(line, TOO_LARGE, 'the message is too large');
    else if (line.underWay >= MAX_UNDER_WAY) this.cutOff(line, POLICY, 'too many messages at once');
    if (line.isOver) return;
    line.underWay++;
    this.held += size;
    const done = this.handle(line, data).finally(() => {
      line.underWay--;
      this.held -= size;
    });
    this.host.keepAlive(done);
  }

  left(socket: WebSocket): void {
    const line = this.lineOf(socket);
    if (!line) return;
    this.drop(line);
    this.closing.delete(socket);
    line.close(1000, '');
    line.end();
  }

  /** These workers must get no more jobs, or may again. */
  directed(workerIds: readonly string[], silenced: boolean): void {
    for (const line of workerIds.flatMap((id) => [...(this.linesOf.get(id) ?? [])])) {
      line.isSilenced = silenced;
      this.host.keepAlive(this.tellDirective(line));
      if (!silenced) this.supply?.serve(line);
    }
  }

  dismiss(): void {
    for (const line of [...this.lines.values()]) this.cutOff(line, GONE, 'gone');
    this.detach();
  }

  // ---- messages of workers ---------------------------------------------------------------------

  private async handle(line: WorkerSocket, data: string | ArrayBuffer): Promise<void> {
    // Known also of a message that cannot be read: its sender waits for an answer.
    let id = idAtFront(data);
    let isRead = false;
    try {
      if (this.held > MAX_HELD) throw unavailable('Other messages take the space; send it again.', HELD_FOR_S);
      const allowed = line.isAllowed;
      if (!(typeof allowed === 'boolean' ? allowed : await allowed)) return;
      const said = parseMessage(data);
      if (typeof said.id === 'number') id = said.id;
      const message = readMessage(said, line.worker.worker_id, this.host.now());
      line.faults = 0;
      isRead = true;
      mayBecomeReady(line, message);
      await this.act(line, message);
      this.supply?.serve(line);
      if (line.isSilent) this.lineHost.doesNotRead(line);
    } catch (thrown) {
      const error = refuse(line, thrown, id);
      if (!isRead && error && error.status < 500 && ++line.faults > MAX_FAULTS) {
        this.cutOff(line, POLICY, 'too many messages that cannot be read');
      }
    }
  }

  private async act(line: WorkerSocket, message: WorkerMessage): Promise<void> {
    switch (message.type) {
      case 'ready':
        return this.becomeReady(line, message.count);
      case 'report': {
        const { id, reports, ready } = message;
        const taken = this.supply?.report(line, reports) ?? noneTaken(reports);
        // The claim follows the reports into the same transaction.
        if (ready !== undefined) this.becomeReady(line, ready);
        return line.tell({ type: 'reported', id, ...renderOutcomes(reports, await taken) });
      }
      case 'enqueue':
        return line.tell({
          type: 'enqueued',
          id: message.batch.id,
          ...(await this.host.enqueue(message.batch, line.worker.creator, line.key)),
        });
      case 'stream':
        // It is answered within a second, and is not under way until then: there may be many.
        return this.host.keepAlive(this.stream(line, message));
      case 'heartbeat': {
        const { id } = message;
        const answer = await this.host.heartbeat(message.heard, line.key?.bounds);
        return line.tell({ type: 'heartbeat', ...(id !== undefined && { id }), ...answer });
      }
      case 'pause':
        return this.pause(line);
      case 'pong':
        return line.hasRead(message.n);
      case 'read':
        return;
    }
  }

  private async stream(line: WorkerSocket, { id, request }: WorkerMessage & { type: 'stream' }): Promise<void> {
    try {
      if (this.supply && !line.sees(this.supply.open.q, request.job_id)) throw notFound('job', request.job_id);
      line.tell({ type: 'streamed', id, ...(await this.host.writeStream(request)) });
    } catch (thrown) {
      refuse(line, thrown, id);
    }
  }

  private becomeReady(line: WorkerSocket, count: number): void {
    line.ready += count;
    line.keep();
    this.supply?.serve(line);
  }

  private pause(line: WorkerSocket): void {
    line.ready = 0;
    line.keep();
    if (this.supply) this.supply.pause(line);
    else line.tell({ type: 'paused' });
  }

  // ---- operators and others --------------------------------------------------------------------

  private async tellDirective(line: WorkerSocket): Promise<void> {
    try {
      const state = await this.host.directiveOf(line.worker.worker_id);
      // Where its key has bounds, they are those of another worker of its name.
      if ((await line.isAllowed) && !line.key?.bounds) line.tell({ type: 'directive', state });
    } catch (error) {
      // Its next heartbeat tells it.
      console.error('tocsin: a connected worker could not be sent its directive:', error);
    }
  }

  private listen(): void {
    this.unlisten?.();
    this.unlisten = undefined;
    const { supply } = this;
    if (!supply || this.lines.size === 0) return;
    this.unlisten = supply.open.q.observed.events.listen((events) => {
      for (const { type, subject: job_id, heldBy } of events) {
        const why = own(TAKEN, type);
        if (why === undefined || heldBy === undefined || supply.isReported(heldBy, job_id)) continue;
        for (const line of this.linesOf.get(heldBy) ?? []) {
          supply.whenAllowed(line, () => {
            if (line.sees(supply.open.q, job_id)) line.tell({ type: 'taken', jobs: [{ job_id, why }] });
          });
        }
      }
    });
  }

  private cutOff(line: WorkerSocket, code: number, reason: string): void {
    this.drop(line);
    this.closing.set(line.socket, line);
    line.close(code, reason);
  }

  private drop(line: WorkerSocket): void {
    line.isOver = true;
    this.lines.delete(line.socket);
    const { worker_id } = line.worker;
    const others = this.linesOf.get(worker_id);
    others?.delete(line);
    if (others?.size === 0) this.linesOf.delete(worker_id);
    this.supply?.withdraw(line);
    if (this.lines.size === 0) this.listen();
  }
}

/**
 * Refuses a message that would make its worker ready for too many jobs, before any of it is acted on.
 * @throws {ApiError} 400
 */
function mayBecomeReady({ ready }: WorkerSocket, message: WorkerMessage): void {
  const more = message.type === 'ready' ? message.count : message.type === 'report' ? (message.ready ?? 0) : 0;
  if (ready + more <= MAX_READY) return;
  throw new ApiError({
    ...{ status: 400, code: 'invalid_request', retryable: false },
    message: `A worker is ready for at most ${MAX_READY} jobs at once; it is for ${ready}.`,
    details: { field: 'ready', ready, max_ready: MAX_READY },
  });
}

const noneTaken = (reports: readonly Outcome<Report>[]): Outcome<Reported>[] =>
  reports.map((report) => (report.ok ? jobNotFound(report.value.job_id) : report));

/** @returns why a message was refused; undefined: by a defect */
function refuse(line: WorkerSocket, thrown: unknown, id: number | undefined): ErrorData | undefined {
  const error = errorDataOf(thrown);
  if (!error) console.error('tocsin: a message of a worker could not be handled:', thrown);
  line.tellError(error ?? NOT_DONE, id);
  return error;
}

/** The id of a message that is not parsed, if it comes first. */
function idAtFront(data: string | ArrayBuffer): number | undefined {
  const [, id] = (typeof data === 'string' && /^.{0,40}"id":\s?(\d{1,15})\b/.exec(data.slice(0, 80))) || [];
  return id === undefined ? undefined : Number(id);
}

const NOT_DONE: ErrorData = {
  ...{ status: 500, code: 'backend_error', retryable: true },
  message: 'The message could not be handled.',
};
