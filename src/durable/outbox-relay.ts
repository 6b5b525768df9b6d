/**
 * The outbox relay sends every message that must arrive at another object; nothing else retries.
 *
 *     decide, and note what must arrive (one transaction) ──▶ send ──▶ it was taken: forget it (one transaction)
 *
 * A message is an outbox row ({@link posted}), or derived from other rows. Messages to one address go one by one; a
 * failing address backs off and delays no other. Answers may be lost, so receivers act once (`inbox.ts`). Memory
 * holds addresses only, found again after a restart. The alarm is armed while it sends a bounded number per event.
 */
import { isPausedUntil } from './backoff';
import { type Outbox, type OutboxMessage, STANDBY_MS } from './outbox';
import { errorDataOf } from './platform-errors';

/** Pauses after an outbox message did not arrive, ms: doubled each time. */
const RETRY_MS = { first: 1_000, longest: 60_000 };

/** Addresses that are served at once. */
const WIDTH = 20;

/** Messages sent in one event. An object may make 1000 calls in one, and an outbox message may take several. */
const SENDS_PER_EVENT = 200;

/** Addresses of one kind that are backing off at once. Beyond that number, others of the kind wait for them. */
const MAX_RESTING = 5_000;

/** Characters of outbox messages that go together. A message holds 32 MiB. */
const MAX_MESSAGE_CHARS = 8 * 1024 * 1024;

/** No address. Most commits leave nothing to send, and finding that out allocates nothing. */
const NONE: readonly string[] = [];
const NO_STOPS: readonly Stop[] = [];

/** One sort of outbox messages, and how they are delivered: {@link posted} or {@link derived}. */
export interface MessageKind<A = unknown> {
  /** Unique for the object. */
  readonly kind: string;
  /** Addresses with an outbox message that is due at `now` (epoch ms), at most `limit`, none of `except`. */
  due(now: number, except: readonly string[], limit: number): readonly string[];
  /** When the next message to an address other than `except` is due, epoch ms. Infinity: there is none. */
  nextAt(except: readonly string[]): number;
  /** Sends the next messages to an address, and forgets those taken. @returns what the answer led to; rejects: again */
  deliver(address: string): Promise<A>;
}

export interface RelayHost {
  /** Epoch ms. */
  now(): number;
  /** Keeps the object alive until the promise ends. */
  keepAlive(promise: Promise<unknown>): void;
  /** Arms the alarm for `at`, epoch ms. */
  wakeAt(at: number): void;
}

export interface RelayBounds {
  /** Addresses that are served at once. */
  width?: number;
  /** Messages sent in one event. */
  sends?: number;
  /** Addresses of one kind that are backing off at once. */
  resting?: number;
}

interface Stop {
  kind: MessageKind;
  address: string;
}

export class OutboxRelay {
  private line: Stop[] = [];
  private readonly busy = new Map<string, Stop & { done: Promise<unknown> }>();
  /** Addresses that are backing off until `at`, epoch ms. */
  private readonly failing = new Map<string, Stop & { at: number; tries: number }>();
  private left = 0;
  private closed = false;

  constructor(
    private readonly kinds: readonly MessageKind[],
    private readonly host: RelayHost,
    private readonly bounds: RelayBounds = {},
  ) {}

  /** Sends what there is to send: after every commit and at every alarm. Neither waits nor throws. */
  start(why: 'commit' | 'alarm' = 'commit'): void {
    if (why === 'alarm' || this.busy.size === 0) this.left = this.bounds.sends ?? SENDS_PER_EVENT;
    this.next();
  }

  /** As {@link start}, for a caller that waits: addresses that failed a moment ago are served too. */
  startAnew(): void {
    for (const failure of this.failing.values()) failure.at = this.host.now();
    this.start('alarm');
  }

  /** When the alarm must ring if nothing else happens before, epoch ms; undefined: there is nothing to send. */
  due(now: number): number | undefined {
    if (this.busy.size > 0) return now + STANDBY_MS;
    let next = Number.POSITIVE_INFINITY;
    for (const kind of this.kinds) {
      const failing = this.backingOff(kind);
      if (!this.isFull(failing)) next = Math.min(next, kind.nextAt(failing));
    }
    for (const { at } of this.failing.values()) next = Math.min(next, at);
    return Number.isFinite(next) ? Math.max(next, now) : undefined;
  }

  /** Serves an address now. @returns the result of {@link MessageKind.deliver}; on rejection it is sent later */
  deliver<A>(kind: MessageKind<A>, address: string): Promise<A> {
    const running = this.busy.get(idOf(kind, address))?.done as Promise<A> | undefined;
    return running ?? this.serve(kind, address);
  }

  /** Is something being sent? @param kind absent: of any */
  isSending(kind?: MessageKind): boolean {
    return this.running(kind).length > 0;
  }

  private running(kind: MessageKind | undefined) {
    return [...this.busy.values()].filter((one) => kind === undefined || one.kind === kind);
  }

  /** Waits until nothing is being sent: what is left then is not due, or could not be delivered yet. Never rejects. */
  async idle(kind?: MessageKind): Promise<void> {
    for (;;) {
      const running = this.running(kind);
      if (running.length === 0) return;
      await Promise.allSettled(running.map(({ done }) => done));
    }
  }

  /** The object is being emptied: nothing more is sent. */
  close(): void {
    this.closed = true;
  }

  private next(): void {
    const { width = WIDTH } = this.bounds;
    try {
      if (this.closed || this.busy.size >= width) return;
      if (this.line.length === 0) this.line = this.find();
      while (this.busy.size < width) {
        const first = this.line[0];
        if (!first) return;
        if (this.left <= 0) {
          this.line = [];
          this.host.wakeAt(this.host.now() + 1);
          return;
        }
        this.line.shift();
        const { kind, address } = first;
        if (!this.busy.has(idOf(kind, address))) void this.serve(kind, address).catch(() => undefined);
      }
    } catch (error) {
      console.error('tocsin: outbox messages could not be read yet', error);
      this.host.wakeAt(this.host.now() + RETRY_MS.first);
    }
  }

  /** Addresses with something due; forgets failures where nothing is left. */
  private find(): Stop[] {
    const now = this.host.now();
    const limit = Math.max(1, this.left);
    const found: Stop[] = [];
    const excepted = this.busy.size + this.failing.size === 0 ? NO_STOPS : this.excepted(now);
    for (const kind of this.kinds) {
      if (found.length === limit) break;
      const addresses = this.isFull(this.backingOff(kind))
        ? this.rested(kind, now)
        : kind.due(now, this.addresses(kind, excepted), limit - found.length);
      if (addresses.length === 0) continue;
      for (const address of addresses.slice(0, limit - found.length)) found.push({ kind, address });
    }
    if (this.failing.size > 0 && found.length < limit) {
      const open = new Set(found.map(({ kind, address }) => idOf(kind, address)));
      for (const [id, { at }] of this.failing) {
        if (!isPausedUntil(at, now, RETRY_MS.longest) && !open.has(id) && !this.busy.has(id)) this.failing.delete(id);
      }
    }
    return found;
  }

  private excepted(now: number): Stop[] {
    const resting = [...this.failing.values()].filter(({ at }) => isPausedUntil(at, now, RETRY_MS.longest));
    return [...this.busy.values(), ...resting];
  }

  /** Are as many addresses of a kind backing off as memory, and a query, should hold? */
  private isFull(failing: readonly string[]): boolean {
    return failing.length >= (this.bounds.resting ?? MAX_RESTING);
  }

  private rested(kind: MessageKind, now: number): string[] {
    const isRested = ({ at }: { at: number }) => !isPausedUntil(at, now, RETRY_MS.longest);
    const rested = [...this.failing.values()].filter((one) => one.kind === kind && isRested(one));
    return rested.map(({ address }) => address).filter((address) => !this.busy.has(idOf(kind, address)));
  }

  private addresses(kind: MessageKind, all: readonly Stop[]): readonly string[] {
    return all.length === 0 ? NONE : all.filter((one) => one.kind === kind).map(({ address }) => address);
  }

  private backingOff(kind: MessageKind): readonly string[] {
    return this.failing.size === 0 ? NONE : this.addresses(kind, [...this.failing.values()]);
  }

  private serve<A>(kind: MessageKind<A>, address: string): Promise<A> {
    const id = idOf(kind, address);
    this.left--;
    const done = Promise.resolve()
      .then(() => kind.deliver(address))
      .then(
        (answer) => {
          this.failing.delete(id);
          return answer;
        },
        (error) => {
          this.failed(kind, address, error);
          throw error;
        },
      )
      .finally(() => {
        this.busy.delete(id);
        this.next();
      });
    this.busy.set(id, { kind, address, done });
    this.host.keepAlive(done.catch(() => undefined));
    return done;
  }

  private failed(kind: MessageKind, address: string, error: unknown): void {
    if (this.closed) return;
    // An object that answers "try again" is not a defect.
    if (!errorDataOf(error)?.retryable) {
      console.error(`tocsin: ${kind.kind} ${address} could not be delivered yet`, error);
    }
    const tries = (this.failing.get(idOf(kind, address))?.tries ?? 0) + 1;
    const at = this.host.now() + Math.min(RETRY_MS.longest, RETRY_MS.first * 2 ** (tries - 1));
    this.failing.set(idOf(kind, address), { kind, address, at, tries });
    this.host.wakeAt(at);
  }
}

const idOf = ({ kind }: MessageKind, address: string): string => `${kind} ${address}`;

/** Messages derived from rows that exist anyway. Once delivered, the address has none, or another one. */
export interface Derived<A> extends Pick<MessageKind<A>, 'kind' | 'deliver'> {
  /** Addresses that have one. */
  open(): readonly string[];
  /** From when they are sent, epoch ms. Absent: at once. */
  dueAt?(): number;
}

/** A kind whose outbox messages have no rows of their own. */
export function derived<A>({ kind, open, dueAt = () => 0, deliver }: Derived<A>): MessageKind<A> {
  const other = (except: readonly string[]) =>
    except.length === 0 ? open() : open().filter((address) => !except.includes(address));
  return {
    kind,
    due: (now, except, limit) => {
      const addresses = now < dueAt() ? NONE : other(except);
      return addresses.length > limit ? addresses.slice(0, limit) : addresses;
    },
    nextAt: (except) => (other(except).length > 0 ? dueAt() : Number.POSITIVE_INFINITY),
    deliver,
  };
}

/** Removes the taken outbox messages, unless replaced meanwhile. @param act consequences, in the same transaction */
export type Taken = <T>(act: (now: number) => T) => Promise<T>;

export interface Sending<A> {
  readonly kind: string;
  /** Sends messages to an address and calls `taken` once they arrived. Rejects when they must be sent again. */
  send(address: string, messages: readonly [OutboxMessage, ...OutboxMessage[]], taken: Taken): Promise<A>;
  /** Messages that go together have `most` items at most, unless the first alone has more. Absent: each goes alone. */
  readonly together?: { most: number; itemsIn(message: OutboxMessage): number };
}

/** The messages of one kind in the outbox. @param write runs a transaction, and rejects with what it throws */
export function posted<A>(
  outbox: Outbox,
  write: <T>(operation: (now: number) => T) => Promise<T>,
  { kind, send, together }: Sending<A>,
): MessageKind<A | undefined> {
  const next = (address: string): OutboxMessage[] => {
    const messages: OutboxMessage[] = [];
    let chars = 0;
    let items = 0;
    for (const message of outbox.read(kind, address)) {
      chars += message.data.length;
      items += together?.itemsIn(message) ?? 0;
      if (messages.length > 0 && (chars > MAX_MESSAGE_CHARS || items > (together?.most ?? 0))) break;
      messages.push(message);
      if (!together) break;
    }
    return messages;
  };
  return {
    kind,
    due: (now, except, limit) => outbox.due(kind, now, except, limit),
    nextAt: (except) => outbox.nextAt(kind, except),
    deliver: async (address) => {
      const [first, ...rest] = next(address);
      if (!first) return undefined;
      return send(address, [first, ...rest], (act) =>
        write((now) => {
          for (const message of [first, ...rest]) outbox.remove(kind, address, message);
          return act(now);
        }),
      );
    },
  };
}
