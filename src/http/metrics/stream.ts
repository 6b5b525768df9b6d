/**
 * Live statistics. The stream follows the queues over the same sockets as every other follower, which let them sleep. A
 * queue is asked for its numbers only after it has sent an event. So an idle one is asked once, at the beginning.
 */
import { Feed } from '../../across/feed/feed';
import { meterOf, readMetrics } from '../../across/metrics';
import { activityOfEach } from '../../across/statistics';
import type { LiveStats } from '../../contract/stats';
import { mintId } from '../../job/ids';
import { formatInstant } from '../../job/time';
import { type Counter, read } from '../../metrics/meter';
import { errorRate } from '../../metrics/series';
import type { WorkerPage } from '../../rpc/directory';
import type { QueueReading } from '../../rpc/metrics';
import { directoryObject } from '../../rpc/stubs';
import type { AppContext } from '../context';
import { EventStream, headersOnly } from '../events/event-stream';
import { itemsOf } from '../events/render';
import { recentOf } from './render';

/** Minimum interval between messages about changes, ms. */
const EVERY_MS = 2_000;

/** Events that are passed on, and further ones that change numbers. */
const PASSED: ReadonlySet<string> = new Set(['job.enqueued', 'job.completed', 'job.failed', 'job.cancelled']);
const FOLLOWED = [...PASSED, 'job.scheduled', 'job.started', 'job.retrying', 'job.discarded', 'job.expired'];

const MAX_WORKERS = 100;

type Rates = Record<'processed' | 'failed' | 'enqueued', number>;

export async function statsStream(c: AppContext) {
  if (c.req.method === 'HEAD') return headersOnly(c);
  const feed = await Feed.open(c.env, {}, { types: FOLLOWED });
  const numbers = new LiveNumbers(c, (await feed.orClose(readMetrics(c.env))).queues);
  const out = new EventStream(c, {
    beat: () => feed.beat(),
    over: () => {
      if (timer !== undefined) clearTimeout(timer);
      feed.close();
    },
  });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const tell = async () => {
    timer = undefined;
    try {
      out.message(`evt_${mintId(Date.now(), 0, 0)}`, await numbers.next(), 'metrics');
    } catch (error) {
      console.warn('tocsin: live statistics are late:', error);
    }
    if (numbers.hasMore) tellSoon();
  };
  // While nothing happens there is no timer.
  const tellSoon = () => {
    timer ??= setTimeout(() => void tell(), Math.min(Math.max(numbers.at + EVERY_MS - Date.now(), 0), EVERY_MS));
  };
  await tell();
  feed.start({
    touched: (queue) => {
      numbers.touch(queue);
      tellSoon();
    },
    events: (events) => {
      const shown = { format: 'flat', types: PASSED } as const;
      out.send(events.flatMap((event) => itemsOf(event, shown)));
    },
    ended: () => out.end(),
  });
  return out.response();
}

/** The numbers as last sent, and the changes since. */
class LiveNumbers {
  private readonly queues: Map<string, QueueReading>;
  /** Queues that have sent an event since they were asked. */
  private readonly touched = new Set<string>();
  private workersTouched = false;
  private counted: Rates;
  /** The last sent rates were not 0: when nothing follows, that must be sent too. */
  private isMoving = false;
  /** When they were last sent, epoch ms; long ago before the first time. */
  at = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly c: AppContext,
    queues: readonly QueueReading[],
  ) {
    this.queues = new Map(queues.map((queue) => [queue.queue, queue]));
    this.counted = this.count();
  }

  /** Something has happened in a queue, or with a worker. */
  touch(queue: string | undefined): void {
    if (queue === undefined) this.workersTouched = true;
    else this.touched.add(queue);
  }

  get hasMore(): boolean {
    return this.isMoving || this.workersTouched || this.touched.size > 0;
  }

  async next(): Promise<LiveStats> {
    const since = this.at;
    // However this ends, the next try is later.
    this.at = Date.now();
    await this.ask();
    const workers = await directoryObject(this.c.env).workers({ offset: 0, limit: MAX_WORKERS });
    return this.message(workers, since);
  }

  private async ask(): Promise<void> {
    const names = [...this.touched];
    this.touched.clear();
    this.workersTouched = false;
    try {
      const readings = await activityOfEach(
        this.c.env,
        names.map((name) => ({ name })),
      );
      for (const reading of readings) {
        if (reading.exists) this.queues.set(reading.queue, reading);
        else this.queues.delete(reading.queue);
      }
    } catch (error) {
      for (const name of names) this.touched.add(name);
      throw error;
    }
  }

  private message({ workers, summary }: WorkerPage, since: number): LiveStats {
    const now = this.at;
    const queues = [...this.queues.values()];
    const rates = this.rates(now - since);
    this.isMoving = Object.values(rates).some((rate) => rate > 0);
    return {
      queues: queues.map(({ queue, counts: { available, active, scheduled, retryable } }) => {
        return { queue, available, active, scheduled, retryable };
      }),
      throughput: {
        processed_per_second: rates.processed,
        failed_per_second: rates.failed,
        enqueued_per_second: rates.enqueued,
      },
      workers: {
        total: summary.total,
        active: workers.map(({ id, state, active_jobs, last_heartbeat_at }) => {
          return { id, state, activeJobs: active_jobs, lastHeartbeatAt: formatInstant(last_heartbeat_at) };
        }),
      },
      error_rate: errorRate(recentOf(queues), now),
      timestamp: formatInstant(now),
    };
  }

  /** Rates per second. @param elapsed since the last message, ms */
  private rates(elapsed: number): Rates {
    const counted = this.count();
    // After a long silence the times of events are unknown: they count as recent.
    const seconds = Math.min(Math.max(elapsed, 1), EVERY_MS) / 1000;
    const rate = (name: keyof Rates) =>
      Math.round((Math.max(0, counted[name] - this.counted[name]) / seconds) * 100) / 100;
    const rates = { processed: rate('processed'), failed: rate('failed'), enqueued: rate('enqueued') };
    this.counted = counted;
    return rates;
  }

  private count(): Rates {
    const meters = Array.from(this.queues.values(), meterOf);
    const all = (counter: Counter) => meters.reduce((sum, meter) => sum + read(meter, counter), 0);
    return { processed: all('completed'), failed: all('failed'), enqueued: all('enqueued') };
  }
}
