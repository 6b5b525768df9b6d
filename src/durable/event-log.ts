/** The live feed of one queue: the last 1000 events, in memory only, gone when the object sleeps. It costs no rows. */
import { mintId } from '../job/ids';
import { Pace } from './pace';

/** An event of the live feed. Kept in memory only. */
export interface QueueEvent {
  /** `evt_` + UUIDv7: sorts by time. */
  id: string;
  type: string;
  queue: string;
  /** Job id, or the queue's name. */
  subject: string;
  /** Epoch ms. */
  time: number;
  data: Record<string, unknown>;
}

/** Events kept per queue. */
export const KEPT_EVENTS = 1000;

type Stored = Omit<QueueEvent, 'id' | 'queue'> & { number: number };

export class EventLog {
  private ring: Stored[] = [];
  private pending: Stored[] = [];
  private readonly listeners = new Set<(event: { type: string; subject: string }) => void>();
  private number = 0;
  /** Jobs that completed. */
  readonly completions = new Pace();

  constructor(
    private readonly queue: string,
    private readonly route: number,
  ) {}

  get pendingCount(): number {
    return this.pending.length;
  }

  /** Notes an event of the running transaction; it shows only after {@link publish}. */
  add(type: string, subject: string, time: number, data: Record<string, unknown>): void {
    this.pending.push({ type, subject, time, data, number: this.number++ });
  }

  /** The transaction is committed. */
  publish(): void {
    if (this.pending.length === 0) return;
    const published = this.pending;
    for (const event of published) {
      this.ring.push(event);
      if (event.type === 'job.completed') this.completions.note(event.time);
    }
    this.pending = [];
    if (this.ring.length > 2 * KEPT_EVENTS) this.ring = this.ring.slice(-KEPT_EVENTS);
    for (const listener of [...this.listeners]) for (const event of published) listener(event);
  }

  /** Calls `listener` with every event once it is published. @returns a function that ends this */
  listen(listener: (event: { type: string; subject: string }) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The operation, or the whole transaction, was rolled back. */
  rollback(count = 0): void {
    this.pending.length = count;
  }

  /** Events oldest first, after the one with the id `after`, at most `limit`. */
  read(request: { types?: string[]; after?: string; limit: number }): QueueEvent[] {
    const out: QueueEvent[] = [];
    for (const { number, ...event } of this.ring.slice(-KEPT_EVENTS)) {
      if (request.types && !request.types.includes(event.type)) continue;
      const id = `evt_${mintId(event.time, this.route, number)}`;
      if (request.after !== undefined && id <= request.after) continue;
      out.push({ id, queue: this.queue, ...event });
      if (out.length === request.limit) break;
    }
    return out;
  }
}
