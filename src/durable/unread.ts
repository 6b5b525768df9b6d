/**
 * Bytes sent to WebSockets and streams and maybe unread: they wait in the isolate's memory, unreported by the
 * runtime. Clients are pinged with an unguessable number; its answer confirms what was sent before. When the shared
 * budget is used up, clients above their share are over.
 */
import { utf8Bytes } from '../job/bytes';

/** Approximate bytes that wait for all clients of an isolate together; and the minimum of a client. */
const MAX_IN_ALL = 24 * 1024 * 1024;
const LEAST_SHARE = 64 * 1024;

/** Bytes of a message besides its text: many are small. */
const AROUND = 64;

interface Waiting {
  bytes: number;
}

const clients = { count: 0, bytes: 0 };

/** Forgets clients that left silently. Without `enable_weak_ref` before 2025-05-05 they count on. */
const dropped: Pick<FinalizationRegistry<Waiting>, 'register' | 'unregister'> | undefined =
  typeof FinalizationRegistry === 'function'
    ? new FinalizationRegistry<Waiting>((waiting) => leave(waiting))
    : undefined;

function leave(waiting: Waiting): void {
  clients.count -= 1;
  clients.bytes -= waiting.bytes;
}

export class Share {
  private readonly waiting: Waiting = { bytes: 0 };
  private isGone = false;

  constructor() {
    clients.count += 1;
    dropped?.register(this, this.waiting, this);
  }

  get bytes(): number {
    return this.waiting.bytes;
  }

  set bytes(bytes: number) {
    if (this.isGone) return;
    clients.bytes += bytes - this.waiting.bytes;
    this.waiting.bytes = bytes;
  }

  /** Does too much wait in the isolate, and more than its share for this client? */
  get isTooMuch(): boolean {
    return clients.bytes > MAX_IN_ALL && this.bytes > Math.max(LEAST_SHARE, MAX_IN_ALL / clients.count);
  }

  end(): void {
    if (this.isGone) return;
    this.isGone = true;
    dropped?.unregister(this);
    leave(this.waiting);
  }
}

/** A ping that was not answered yet. */
interface Asked {
  n: number;
  /** Bytes that were sent since the one before. */
  bytes: number;
}

/** What the client of a WebSocket was sent and has not confirmed. */
export class Unread {
  private readonly share = new Share();
  private readonly asked: Asked[] = [];
  private sinceAsked = 0;
  /** Since when it owes an answer, or its last answer; epoch ms. */
  private waitsSince = 0;

  /** @param askAfter bytes after which it is asked */
  constructor(private readonly askAfter: number) {}

  get bytes(): number {
    return this.share.bytes;
  }

  /** See {@link Share.isTooMuch}. */
  get isTooMuch(): boolean {
    return this.share.isTooMuch;
  }

  /** Has it left pings unanswered for this long, ms, without any answer in between? */
  isSilent(ms: number, now: number): boolean {
    return this.asked.length > 0 && now - this.waitsSince >= ms;
  }

  /** Counts a message. @param now epoch ms @returns the number of the ping that must follow it, if one must */
  sent(text: string, now: number): number | undefined {
    const bytes = utf8Bytes(text) + AROUND;
    this.share.bytes += bytes;
    this.sinceAsked += bytes;
    if (this.sinceAsked < this.askAfter) return undefined;
    const n = crypto.getRandomValues(new Uint32Array(1))[0] as number;
    if (this.asked.length === 0) this.waitsSince = now;
    this.asked.push({ n, bytes: this.sinceAsked });
    this.sinceAsked = 0;
    return n;
  }

  /** It has answered a ping: it has read what was sent before that. Any other number is ignored. @param now epoch ms */
  answered(n: unknown, now: number): void {
    const at = this.asked.findIndex((asked) => asked.n === n);
    for (const { bytes } of this.asked.splice(0, at + 1)) this.share.bytes -= bytes;
    if (at >= 0) this.waitsSince = now;
  }

  end(): void {
    this.share.end();
  }
}
