/** The socket of one worker: what it is ready for, what it was sent, and how much of that it has read. */
import { isInside } from '../../../../across/bounds';
import type { QueueMessage } from '../../../../contract/worker-socket';
import { isPausedUntil } from '../../../../durable/backoff';
import { Unread } from '../../../../durable/unread';
import { renderRefusal } from '../../../../job/attempt/render-reported';
import { callsFor } from '../../../../job/chunk';
import { PolicyRoom } from '../../../../job/envelope/render';
import { writeJob } from '../../../../job/envelope/write';
import type { ErrorData } from '../../../../job/errors';
import type { RunnerView } from '../../../../job/record';
import { grouped } from '../../../../job/size';
import type { ConnectedKey, Connection } from '../../../../job/worker/socket';
import type { ClaimRequest } from '../../../../rpc/workers';
import { getMany } from '../../../read/find';
import type { Configured, StoredQueue } from '../../../store/parts';

/** Most characters of jobs in one message, unless a single job is larger. */
const MAX_JOBS_CHARS = 512 * 1024;

/** After this many bytes a worker is asked whether it has read them. */
const ASK_AFTER = 128 * 1024;

/**
 * With this many unread bytes a worker gets no more jobs. With the second number its socket is closed, because answers
 * count too.
 */
const MAX_UNREAD = 4 * 1024 * 1024;
const MAX_WAITING = 16 * 1024 * 1024;

/** A worker that gets no jobs for that reason, and answers no ping within this time, ms, is disconnected. */
const SILENT_MS = 30_000;

/** A key made at run time is checked again after this time, ms. */
const KEY_MS = 15_000;

/** What outlives the memory of the object, in the attachment of the socket. */
interface Kept extends Connection {
  ready: number;
  seq: number;
}

export interface ConnectionHost {
  /** Epoch ms. */
  now(): number;
  /** More waits for its worker than may. */
  doesNotRead(line: WorkerSocket): void;
  /** Its key made at run time, and its end; undefined: it may not be connected any more. @throws {ApiError} 503 */
  keyOf(worker: Connection): Promise<(ConnectedKey & { end: number }) | undefined>;
  hasNoKey(line: WorkerSocket): void;
}

export class WorkerSocket {
  readonly worker: Connection;
  /** Sent with its claims. Not kept: the queue remembers it from the first of them. */
  readonly said: Pick<Connection, 'handlers'>;
  ready: number;
  claim: (ClaimRequest & { waiter: string }) | undefined;
  /** An operator has directed it to take no more jobs. */
  isSilenced = false;
  /** It waits for the notice that no more jobs come. */
  isPausing = false;
  isOver = false;
  /** Messages that are being handled, and unreadable ones in a row. */
  underWay = 0;
  faults = 0;
  /** Its key as last checked, and until when that counts, epoch ms. Only id and hash are kept. */
  key: ConnectedKey | undefined;
  private checkedUntil = 0;
  private checking: Promise<boolean> | undefined;
  private seq: number;
  private readonly unread = new Unread(ASK_AFTER);

  constructor(
    readonly socket: WebSocket,
    { ready, seq, handlers, key, ...worker }: Kept,
    private readonly host: ConnectionHost,
  ) {
    this.worker = key ? { ...worker, key: { id: key.id, hash: key.hash } } : worker;
    this.key = key;
    this.said = handlers ? { handlers } : {};
    this.ready = ready;
    this.seq = seq;
  }

  /** Of a socket that an earlier life of the object has accepted. */
  static restored(socket: WebSocket, host: ConnectionHost): WorkerSocket {
    return new WorkerSocket(socket, socket.deserializeAttachment() as Kept, host);
  }

  /** Notes what must outlive the memory of the object. */
  keep(): void {
    this.socket.serializeAttachment({ ...this.worker, ready: this.ready, seq: this.seq } satisfies Kept);
  }

  /** Must its key be checked before it is sent jobs? */
  get isUnchecked(): boolean {
    return this.worker.key !== undefined && !isPausedUntil(this.checkedUntil, this.host.now(), KEY_MS);
  }

  /** May it still be connected? If not, it is disconnected. Messages that wait for that keep their order. */
  get isAllowed(): boolean | Promise<boolean> {
    if (this.isOver || !this.isUnchecked) return !this.isOver;
    this.checking ??= this.check().finally(() => {
      this.checking = undefined;
    });
    return this.checking;
  }

  private async check(): Promise<boolean> {
    const key = await this.host.keyOf({ ...this.worker, ...this.said });
    if (key) this.trust(key, key.end);
    else this.host.hasNoKey(this);
    return !this.isOver;
  }

  /** @param until the end of the key, epoch ms */
  trust(key: ConnectedKey, until = Number.POSITIVE_INFINITY): void {
    this.key = key;
    this.checkedUntil = Math.min(this.host.now() + KEY_MS, until);
  }

  /** May the worker know of this job of the queue? Its key may be bound by types. */
  sees(q: StoredQueue, id: string): boolean {
    const { bounds } = this.key ?? {};
    if (!bounds?.types) return true;
    const [view] = getMany(q, [id], this.host.now()).jobs;
    return view !== undefined && isInside(bounds, view);
  }

  get mayBeSent(): boolean {
    return !this.isOver && this.unread.bytes <= MAX_UNREAD && !this.unread.isTooMuch;
  }

  /** Does it get no jobs, and not confirm either that it reads what it was sent? */
  get isSilent(): boolean {
    return !this.mayBeSent && this.unread.isSilent(SILENT_MS, this.host.now());
  }

  hasRead(n: number): void {
    this.unread.answered(n, this.host.now());
  }

  end(): void {
    this.unread.end();
  }

  /** Sends jobs that are leased to it. @returns those that could not be sent */
  sendJobs(q: Configured, views: readonly RunnerView[]): RunnerView[] {
    const { retryVariables } = q.config.variables;
    const room = new PolicyRoom();
    const written = views.map((view) => ({ view, text: writeJob(view, retryVariables, view.body, room) }));
    this.ready = Math.max(0, this.ready - callsFor(views));
    let sent = 0;
    for (const group of grouped(written, ({ text }) => text.length, MAX_JOBS_CHARS)) {
      const seq = ++this.seq;
      const message = `{"type":"jobs","seq":${seq},"jobs":[${group.map(({ text }) => text).join(',')}]}`;
      if (!this.send(message)) break;
      sent += group.length;
    }
    this.keep();
    return views.slice(sent);
  }

  tell(message: QueueMessage): void {
    this.send(JSON.stringify(message));
  }

  /** @param id of the message that is answered */
  tellError(error: ErrorData, id?: number): void {
    const { hint } = error;
    const refusal = { ...renderRefusal(error), ...(hint !== undefined && { hint }) };
    this.tell({ type: 'error', ...(id !== undefined && { id }), error: refusal });
  }

  /** @returns false when the socket is closed: the runtime may report that later, or never */
  private send(text: string): boolean {
    if (this.isOver) return false;
    try {
      this.socket.send(text);
    } catch {
      return false;
    }
    const n = this.unread.sent(text, this.host.now());
    const { bytes, isTooMuch } = this.unread;
    if (bytes > (isTooMuch ? MAX_UNREAD : MAX_WAITING)) this.host.doesNotRead(this);
    else if (n !== undefined) this.tell({ type: 'ping', n });
    return true;
  }

  close(code: number, reason: string): void {
    this.isOver = true;
    try {
      this.socket.close(code, reason);
    } catch {
      // It is closed.
    }
  }
}
