/** How many queues are paused, for probes: some queues are asked, now and then, however often a probe comes. */

/** Queues looked at, and the lifetime of the number, ms: a probe must not keep queues awake. */
const LOOKED_AT = 50;
const GOOD_FOR_MS = 60_000;

export class PausedQueues {
  private counted: { count: number; at: number } | undefined;
  private counting: Promise<number> | undefined;

  /** @param isPaused asks a queue */
  constructor(
    private readonly names: (limit: number) => string[],
    private readonly isPaused: (queue: string) => Promise<boolean>,
  ) {}

  /** @param now epoch ms */
  count(now: number): number | Promise<number> {
    if (this.counted && now - this.counted.at < GOOD_FOR_MS) return this.counted.count;
    this.counting ??= this.look(now).finally(() => {
      this.counting = undefined;
    });
    return this.counting;
  }

  private async look(now: number): Promise<number> {
    const answers = await Promise.allSettled(this.names(LOOKED_AT).map((name) => this.isPaused(name)));
    const count = answers.filter((answer) => answer.status === 'fulfilled' && answer.value).length;
    this.counted = { count, at: now };
    return count;
  }
}
