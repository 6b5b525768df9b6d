/**
 * The live feed of one queue: its last events, in memory only, gone when the object sleeps. It costs no rows. It is bounded in
 * number and in bytes: what clients and handlers wrote into an event is cut, and the oldest events go.
 */
import { mintId } from '../job/ids';
import { cut } from '../job/text';
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

/** Events kept per queue, and the bytes of memory that they may take together. */
export const KEPT_EVENTS = 1000;
const KEPT_BYTES = 2 * 1024 * 1024;

/** A text inside an event is cut after so many characters. */
const MAX_TEXT = 1000;
/** An object inside an event, such as the data of a progress report, is left out beyond this many characters of JSON. */
const MAX_OBJECT = 2000;

/** About what an event takes beside its texts, and what each member takes, in bytes. */
const EVENT_BYTES = 200;
const MEMBER_BYTES = 24;

type Stored = Omit<QueueEvent, 'id' | 'queue'> & { number: number; bytes: number };

export class EventLog {
  private ring: Stored[] = [];
  private pending: Stored[] = [];
  private readonly listeners = new Set<(event: { type: string; subject: string }) => void>();
  private number = 0;
  /** Of the events that are kept. */
  private bytes = 0;
  /** Jobs that completed. */
  readonly completions = new Pace();

  constructor(
    private readonly queue: string,
    private readonly route: number,
  ) {}

  get pendingCount(): number {
    return this.pending.length;
  }

  /**
   * Notes an event of the running transaction; it shows only after {@link publish}. Long members are cut or left out, and
   * `truncated: true` stands beside them.
   */
  add(type: string, subject: string, time: number, data: Record<string, unknown>): void {
    const { members, bytes } = bounded(data);
    this.pending.push({ type, subject, time, data: members, number: this.number++, bytes });
  }

  /** The transaction is committed. */
  publish(): void {
    if (this.pending.length === 0) return;
    const published = this.pending;
    for (const event of published) {
      this.ring.push(event);
      this.bytes += event.bytes;
      if (event.type === 'job.completed') this.completions.note(event.time);
    }
    this.pending = [];
    this.dropOldest();
    for (const listener of [...this.listeners]) for (const event of published) listener(event);
  }

  private dropOldest(): void {
    let surplus = 0;
    while (this.ring.length - surplus > KEPT_EVENTS || this.bytes > KEPT_BYTES) {
      this.bytes -= this.ring[surplus++]?.bytes ?? 0;
    }
    if (surplus > 0) this.ring.splice(0, surplus);
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

  /** Events oldest first, after the one with the id `after` and from `since` (epoch ms) on, at most `limit`. */
  read(request: { types?: string[]; after?: string; since?: number; limit: number }): QueueEvent[] {
    const { types, after, since = 0, limit } = request;
    const out: QueueEvent[] = [];
    for (const { number, bytes: _, ...event } of this.ring) {
      if (event.time < since || (types && !types.includes(event.type))) continue;
      const id = `evt_${mintId(event.time, this.route, number)}`;
      if (after !== undefined && id <= after) continue;
      out.push({ id, queue: this.queue, ...event });
      if (out.length === limit) break;
    }
    return out;
  }
}

type Members = Record<string, unknown>;

/** The data of an event within its bounds, and about how many bytes of memory it takes. */
function bounded(data: Members): { members: Members; bytes: number } {
  let bytes = EVENT_BYTES;
  let members = data;
  for (const name in data) {
    const value = data[name];
    const short = shortened(value);
    bytes += MEMBER_BYTES + sizeOf(short);
    if (short === value) continue;
    if (members === data) members = { ...data, truncated: true };
    if (short === undefined) delete members[name];
    else members[name] = short;
  }
  return { members, bytes };
}

/** The value itself when it is short enough; undefined for one that cannot be cut. */
function shortened(value: unknown): unknown {
  if (typeof value === 'string') return value.length > MAX_TEXT ? `${cut(value, MAX_TEXT - 1)}…` : value;
  if (typeof value !== 'object' || value === null || jsonLength(value) <= MAX_OBJECT) return value;
  if (Array.isArray(value)) return undefined;
  // The error of an attempt: its texts may be long, and it is worth more than nothing.
  const texts = Object.entries(value).flatMap(([name, member]) =>
    typeof member === 'string' ? [[name, shortened(member)] as const] : [],
  );
  const rest = Object.fromEntries(texts);
  return texts.length > 0 && jsonLength(rest) <= 2 * MAX_OBJECT ? rest : undefined;
}

/** Bytes of memory: texts take up to two for each character. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return 2 * value.length;
  return typeof value === 'object' && value !== null ? 2 * jsonLength(value) : 0;
}

const jsonLength = (value: object): number => JSON.stringify(value).length;
