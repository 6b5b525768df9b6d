/**
 * Notifies the directory when its numbers of this queue are outdated: once, with the first commit after they were read.
 * So a reader of the numbers of all queues need not wake idle ones.
 *
 * Readings from before the object woke are unknown here. So it reports the first commit of every waking: one call, and
 * nothing more until the next reading. No row records the readers.
 */
import type { Feature, Host } from '../../feature';

/** Pause after the directory could not be reached, ms. */
const AGAIN_AFTER_MS = 10_000;

export class Readers implements Feature {
  /** The directory knows that its numbers are outdated. */
  private isTold = false;
  private notBefore = Number.NEGATIVE_INFINITY;

  constructor(private readonly host: Host) {}

  /** The numbers have just been read: the next change must be reported. */
  read(): void {
    this.isTold = false;
  }

  start(): void {
    if (this.isTold || this.host.now() < this.notBefore) return;
    this.isTold = true;
    this.host.keepAlive(this.tell());
  }

  private async tell(): Promise<void> {
    try {
      await this.host.others.noteChange();
    } catch {
      // The next commit tries again; until then readers may see older numbers.
      this.isTold = false;
      this.notBefore = this.host.now() + AGAIN_AFTER_MS;
    }
  }
}
