/** One rank as one consumer reads it: in order, a page at a time, with the jobs that have waited for their keys. */
import type { Position } from './due-index';
import type { JobRow } from './job-row';
import { type KeyLanes, laneOf } from './limits/lanes';
import type { Verdict } from './scan';

export interface RankPage {
  rows: JobRow[];
  last: boolean;
}

export interface RankPlace {
  read(after: Position, limit: number): RankPage;
  positionOf(row: JobRow): Position;
  order(a: Position, b: Position): number;
  /** The job that stood here, if it still does and does not run. */
  find(position: Position): JobRow | undefined;
  /** The consumer needs nothing up to here. */
  moveCursor(position: Position): void;
  /** What has waited for its key; undefined: nothing has. */
  behind(): KeyLanes | undefined;
  /** {@link behind}, created if absent. */
  makeBehind(): KeyLanes;
  /** It is read from an earlier position on. */
  wentBack(): void;
}

export class Rank {
  private page: JobRow[] = [];
  private next = 0;
  private exhausted = false;
  held = false;
  /** The first row of those that have waited for their keys and have room. */
  private firstAgain: { lane: NonNullable<KeyLanes['first']>; row: JobRow } | undefined;

  /** @param after where it is read from, exclusive */
  constructor(
    private readonly place: RankPlace,
    private after: Position,
  ) {
    const back = place.behind()?.begin();
    if (!back || place.order(back, after) >= 0) return;
    this.moveTo(back);
    place.wentBack();
  }

  get mustGoBack(): boolean {
    return this.place.behind()?.isUnfinished === true;
  }

  /** Has the row that comes next waited for its key? */
  isAgain(row: JobRow): boolean {
    return this.firstAgain?.row === row;
  }

  peek(pageSize: number): JobRow | undefined {
    const row = this.nextRow(pageSize);
    const again = this.again();
    if (!row || !again) return row ?? again;
    const { order, positionOf } = this.place;
    return order(positionOf(again), positionOf(row)) < 0 ? again : row;
  }

  /** @returns whether the next selection need not look at the row */
  pass(row: JobRow, verdict: Verdict): boolean {
    const isHeld = verdict === 'hold' || verdict === 'stop';
    const behind = this.place.behind();
    if (behind && this.firstAgain?.row === row) {
      const { lane } = this.firstAgain;
      this.firstAgain = undefined;
      if (verdict === 'wait') behind.close(lane);
      else if (verdict === 'hold') behind.setAside(lane);
      else if (verdict !== 'stop') behind.shift(lane);
      return !isHeld;
    }
    const name = verdict === 'wait' ? laneOf(row) : undefined;
    if (name !== undefined) this.place.makeBehind().add(name, this.place.positionOf(row));
    if (isHeld) this.held = true;
    this.skip(row);
    return !this.held;
  }

  private nextRow(pageSize: number): JobRow | undefined {
    const behind = this.place.behind();
    for (;;) {
      if (this.next === this.page.length && !this.exhausted) {
        ({ rows: this.page, last: this.exhausted } = this.place.read(this.after, pageSize));
        this.next = 0;
      }
      const row = this.page[this.next];
      const name = row && behind && laneOf(row);
      if (name === undefined || !behind?.has(name, this.place.positionOf(row as JobRow))) return row;
      // It is read a second time, and waits already.
      this.skip(row as JobRow);
    }
  }

  again(): JobRow | undefined {
    const behind = this.place.behind();
    for (;;) {
      const lane = behind?.first;
      if (!lane) return undefined;
      if (this.firstAgain?.lane === lane && this.firstAgain.row.key === lane.key) return this.firstAgain.row;
      const row = this.place.find(lane);
      // One that has begun meanwhile was read again, or is in the lane of those.
      if (row && laneOf(row) === lane.name) {
        this.firstAgain = { lane, row };
        return row;
      }
      behind.drop(lane);
    }
  }

  private skip(row: JobRow): void {
    this.next++;
    this.moveTo(this.place.positionOf(row));
  }

  private moveTo(position: Position): void {
    this.after = position;
    if (!this.held) this.place.moveCursor(position);
  }
}
