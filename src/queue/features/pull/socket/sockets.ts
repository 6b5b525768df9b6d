/**
 * Workers that hold a socket to their queue, each over a hibernating WebSocket: `job/worker/socket.ts` has what both sides say.
 *
 * A worker that is ready for jobs is a claim that stands in the line of all waiting fetches, until there is work for it; so
 * there is one way to claim, and jobs are leased on disk before they are sent. Messages are dealt with as the requests of the
 * same names, in shared transactions. The runtime holds the sockets while the object is evicted, and what a worker is ready for
 * stands in its attachment. So a worker that waits keeps no object awake, and costs no row.
 *
 * When a socket breaks off, its worker connects again and goes on with its jobs: their leases are what counts, and a report
 * that was not answered is sent again. Jobs that could not be sent at all go back unused.
 */
import { defined } from '../../../../job/envelope/fields';
import { ApiError, apiErrorData, type ErrorData, type Outcome, unavailable } from '../../../../job/errors';
import type { JobView } from '../../../../job/record';
import type { Heartbeat } from '../../../../job/worker/heartbeat';
import { renderOutcomes } from '../../../../job/worker/outcomes';
import {
  type Connection,
  MAX_MESSAGE,
  MAX_READY,
  parseMessage,
  readMessage,
  type WorkerMessage,
} from '../../../../job/worker/socket';
import type { Reported } from '../../../../rpc/workers';
import { leasesOf } from '../../../jobs/leased';
import { takeBack } from '../../../jobs/report';
import type { QueueState } from '../../../store/state';
import type { Pulling } from '../feature';
import { Line } from './line';

/** Sockets of one object at most; the runtime takes 32,768, and followers want theirs. */
const MAX_SOCKETS = 10_000;
const FULL_FOR_S = 30;

/** Jobs that one claim takes. */
const MAX_COUNT = 100;

/** Messages of one worker that may be under way, and those in a row that cannot be read, before it is cut off. */
const MAX_UNDER_WAY = 200;
const MAX_FAULTS = 20;

/** Characters of messages that may be under way, of all workers together. */
const MAX_HELD = 32 * 1024 * 1024;

/** Marks the sockets of workers among those of the object. */
const TAG = 'worker';

/** Close codes: does not keep to the protocol, too large; what it works on is no more. */
const POLICY = 1008;
const TOO_LARGE = 1009;
const GONE = 4004;

/** How an attempt ends that its worker has not reported, by the event. */
const TAKEN: Readonly<Record<string, 'cancelled' | 'lost'>> = {
  'job.cancelled': 'cancelled',
  'job.discarded': 'lost',
  'job.failed': 'lost',
};

/** What the sockets need of an opened queue. */
export interface OpenQueue {
  q: QueueState;
  pull: Pulling;
  write<T>(operation: (now: number) => T): Promise<Outcome<T>>;
}

/** What they need of the object around it. */
export interface SocketsHost {
  ctx: Pick<DurableObjectState, 'acceptWebSocket' | 'getWebSockets' | 'getTags'>;
  /** Epoch ms. */
  now(): number;
  /** Keeps the object alive until the promise ends. */
  keepAlive(promise: Promise<unknown>): void;
  /** Must this worker get no more jobs, as far as is known? */
  isSilenced(workerId: string): boolean;
  /** Extends leases, and makes the worker known. @returns the answer on the wire */
  heartbeat(heard: Heartbeat): Promise<Record<string, unknown>>;
  /** What an operator wants a worker to do. */
  directiveOf(workerId: string): Promise<string>;
}

export class WorkerSockets {
  private readonly lines = new Map<WebSocket, Line>();
  private open: OpenQueue | undefined;
  private unlisten: (() => void) | undefined;
  /** Who runs a job that was sent here, by its id. */
  private readonly holders = new Map<string, Line>();
  private held = 0;

  constructor(private readonly host: SocketsHost) {}

  /** The queue is open: those who wait for jobs get them. After an eviction the runtime knows who they are. */
  attach(open: OpenQueue): void {
    this.open = open;
    for (const socket of this.host.ctx.getWebSockets(TAG)) {
      const line = this.lines.get(socket) ?? Line.restored(socket);
      this.lines.set(socket, line);
    }
    this.listen();
    for (const line of this.lines.values()) {
      for (const { id } of leasesOf(open.q, line.worker.worker_id)) this.holders.set(id, line);
      this.serve(line);
    }
  }

  /** Answers the upgrade of a worker. @throws {ApiError} 503 when there are too many */
  accept(worker: Connection): Response {
    if (this.lines.size >= MAX_SOCKETS)
      throw unavailable('As many workers are connected as the queue takes.', FULL_FOR_S);
    const { 0: theirs, 1: ours } = new WebSocketPair();
    this.host.ctx.acceptWebSocket(ours, [TAG]);
    const line = new Line(ours, { ...worker, ready: 0, seq: 0 });
    line.isSilenced = this.host.isSilenced(worker.worker_id);
    line.keep();
    this.lines.set(ours, line);
    if (this.open) for (const { id } of leasesOf(this.open.q, worker.worker_id)) this.holders.set(id, line);
    this.listen();
    return new Response(null, { status: 101, webSocket: theirs });
  }

  /** Is this the socket of a worker? */
  knows(socket: WebSocket): boolean {
    return this.lineOf(socket) !== undefined;
  }

  /** One that the runtime has kept while the queue was not open. */
  private lineOf(socket: WebSocket): Line | undefined {
    const known = this.lines.get(socket);
    if (known || !this.host.ctx.getTags(socket).includes(TAG)) return known;
    const line = Line.restored(socket);
    this.lines.set(socket, line);
    return line;
  }

  /** A worker has said something. */
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

  /** A worker is gone. */
  left(socket: WebSocket): void {
    const line = this.lineOf(socket);
    if (!line) return;
    this.drop(line);
    line.close(1000, '');
  }

  /** These workers must get no more jobs, or may again. */
  directed(workerIds: readonly string[], silenced: boolean): void {
    for (const line of this.lines.values()) {
      const { worker_id } = line.worker;
      if (!workerIds.includes(worker_id)) continue;
      line.isSilenced = silenced;
      this.host.keepAlive(this.tellDirective(line));
      if (!silenced) this.serve(line);
    }
  }

  /** The queue is no more. */
  dismiss(): void {
    for (const line of [...this.lines.values()]) this.cutOff(line, GONE, 'gone');
    this.open = undefined;
  }

  // ---- what they say -----------------------------------------------------------------------------------------------

  private async handle(line: Line, data: string | ArrayBuffer): Promise<void> {
    let id: number | undefined;
    try {
      if (this.held > MAX_HELD) throw unavailable('Other messages take the room; send it again.');
      const said = parseMessage(data);
      if (typeof said.id === 'number') id = said.id;
      const message = readMessage(said, line.worker.worker_id, this.host.now());
      line.faults = 0;
      if (message.got !== undefined) line.hasRead(message.got);
      await this.act(line, message);
      this.serve(line);
    } catch (thrown) {
      const error = apiErrorData(thrown);
      if (!error) console.error('tocsin: a message of a worker could not be dealt with:', thrown);
      line.tellError(error ?? NOT_DONE, id);
      if (error && error.status < 500 && ++line.faults > MAX_FAULTS) {
        this.cutOff(line, POLICY, 'too many messages that cannot be read');
      }
    }
  }

  private async act(line: Line, message: WorkerMessage): Promise<void> {
    switch (message.type) {
      case 'ready':
        return this.becomeReady(line, message.count);
      case 'report': {
        const { id, reports, ready } = message;
        const taken = this.report(line, reports);
        // The claim follows the reports into the same transaction.
        if (ready !== undefined) this.becomeReady(line, ready);
        return line.tell({ type: 'reported', id, ...renderOutcomes(reports, await taken) });
      }
      case 'heartbeat': {
        const answer = await this.host.heartbeat(message.heard);
        return line.tell({ type: 'heartbeat', ...answer });
      }
      case 'pause':
        return this.pause(line);
      case 'read':
        return;
    }
  }

  /** @throws {ApiError} 400 when it would be ready for too many */
  private becomeReady(line: Line, count: number): void {
    if (line.ready + count > MAX_READY) {
      throw new ApiError({
        ...{ status: 400, code: 'invalid_request', retryable: false },
        message: `A worker is ready for at most ${MAX_READY} jobs at once; it is for ${line.ready}.`,
        details: { field: 'ready', ready: line.ready, max_ready: MAX_READY },
      });
    }
    line.ready += count;
    line.keep();
    this.serve(line);
  }

  private async report(
    line: Line,
    reports: Extract<WorkerMessage, { type: 'report' }>['reports'],
  ): Promise<Outcome<Reported>[]> {
    const valid = reports.flatMap((report) => (report.ok ? [report.value] : []));
    for (const { job_id } of valid) if (this.holders.get(job_id) === line) this.holders.delete(job_id);
    const { open } = this;
    const refused: ErrorData | undefined = open ? undefined : unavailable('The queue does not exist.').data;
    const told = open && valid.length > 0 ? await open.pull.report(valid) : [];
    let at = 0;
    return reports.map((report) =>
      report.ok ? (told[at++] ?? { ok: false, error: refused ?? NOT_DONE }) : { ok: false, error: report.error },
    );
  }

  private pause(line: Line): void {
    line.ready = 0;
    line.keep();
    line.isPausing = true;
    if (line.claim) this.open?.pull.withdraw(line.claim.waiter);
    else this.tellPaused(line);
  }

  private tellPaused(line: Line): void {
    line.isPausing = false;
    line.tell({ type: 'paused' });
  }

  // ---- what they are given -----------------------------------------------------------------------------------------

  /** Has a claim stand for a worker that is ready and reads what it is sent. */
  private serve(line: Line): void {
    const { open } = this;
    const { worker } = line;
    const count = Math.min(line.ready, MAX_COUNT);
    if (!open || line.isSilenced || !line.mayBeSent || count === 0) return;
    if (line.claim) {
      line.claim.count = count;
      return;
    }
    const claim = { ...worker, count, waiter: crypto.randomUUID() };
    line.claim = claim;
    const isUnwanted = () => line.isOver || this.host.isSilenced(worker.worker_id);
    void open.pull.claim(claim, Number.POSITIVE_INFINITY, isUnwanted).then(
      (outcome) => this.give(line, open, outcome),
      (error: unknown) => {
        console.error('tocsin: the claim of a connected worker failed:', error);
        this.give(line, open, { ok: false, error: unavailable('The queue could not give out jobs.').data });
      },
    );
  }

  private give(line: Line, open: OpenQueue, outcome: Outcome<JobView[]>): void {
    line.claim = undefined;
    if (!outcome.ok) {
      // It says again what it is ready for when it wants to try again.
      line.ready = 0;
      line.tellError(outcome.error);
    } else if (outcome.value.length > 0) {
      for (const { record } of outcome.value) this.holders.set(record.id, line);
      const unsent = line.sendJobs(open.q, outcome.value);
      if (unsent.length > 0) this.giveBack(open, unsent);
    } else if (this.host.isSilenced(line.worker.worker_id)) {
      line.isSilenced = true;
    }
    if (line.isPausing) this.tellPaused(line);
    else this.serve(line);
  }

  /** Gives jobs back that nobody has seen. */
  private giveBack(open: OpenQueue, views: readonly JobView[]): void {
    const claims = views.map(({ record: { id, attempt, delivery_id, worker_id } }) =>
      defined({ job_id: id, attempt, delivery_id, worker_id }),
    );
    for (const { job_id } of claims) this.holders.delete(job_id);
    const written = open.write((now) => takeBack(open.q, claims, now));
    this.host.keepAlive(written.catch((error) => console.error('tocsin: unsent jobs keep their leases:', error)));
  }

  private async tellDirective(line: Line): Promise<void> {
    try {
      line.tell({ type: 'directive', state: await this.host.directiveOf(line.worker.worker_id) });
    } catch (error) {
      // Its next heartbeat tells it.
      console.error('tocsin: a connected worker could not be told its directive:', error);
    }
  }

  // ---- what becomes of their jobs ----------------------------------------------------------------------------------

  /** Listens while there are workers. */
  private listen(): void {
    this.unlisten?.();
    this.unlisten = undefined;
    if (!this.open || this.lines.size === 0) return;
    this.unlisten = this.open.q.events.listen((events) => {
      for (const { type, subject } of events)
        if (TAKEN[type] && this.holders.has(subject)) this.taken(subject, TAKEN[type]);
    });
  }

  private taken(job_id: string, why: 'cancelled' | 'lost'): void {
    const line = this.holders.get(job_id);
    this.holders.delete(job_id);
    line?.tell({ type: 'taken', jobs: [{ job_id, why }] });
  }

  private cutOff(line: Line, code: number, reason: string): void {
    this.drop(line);
    line.close(code, reason);
  }

  private drop(line: Line): void {
    line.isOver = true;
    this.lines.delete(line.socket);
    for (const [id, holder] of this.holders) if (holder === line) this.holders.delete(id);
    if (line.claim) this.open?.pull.withdraw(line.claim.waiter);
    if (this.lines.size === 0) this.listen();
  }
}

const NOT_DONE: ErrorData = {
  ...{ status: 500, code: 'backend_error', retryable: true },
  message: 'The message could not be dealt with.',
};
