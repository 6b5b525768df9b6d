/** The number of jobs in the line, and of dead letters: counted when first asked for, then kept in memory. */
import { cell } from '../../durable/sql';
import type { DeadLetterKinds } from '../../rpc/queue';
import { STATE } from './job-row';

export class JobCounts {
  /** Waiting jobs in the line; null when it has to be counted. */
  line: number | null = null;
  /** Dead letters; null when they have to be counted. */
  dead: number | null = null;
  /** What kinds of dead letters there are; null since one came or went. */
  deadKinds: DeadLetterKinds | null = null;

  constructor(private readonly sql: SqlStorage) {}

  forget(): void {
    this.line = null;
    this.dead = null;
    this.deadKinds = null;
  }

  /** The number of jobs in the line changed by `by`. */
  lineChanged(by: number): void {
    if (this.line !== null) this.line += by;
  }

  /** A dead letter has come or gone. */
  deadChanged(by: 1 | -1): void {
    if (this.dead !== null) this.dead += by;
    this.deadKinds = null;
  }

  /** How many dead letters there are. Counted once, then kept in memory. */
  countDead(): number {
    const all = `SELECT count(*) FROM jobs WHERE state = ${STATE.dead} AND ended_at IS NOT NULL`;
    this.dead ??= cell<number>(this.sql, all) as number;
    return this.dead;
  }
}
