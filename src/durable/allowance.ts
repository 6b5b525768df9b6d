/** How many events a follower is sent in each second. It is notified of the number that it did not get. */

/** Events that one follower is sent in a second at most. */
export const EVENTS_PER_SECOND = 100;

const WINDOW_MS = 1000;

export class Allowance {
  private opened = Number.NEGATIVE_INFINITY;
  private used = 0;
  /** Events that did not fit, and were not reported yet. */
  private dropped = 0;

  constructor(private readonly perSecond: number = EVENTS_PER_SECOND) {}

  /** Asks to send `wanted` events at `now`, epoch ms. @returns how many may be sent; the others count as dropped */
  take(wanted: number, now: number): number {
    // A clock that went back begins a new second, too. While dropped events are unreported, no second begins: under
    // constant events that would put the report off for ever.
    if ((now >= this.opened + WINDOW_MS && this.dropped === 0) || now < this.opened) {
      this.opened = now;
      this.used = 0;
    }
    // After dropped events, none follow before they were reported.
    const room = this.dropped > 0 ? 0 : this.perSecond - this.used;
    const granted = Math.min(wanted, room);
    this.used += granted;
    this.dropped += wanted - granted;
    return granted;
  }

  /** When the dropped events must be reported, epoch ms; undefined when there are none. */
  get tellAt(): number | undefined {
    return this.dropped > 0 ? this.opened + WINDOW_MS : undefined;
  }

  takeDropped(): number {
    const { dropped } = this;
    this.dropped = 0;
    return dropped;
  }
}
