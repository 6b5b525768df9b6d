/** After this long, ms, the runtime has dropped a request: a client that left runs no code to release its room. */
const LONGEST_HOLD_MS = 120_000;

/** The source of a request: without a key, with one, or code of this account. */
export type From = 'keyless' | 'keyed' | 'inside';

/** Bytes that a request holds, and since when. */
export interface Hold {
  bytes: number;
  since: number;
}

/**
 * Room for a number of bytes, and its holders. One request at a time may hold more than there is: it is counted
 * separately. So a request larger than all room is served, and of many that are half there one always ends.
 */
export class Room {
  private readonly holds = new Set<Hold>();
  private held = 0;
  private apart: Hold | undefined;

  /** @param max bytes */
  constructor(private readonly max: number) {}

  /** The new hold of a request with these bytes (more); undefined: there is no room. @param own its current hold */
  take(own: Hold | undefined, bytes: number): Hold | undefined {
    const known = own && (own === this.apart || this.holds.has(own)) ? own : undefined;
    if (known && known === this.apart) {
      known.bytes += bytes;
      return known;
    }
    if (!this.hasRoom(bytes)) this.forgetDropped(Date.now());
    const mine = known ?? { bytes: 0, since: Date.now() };
    if (this.hasRoom(bytes)) {
      this.holds.add(mine);
      this.held += bytes;
    } else if (this.apart === undefined) {
      this.release(known);
      this.apart = mine;
    } else {
      return undefined;
    }
    mine.bytes += bytes;
    return mine;
  }

  release(one: Hold | undefined): void {
    if (one === undefined) return;
    if (one === this.apart) this.apart = undefined;
    if (this.holds.delete(one)) this.held -= one.bytes;
  }

  private hasRoom(bytes: number): boolean {
    return this.held + bytes <= this.max;
  }

  private forgetDropped(now: number): void {
    for (const one of [this.apart, ...this.holds]) if (one && now - one.since > LONGEST_HOLD_MS) this.release(one);
  }
}
