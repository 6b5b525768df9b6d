/** Workers waiting for work (long poll), in memory only. */
export class Waiters {
  private waiting = new Set<() => void>();

  /** Resolves when work may have arrived, or after `ms`. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.waiting.add(done);
    });
  }

  /** Work may have arrived: everyone looks again. */
  notify(): void {
    for (const done of [...this.waiting]) done();
  }
}
