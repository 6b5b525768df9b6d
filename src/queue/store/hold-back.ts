/** Decides which job is not written with its own transaction, but with a later one of the same turn. */
import type { BlockJob } from './block';
import type { Blocks } from './blocks';
import type { CountingSql } from './counting-sql';
import type { LeaseTable } from './leases';

export class HoldBack {
  /** What an earlier transaction of this turn has held back. */
  private held: BlockJob | undefined;
  private writesBefore = 0;

  /** @param isAwaited may a worker claim a new job as soon as it is committed? */
  constructor(
    private readonly written: Pick<CountingSql, 'writes'>,
    private readonly blocks: Pick<Blocks, 'line'>,
    private readonly leases: Pick<LeaseTable, 'active'>,
    private readonly isAwaited: () => boolean,
  ) {}

  /**
   * May a lone job wait for a claim right after this commit? Only if nothing else was written, so that a later
   * failure leaves nothing of it. @param hasArrived does the running transaction bring work?
   */
  mayWait(hasArrived: boolean): boolean {
    const { alone } = this.blocks.line;
    const isOnly = hasArrived && this.written.writes === this.writesBefore;
    const isOpen = alone !== undefined && (alone === this.held || isOnly) && !this.leases.active.has(alone.key);
    const mayWait = isOpen && this.isAwaited();
    this.held = mayWait ? alone : undefined;
    return mayWait;
  }

  committed(): void {
    this.writesBefore = this.written.writes;
  }
}
