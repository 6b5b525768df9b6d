/** The deletion of a queue: gets rid of its jobs, leaves the directory, and empties the object (`remove.ts` has the steps). */
import { withPatience } from '../../../durable/patience';
import { unwrap } from '../../../job/errors';
import type { Feature, Host } from '../../feature';
import { moveReserved } from '../../jobs/move-reserved';
import type { Moving } from '../../store/removal';
import { discardNext, dropMoved, LOOK_AGAIN_MS, packed, readyToEmpty, setAside } from './remove';

/** While steps are being made the alarm stands by, in case the object dies; ms. */
const STANDBY_MS = 1_000;

/** The longest pause before a deletion that failed goes on, ms: the target of a move may be draining for days. */
const LONGEST_PAUSE_MS = 60_000;

export class QueueRemoval implements Feature {
  private running: Promise<void> | undefined;
  /** The deletion does not go on before, epoch ms; and how long it waits when it fails, ms. */
  private pauseUntil = 0;
  private pauseMs = LOOK_AGAIN_MS;

  constructor(private readonly host: Host) {}

  due(now: number): number | undefined {
    if (!this.host.q.removal) return undefined;
    return this.running ? now + STANDBY_MS : Math.max(now, this.pauseUntil);
  }

  start(why: 'commit' | 'alarm'): void {
    if (why === 'alarm') this.goOn();
  }

  /** The queue must be deleted. Answers when it is gone, or after `waitMs`. @returns whether it is gone */
  async removed(waitMs: number): Promise<boolean> {
    this.goOn();
    await withPatience(waitMs, Promise.resolve(this.running));
    return !this.host.q.removal;
  }

  private goOn(): void {
    const { q, keepAlive, now } = this.host;
    if (this.running || !q.removal || now() < this.pauseUntil) return;
    this.running = this.run()
      .catch((error) => {
        console.error(`tocsin: queue ${q.name} could not be deleted yet`, error);
        this.goOnIn(this.pauseMs);
        this.pauseMs = Math.min(2 * this.pauseMs, LONGEST_PAUSE_MS);
      })
      .finally(() => {
        this.running = undefined;
      });
    keepAlive(this.running);
  }

  private goOnIn(ms: number): void {
    this.pauseUntil = this.host.now() + ms;
    this.host.wakeAt(this.pauseUntil);
  }

  private async run(): Promise<void> {
    const { q, write, others } = this.host;
    const target = q.removal?.strategy === 'move' ? q.removal.target_queue : undefined;
    while (target !== undefined) {
      const moving = await write((now) => setAside(q, now));
      if (!moving) break;
      await this.move(moving, target);
      this.pauseMs = LOOK_AGAIN_MS;
    }
    while (q.removal?.strategy === 'discard' && !(await write((now) => discardNext(q, now)))) await scheduler.wait(0);
    if (!q.removal || !readyToEmpty(q)) return this.goOnIn(LOOK_AGAIN_MS);
    await others.destroy(q.removal.at);
    delete q.removal;
  }

  private async move(moving: Moving, target: string): Promise<void> {
    const { q, write, others } = this.host;
    const jobs = packed(q, moving);
    await moveReserved(q, jobs, target, others.reservations, async (ticket) => {
      unwrap(await others.queue(target).adopt(moving.name, jobs, ticket));
      await write((now) => dropMoved(q, now));
    });
  }
}
