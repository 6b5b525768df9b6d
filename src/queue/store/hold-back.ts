/** Which job is not written with the transaction that brings it, but with what follows in the same turn. */
import type { BlockJob } from './block';
import type { CountingSql } from './counting-sql';

export class HoldBack {
  /** What an earlier transaction of this turn has held back. */
  private held: BlockJob | undefined;
  /** Writing statements before the running transaction. */
  private writesBefore = 0;

  /** @param isLeased does the job with this key run? */
  constructor(
    private readonly written: Pick<CountingSql, 'writes'>,
    private readonly isLeased: (key: number) => boolean,
  ) {}

  /**
   * May the job that came alone wait for whoever claims it as soon as this is committed? Only where nothing else was written:
   * if it cannot be written later, nothing may be left of it. One that was claimed among others is written with their lease.
   * @param hasArrived does the running transaction bring work?
   * @param isAwaited may somebody claim it then?
   */
  mayWait(alone: BlockJob | undefined, hasArrived: boolean, isAwaited: () => boolean): boolean {
    const isOnly = hasArrived && this.written.writes === this.writesBefore;
    const isOpen = alone !== undefined && (alone === this.held || isOnly) && !this.isLeased(alone.key);
    const mayWait = isOpen && isAwaited();
    this.held = mayWait ? alone : undefined;
    return mayWait;
  }

  /** The running transaction is committed. */
  committed(): void {
    this.writesBefore = this.written.writes;
  }
}
