interface Deadline {
  /** Epoch ms. */
  at: number;
  /** Null: no one waits for it any more. */
  expire: (() => void) | null;
  timer: ReturnType<typeof setTimeout> | null;
}

/** Time limits of runs that begin together. Timers are set at the end of their turn: most runs are over by then. */
export class Deadlines {
  #fresh: Deadline[] = [];

  /** Calls `expire` after `ms`. @returns ends that */
  watch(ms: number, expire: () => void): () => void {
    const entry: Deadline = { at: Date.now() + ms, expire, timer: null };
    if (this.#fresh.push(entry) === 1) setTimeout(() => this.#setTimers(), 0);
    return () => {
      entry.expire = null;
      if (entry.timer !== null) clearTimeout(entry.timer);
    };
  }

  #setTimers(): void {
    const now = Date.now();
    for (const entry of this.#fresh) {
      if (entry.expire) entry.timer = setTimeout(entry.expire, Math.max(0, entry.at - now));
    }
    this.#fresh = [];
  }
}
