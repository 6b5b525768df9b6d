/**
 * Tells the directory when the numbers that it holds of this queue are no longer right: once, with the first commit after they
 * were read. So whoever looks at the numbers of all queues need not wake those that have done nothing meanwhile.
 *
 * What was read before the object woke is not known here. So the first commit of every waking is told of: that is one call, and
 * nothing more until somebody looks. No row says who looks.
 */
import type { Feature, Host } from '../../feature';

/** Pause before the directory is told again after it could not be reached, ms. */
const AGAIN_AFTER_MS = 10_000;

export class Readers implements Feature {
  /** Nothing that anybody was told holds any more, and they know. */
  private isTold = false;
  private notBefore = Number.NEGATIVE_INFINITY;

  constructor(private readonly host: Host) {}

  /** The numbers have just been read: the next change is to be told of. */
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
      // The next commit tries again; until then whoever looks may see older numbers.
      this.isTold = false;
      this.notBefore = this.host.now() + AGAIN_AFTER_MS;
    }
  }
}
