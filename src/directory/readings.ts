/** The queues' numbers as last read, in memory. Queues report changes, so only active ones are asked. */
import type { RelayHost } from '../durable/outbox-relay';
import type { After } from '../durable/timers';
import { waitAtMost } from '../durable/wait';
import { type Outcome, unwrap } from '../job/errors';
import { asOf, goodUntil } from '../metrics/as-of';
import type { QueueReading, WatchedReading } from '../rpc/metrics';

/** Maximum age of an idle queue's numbers, ms: for a queue that died between a change and its report. */
const MAX_AGE_MS = 15 * 60_000;

/** Numbers that are held, as JSON, characters. Queues beyond that are asked at every read. */
const MAX_SIZE = 16 * 1024 * 1024;

/** The object stays in memory for at most this long after a read, ms. */
const MAX_STAY_MS = 2 * 60_000;

/** Costs and savings of that, in billionths of a dollar at list prices: a second in memory, a request, a row read. */
const PRICE = { second: 1_563, request: 150, row: 1 };

/** Queues whose number of reported changes is remembered. */
const MAX_RESTLESS = 1_000;

interface HeldReading {
  reading: WatchedReading;
  size: number;
  /** From then on it must be asked, epoch ms. */
  until: number;
}

export class QueueReadings {
  private readonly held = new Map<string, HeldReading>();
  private size = 0;
  /** How often a queue has reported a change, since this object woke. */
  private readonly changes = new Map<string, number>();
  /** Queues that are being asked and have reported no change since. */
  private readonly asking = new Map<string, Promise<WatchedReading>>();
  private stay = new AbortController();

  /** @param ask asks a queue, which will report when its answer is outdated */
  constructor(
    private readonly ask: (queue: string) => Promise<Outcome<WatchedReading>>,
    private readonly around: Pick<RelayHost, 'now' | 'keepAlive'> & { readonly after: After },
  ) {}

  /** The current numbers of a queue. @param isFresh held numbers are not good enough */
  async of(queue: string, isFresh = false): Promise<QueueReading> {
    const held = this.held.get(queue);
    const now = this.around.now();
    if (held && !isFresh && now < held.until && now >= held.reading.computed_at) return shown(held.reading, now);
    // An answer that is under way may be older than this read requires.
    const asked = (!isFresh && this.asking.get(queue)) || this.look(queue);
    return shown(await asked, this.around.now());
  }

  /** The numbers of this queue are outdated. */
  changed(queue: string): void {
    const changes = (this.changes.get(queue) ?? 0) + 1;
    this.changes.delete(queue);
    this.changes.set(queue, changes);
    if (this.changes.size > MAX_RESTLESS) this.forgetCalmest();
    this.asking.delete(queue);
    this.drop(queue);
  }

  /** Queues that have changed more than once, most frequent first. */
  restless(): string[] {
    const often = [...this.changes].filter(([, changes]) => changes > 1);
    return often.sort(([, a], [, b]) => b - a).map(([name]) => name);
  }

  /** The half that has changed least; of two equal ones the longer unchanged. */
  private forgetCalmest(): void {
    const ranked = [...this.changes].sort(([, a], [, b]) => a - b);
    for (const [name] of ranked.slice(0, MAX_RESTLESS / 2)) this.changes.delete(name);
  }

  /** After a read: stays in memory for the next one, while that costs no more than asking all queues again. */
  linger(): void {
    this.leave();
    const readings = Array.from(this.held.values(), ({ reading }) => reading);
    const ms = stayFor(readings);
    if (ms === 0) return;
    this.stay = new AbortController();
    this.around.keepAlive(
      waitAtMost(
        this.around.after,
        ms,
        new Promise<void>((over) => this.stay.signal.addEventListener('abort', () => over())),
      ),
    );
  }

  /** Need not be kept in memory any longer. */
  leave(): void {
    this.stay.abort();
  }

  private look(queue: string): Promise<WatchedReading> {
    const asked: Promise<WatchedReading> = this.ask(queue)
      .then((outcome) => {
        const reading = unwrap(outcome);
        if (this.asking.get(queue) === asked) this.hold(queue, reading);
        return reading;
      })
      .finally(() => {
        if (this.asking.get(queue) === asked) this.asking.delete(queue);
      });
    this.asking.set(queue, asked);
    return asked;
  }

  private hold(queue: string, reading: WatchedReading): void {
    this.drop(queue);
    const size = JSON.stringify(reading).length;
    // Don't cache unknown names: they are unbounded.
    if (!reading.exists || this.size + size > MAX_SIZE) return;
    const until = Math.min(reading.computed_at + MAX_AGE_MS, goodUntil(reading.upcoming));
    this.held.set(queue, { reading, size, until });
    this.size += size;
  }

  private drop(queue: string): void {
    this.size -= this.held.get(queue)?.size ?? 0;
    this.held.delete(queue);
  }
}

function shown(reading: WatchedReading, now: number): QueueReading {
  const { upcoming, ...rest } = asOf(reading, now);
  return { ...rest, computed_at: now };
}

/**
 * How long to stay in memory, ms: until that costs as much as asking these queues again, which counts their jobs. The
 * platform keeps objects for ten seconds anyway.
 */
export function stayFor(readings: readonly Pick<QueueReading, 'counts'>[]): number {
  const jobs = readings.reduce((all, { counts: { completed, ...counts } }) => {
    return all + Object.values(counts).reduce((sum, count) => sum + count, 0);
  }, 0);
  const saved = readings.length * PRICE.request + jobs * PRICE.row;
  const seconds = Math.floor(saved / PRICE.second);
  return Math.min(seconds * 1000, MAX_STAY_MS);
}

/** Queues looked at, and the lifetime of the number, ms: a probe must not keep queues awake. */
const LOOKED_AT = 50;
const GOOD_FOR_MS = 60_000;

/** How many queues are paused, for probes: some queues are asked, now and then, however often a probe comes. */
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
