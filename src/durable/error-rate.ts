/**
 * Which part of the attempts of the last minutes failed. In memory only: an object that slept has counted nothing meanwhile.
 */

const MINUTE_MS = 60_000;

/** Minutes that count, the running one included. */
const MINUTES = 5;

/** Of fewer attempts no rate is told: one failure would be all of them. */
const LEAST_ATTEMPTS = 5;

interface Minute {
  /** Minutes since the epoch. */
  at: number;
  ended: number;
  failed: number;
}

export class ErrorRate {
  /** Oldest first. */
  private minutes: Minute[] = [];

  /** An attempt has ended at `time`, epoch ms. */
  note(time: number, failed: boolean): void {
    const at = Math.floor(time / MINUTE_MS);
    let last = this.minutes.at(-1);
    if (last?.at !== at) {
      last = { at, ended: 0, failed: 0 };
      this.minutes = [...this.minutes.slice(1 - MINUTES), last];
    }
    last.ended++;
    if (failed) last.failed++;
  }

  /** 0 … 1, as far as it can be told; 0 where too little happened. @param now epoch ms */
  value(now: number): number {
    const { ended, failed } = this.counted(now);
    return ended < LEAST_ATTEMPTS ? 0 : failed / ended;
  }

  /** When the oldest minute stops counting, epoch ms; undefined: nothing counts. */
  changesAt(now: number): number | undefined {
    const oldest = this.minutes.find(({ at }) => isIn(at, now));
    return oldest && (oldest.at + MINUTES) * MINUTE_MS;
  }

  private counted(now: number): Pick<Minute, 'ended' | 'failed'> {
    const counted = { ended: 0, failed: 0 };
    for (const { at, ended, failed } of this.minutes) {
      if (!isIn(at, now)) continue;
      counted.ended += ended;
      counted.failed += failed;
    }
    return counted;
  }
}

function isIn(at: number, now: number): boolean {
  return at > Math.floor(now / MINUTE_MS) - MINUTES;
}
