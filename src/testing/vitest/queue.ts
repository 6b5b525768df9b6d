/** A deployment of the queue in a test: enqueue, let time pass, look. */
import { afterEach, beforeEach, vi } from 'vitest';
import type { AnyJobs, JobOf, TocsinClient } from '../../client/client';
import type { JobQuery } from '../../client/queries';
import { requireDuration } from '../../handler/duration';
import type { Duration, JobEnvelope } from '../../producer/envelope';
import type { EnqueueOptions, Moment } from '../../producer/job';
import { World } from './world';

/** New Year 2040: so far in the future that no alarm fires by itself. */
const START = Date.UTC(2040, 0, 1);

/** Minimum lead of the clock over real time, ms. */
const AHEAD_MS = 86_400_000;

export interface TestQueueOptions {
  /** When each test begins, at least a day after the real time. Default: New Year 2040, UTC. */
  now?: Moment;
  /** Real time that handlers may take before `idle` and `advance` fail, ms. Default 4000. */
  restMs?: number;
}

const REST_MS = 4_000;

export class TestQueue<Jobs extends Record<keyof Jobs, readonly unknown[]> = AnyJobs> {
  /** @internal Made by {@link testQueue}. */
  constructor(
    private readonly world: World,
    /** The queue that is enqueued to and looked at; absent: `default`, and all of them. */
    readonly name?: string,
  ) {}

  /** Everything that a client can do, without a key: `queue.client.workflows.start(…)`. */
  get client(): TocsinClient<Jobs> {
    return this.world.deployment.client as unknown as TocsinClient<Jobs>;
  }

  /** The time by the clock of the test, epoch ms: what `Date.now()` returns everywhere. */
  get now(): number {
    return this.world.now;
  }

  /** One of the queues: its jobs alone are enqueued and seen. The clock is the same. */
  named(name: string): TestQueue<Jobs> {
    return new TestQueue(this.world, name);
  }

  /** Enqueues a job. Its handler begins at once if nothing holds it up; {@link idle} waits for it. */
  async enqueue<Type extends keyof Jobs & string>(
    type: Type,
    args: Jobs[Type],
    options: EnqueueOptions = {},
  ): Promise<JobEnvelope<Jobs[Type]>> {
    return await this.client.enqueue(type, args, { ...(this.name !== undefined && { queue: this.name }), ...options });
  }

  async enqueueMany(jobs: readonly JobOf<Jobs>[]): Promise<JobEnvelope[]> {
    const options = this.name === undefined ? {} : { queue: this.name };
    return await this.client.enqueueMany(
      jobs.map((job) => ({ ...job, options: { ...options, ...job.options } })) as JobOf<Jobs>[],
    );
  }

  /**
   * Waits until due jobs, and those they enqueued, have run to their end; takes a few ms of the clock.
   * @throws {Error} when there is no end to it, as of a handler that hangs
   */
  async idle(): Promise<void> {
    await this.world.idle();
  }

  /**
   * Lets time pass. What falls due meanwhile happens in the order of time: delayed jobs, retries, schedules, timeouts;
   * each runs to its end before the clock continues.
   * @throws {Error} when there is no end to it
   * @example
   * await queue.advance('1h');
   */
  async advance(duration: Duration): Promise<void> {
    await this.world.passTo(this.now + requireDuration(duration, 'advance'));
  }

  /** Lets time pass up to a moment. @throws {RangeError} when it has passed */
  async advanceTo(moment: Moment): Promise<void> {
    const target = timeOf(moment);
    if (target < this.now) throw new RangeError('advanceTo: this time has passed; the clock cannot go back');
    await this.world.passTo(target);
  }

  /** The jobs that match and are still kept, in the order of time in which they were enqueued. */
  async jobs(query: JobQuery = {}): Promise<JobEnvelope[]> {
    const found: JobEnvelope[] = [];
    const own = this.name === undefined ? query : { queue: this.name, ...query };
    for await (const job of this.client.list(own)) found.push(job);
    return found.reverse();
  }

  /** A job as it is now. @throws {NotFoundError} when there is none, or it is no longer kept */
  async job(id: string): Promise<JobEnvelope> {
    return await this.client.get(id);
  }

  /** Sends a signal to a job that waits for it, or will. */
  async signal(id: string, name: string, payload?: unknown): Promise<JobEnvelope> {
    return await this.client.signal(id, name, payload);
  }

  /** Empties all queues, sets the clock back, and puts into effect what the code declares. Done before each test. */
  async reset(): Promise<void> {
    await this.world.restart();
  }
}

/**
 * The queues of the Worker under test, for Vitest in the Workers runtime: its real handlers and Durable Objects, with a
 * clock that moves only when the test says so. Call it where a test file or a `describe` begins; each test in it then
 * begins with empty queues at the same moment.
 *
 * @throws {RangeError} when the clock would not be ahead of the real time
 * @example
 * const queue = testQueue<JobsOf<typeof handlers>>();
 *
 * it('reminds after an hour', async () => {
 *   await queue.enqueue('reminder.send', ['Ada'], { delay: '1h' });
 *   await queue.advance('1h');
 *   await expect(queue).toHaveCompleted('reminder.send', ['Ada']);
 * });
 */
export function testQueue<Jobs extends Record<keyof Jobs, readonly unknown[]> = AnyJobs>(
  options: TestQueueOptions = {},
): TestQueue<Jobs> {
  const start = options.now === undefined ? START : timeOf(options.now);
  if (!(start >= realDate.now() + AHEAD_MS)) {
    throw new RangeError('testQueue: now must be at least a day ahead, so that no alarm fires on its own');
  }
  const world = new World(start, options.restMs ?? REST_MS);
  beforeEach(() => world.restart());
  afterEach(() => void vi.useRealTimers());
  return new TestQueue<Jobs>(world);
}

// Taken at load: the tests set another one.
const realDate = Date;

function timeOf(moment: Moment): number {
  const time = new Date(moment).getTime();
  if (Number.isNaN(time))
    throw new TypeError(`${String(moment)} is not a time: use a Date, epoch milliseconds or RFC 3339`);
  return time;
}
