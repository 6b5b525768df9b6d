/** The socket of one worker: what it is ready for, what it was sent, and what it has read of that. */
import { writeJob } from '../../../../job/envelope/write';
import type { ErrorData } from '../../../../job/errors';
import type { RunnerView } from '../../../../job/record';
import { grouped } from '../../../../job/size';
import { renderRefusal } from '../../../../job/worker/outcomes';
import type { Connection } from '../../../../job/worker/socket';
import type { ClaimRequest } from '../../../../rpc/workers';
import type { QueueState } from '../../../store/state';

/** Most characters of jobs in one message, unless a single job is larger. */
const MAX_JOBS_CHARS = 512 * 1024;

/** A worker that has so many characters of jobs to read is given no more. */
const MAX_UNREAD = 4 * 1024 * 1024;

/** What outlives the memory of the object, in the attachment of the socket. */
interface Kept extends Connection {
  ready: number;
  seq: number;
}

export class Line {
  readonly worker: Connection;
  /** Jobs that it takes more. */
  ready: number;
  /** The claim that stands for it. */
  claim: (ClaimRequest & { waiter: string }) | undefined;
  /** An operator wants it to take no more jobs. */
  isSilenced = false;
  /** It waits to be told that no more jobs come. */
  isPausing = false;
  isOver = false;
  /** Messages that are being dealt with, and those in a row that could not be read. */
  underWay = 0;
  faults = 0;
  private seq: number;
  /** What it was sent and has not read, oldest first. */
  private unread: { seq: number; chars: number }[] = [];
  private unreadChars = 0;

  constructor(
    readonly socket: WebSocket,
    { ready, seq, ...worker }: Kept,
  ) {
    this.worker = worker;
    this.ready = ready;
    this.seq = seq;
  }

  /** Of a socket that an earlier life of the object has accepted. */
  static restored(socket: WebSocket): Line {
    return new Line(socket, socket.deserializeAttachment() as Kept);
  }

  /** Notes what must outlive the memory of the object. */
  keep(): void {
    this.socket.serializeAttachment({ ...this.worker, ready: this.ready, seq: this.seq } satisfies Kept);
  }

  get mayBeSent(): boolean {
    return !this.isOver && this.unreadChars <= MAX_UNREAD;
  }

  /** It has read jobs up to these. */
  hasRead(seq: number): void {
    while (this.unread[0] && this.unread[0].seq <= seq) this.unreadChars -= this.unread.shift()?.chars ?? 0;
  }

  /** Sends jobs that are leased to it. @returns those that could not be sent */
  sendJobs(q: QueueState, views: readonly RunnerView[]): RunnerView[] {
    const written = views.map((view) => ({ view, text: writeJob(view, q.variables, view.body) }));
    this.ready = Math.max(0, this.ready - views.length);
    let sent = 0;
    for (const group of grouped(written, ({ text }) => text.length, MAX_JOBS_CHARS)) {
      const seq = ++this.seq;
      const message = `{"type":"jobs","seq":${seq},"jobs":[${group.map(({ text }) => text).join(',')}]}`;
      if (!this.send(message)) break;
      this.unread.push({ seq, chars: message.length });
      this.unreadChars += message.length;
      sent += group.length;
    }
    this.keep();
    return views.slice(sent);
  }

  tell(message: Record<string, unknown>): void {
    this.send(JSON.stringify(message));
  }

  /** @param id of the message that is answered */
  tellError(error: ErrorData, id?: number): void {
    const { hint } = error;
    const told = { ...renderRefusal(error), ...(hint !== undefined && { hint }) };
    this.tell({ type: 'error', ...(id !== undefined && { id }), error: told });
  }

  /** @returns false when the socket is closed: the runtime may tell later, or not at all */
  private send(text: string): boolean {
    if (this.isOver) return false;
    try {
      this.socket.send(text);
      return true;
    } catch {
      return false;
    }
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
