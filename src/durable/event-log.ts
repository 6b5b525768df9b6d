/** The live feed of one queue: its last events, in memory only, without rows, bounded in number and bytes. */
import type { EventChange, EventType, LoggedData } from '../job/event-data';
import { mintId } from '../job/ids';
import { cut } from '../job/text';

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
  change?: EventChange;
}

/** A published event, before it is rendered. */
export interface Published extends Pick<QueueEvent, 'type' | 'subject'> {
  /** The worker whose attempt at the job ended by it. Not shown. */
  heldBy?: string;
}

/** Called with the events of a commit, oldest first. */
export type Listener = (events: readonly Published[]) => void;

export const ENDS: ReadonlySet<string> = new Set(['job.completed', 'job.discarded', 'job.cancelled', 'job.expired']);

/** Events kept per queue, and the bytes of memory that they may take together. */
export const KEPT_EVENTS = 1000;
const KEPT_BYTES = 2 * 1024 * 1024;

/** A text inside an event is cut after this many characters. */
const MAX_TEXT = 1000;
/** JSON characters of an object in an event; a longer one is left out. */
const MAX_OBJECT = 2000;

/** Approximate bytes of an event besides its texts, and of each member. */
const EVENT_BYTES = 200;
const MEMBER_BYTES = 24;

type Stored = Omit<QueueEvent, 'id' | 'queue'> & Published & Place & { bytes: number };

interface Place {
  number: number;
  stamp: number;
}

export class EventLog {
  private ring: Stored[] = [];
  private pending: Stored[] = [];
  private readonly listeners = new Set<Listener>();
  private number = 0;
  private stamp = 0;
  /** Every event after this place is kept; undefined: none yet. A place, because minting an id per commit is slow. */
  private floor: Place | undefined;
  /** Of the events that are kept. */
  private bytes = 0;

  constructor(
    private readonly queue: string,
    private readonly route: number,
  ) {}

  get pendingCount(): number {
    return this.pending.length;
  }

  /**
   * Notes an event of the running transaction, visible after {@link publish}; long members are cut or left out
   * (`truncated: true`). @param heldBy the worker whose attempt ended by it
   */
  add<Type extends EventType>(
    type: Type,
    subject: string,
    time: number,
    data: LoggedData<Type>,
    change?: EventChange,
    heldBy?: string,
  ): void {
    const { members, bytes } = bounded(data as Members);
    const { number, stamp } = this.place(time);
    const stored: Stored = { type, subject, time, data: members, number, stamp, bytes };
    if (change) stored.change = change;
    if (heldBy !== undefined) stored.heldBy = heldBy;
    this.pending.push(stored);
  }

  /** The id of a place in the feed: after all events so far, before all later ones. @param now epoch ms */
  position(now: number): string {
    return this.idOf(this.place(now));
  }

  private place(time: number): Place {
    if (time > this.stamp) this.stamp = time;
    const place = { number: this.number++, stamp: this.stamp };
    this.floor ??= place;
    return place;
  }

  private idOf({ stamp, number }: Place): string {
    return `evt_${mintId(stamp, this.route, number)}`;
  }

  publish(): void {
    if (this.pending.length === 0) return;
    const published = this.pending;
    for (const event of published) {
      this.ring.push(event);
      this.bytes += event.bytes;
    }
    this.pending = [];
    this.dropOldest();
    for (const listener of [...this.listeners]) {
      try {
        listener(published);
      } catch (error) {
        // Their transaction is committed, and its caller waits for the answer.
        console.error(`tocsin: events of ${this.queue} could not be sent`, error);
      }
    }
  }

  /** The events of the running transaction so far. */
  unpublished(): QueueEvent[] {
    return this.pending.map((event) => this.shown(event));
  }

  shown(published: Published): QueueEvent {
    const { number, stamp, bytes: _, heldBy: __, ...event } = published as Stored;
    return { id: this.idOf({ number, stamp }), queue: this.queue, ...event };
  }

  private dropOldest(): void {
    let surplus = 0;
    while (this.ring.length - surplus > KEPT_EVENTS || this.bytes > KEPT_BYTES) {
      this.bytes -= this.ring[surplus++]?.bytes ?? 0;
    }
    const last = this.ring[surplus - 1];
    if (last) this.floor = last;
    if (surplus > 0) this.ring.splice(0, surplus);
  }

  /** May events after the one with this id be missing: no longer kept, or of an earlier life of the object? */
  isGapAfter(id: string): boolean {
    return this.floor === undefined || id < this.idOf(this.floor);
  }

  /** Calls `listener` with the events of every commit. @returns a function that ends this */
  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The operation, or the whole transaction, was rolled back. */
  rollback(count = 0): void {
    this.pending.length = count;
  }

  /** Events oldest first, after the one with the id `after` and from `since` (epoch ms) on, at most `limit`. */
  read(request: { types?: string[]; subject?: string; after?: string; since?: number; limit: number }): QueueEvent[] {
    const { types, subject, after, since = 0, limit } = request;
    const out: QueueEvent[] = [];
    for (const stored of this.ring) {
      if (stored.time < since || (types && !types.includes(stored.type))) continue;
      if (subject !== undefined && stored.subject !== subject) continue;
      if (after !== undefined && this.idOf(stored) <= after) continue;
      out.push(this.shown(stored));
      if (out.length === limit) break;
    }
    return out;
  }
}

type Members = Record<string, unknown>;

/** The data of an event within its bounds, and its approximate bytes of memory. */
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

/** The data of an event within its bounds. What is undefined is left out. */
export const boundedData = (data: Members): Members =>
  bounded(Object.fromEntries(Object.entries(data).filter(([, value]) => value !== undefined))).members;

/** The value itself when it is short enough; undefined for one that cannot be cut. */
function shortened(value: unknown): unknown {
  if (typeof value === 'string') return value.length > MAX_TEXT ? `${cut(value, MAX_TEXT - 1)}…` : value;
  if (typeof value !== 'object' || value === null || jsonLength(value) <= MAX_OBJECT) return value;
  if (Array.isArray(value)) return undefined;
  // The error of an attempt: its texts may be long, and a cut one is better than none.
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
