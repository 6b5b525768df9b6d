/**
 * Notifies the directory once after its numbers of this queue became outdated, so that readers need not wake idle
 * queues. After waking, the first commit is reported.
 *
 * The report says when the queue is next due, so that the directory looks after lost alarms; a queue due long before
 * that look reports again, about hourly.
 */
import { isPausedUntil } from '../../../durable/backoff';
import { LONGEST_LOOK_AFTER_MS, LOOK_AFTER_MS } from '../../../rpc/directory';
import type { Feature, Host } from '../../feature';

/** Pause after the directory could not be reached, ms. */
const AGAIN_AFTER_MS = 10_000;

export class Readers implements Feature {
  /** The directory knows that its numbers are outdated. */
  private isTold = false;
  private notBefore = Number.NEGATIVE_INFINITY;
  /** When the directory looks after this queue, epoch ms. */
  private lookAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly host: Host) {}

  /** The numbers have just been read: the next change must be reported. */
  read(): void {
    this.isTold = false;
  }

  start(): void {
    const now = this.host.now();
    if (isPausedUntil(this.notBefore, now, AGAIN_AFTER_MS) || (this.isTold && this.isLookedAfter(now))) return;
    this.isTold = true;
    this.host.keepAlive(this.tell(now));
  }

  /** Does the directory look after the queue soon after it is due? */
  private isLookedAfter(now: number): boolean {
    const dueAt = this.host.wakesAt();
    if (dueAt === null) return true;
    return this.lookAt > now && this.lookAt <= Math.max(dueAt, now) + LONGEST_LOOK_AFTER_MS;
  }

  private async tell(now: number): Promise<void> {
    try {
      // Until it has answered, and if it is of a version that does not: nothing more to report for an hour.
      this.lookAt = now + LOOK_AFTER_MS;
      const lookAt = await this.host.others.noteChange(this.host.wakesAt() ?? undefined);
      if (typeof lookAt === 'number') this.lookAt = lookAt;
    } catch {
      // The next commit tries again; until then readers may see older numbers.
      this.isTold = false;
      this.notBefore = this.host.now() + AGAIN_AFTER_MS;
    }
  }
}
