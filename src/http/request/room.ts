/** Room in the memory of an isolate. */

/**
 * A request that has held its room for so long, ms, was dropped by the runtime: when a client goes away, none of its code runs any
 * more, not even what was to let go of the room. Nor does it need it then.
 */
const LONGEST_HOLD_MS = 120_000;

/** Bytes that a request holds, and since when. */
export interface Hold {
  bytes: number;
  since: number;
}

/** Room for a number of bytes, and who holds how many of them. */
export class Room {
  private readonly holds = new Set<Hold>();
  private held = 0;

  /** @param max bytes */
  constructor(private readonly max: number) {}

  /** What a request holds with so many bytes (more); undefined: there is no room. @param own what it holds already */
  take(own: Hold | undefined, bytes: number): Hold | undefined {
    const hasRoom = () => this.held <= (own?.bytes ?? 0) || this.held + bytes <= this.max;
    if (!hasRoom()) this.forgetDropped(Date.now());
    if (!hasRoom()) return undefined;
    const mine = own && this.holds.has(own) ? own : { bytes: 0, since: Date.now() };
    mine.bytes += bytes;
    this.held += bytes;
    this.holds.add(mine);
    return mine;
  }

  release(one: Hold | undefined): void {
    if (one && this.holds.delete(one)) this.held -= one.bytes;
  }

  private forgetDropped(now: number): void {
    for (const one of this.holds) if (now - one.since > LONGEST_HOLD_MS) this.release(one);
  }
}
