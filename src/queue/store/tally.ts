/**
 * Jobs in each place, apart from the line and completed ones: counted once, then kept. Due index states follow from
 * the clock, so the counts hold for one moment; readers move it on by the entries that became due in between.
 */

import type { Blocks } from './blocks';
import { type JobRow, STATE } from './job-row';

/** Place of a job that does not run and is not in the line. */
export interface Standing {
  pending: number;
  /** In the due index, and due. */
  due: number;
  scheduled: number;
  retryable: number;
  cancelled: number;
  discarded: number;
  dead: number;
}

interface Counted {
  /** The moment of the counts, epoch ms. */
  at: number;
  standing: Standing;
  /** Those that have not ended, by priority. */
  priorities: Map<number, number>;
}

type Row = Pick<JobRow, 'state' | 'due_at' | 'ended_at' | 'attempt' | 'priority'>;

const ENDED: Readonly<Record<number, keyof Standing>> = {
  [STATE.cancelled]: 'cancelled',
  [STATE.discarded]: 'discarded',
  [STATE.dead]: 'dead',
};

export class Tally {
  private counted: Counted | null = null;

  constructor(
    private readonly sql: SqlStorage,
    private readonly blocks: Pick<Blocks, 'due' | 'retries'>,
  ) {}

  forget(): void {
    this.counted = null;
  }

  /** A row was written that was not there, or has moved here. */
  entered(row: Row): void {
    if (this.counted) change(this.counted, row, 1);
  }

  /** A row was removed, or has moved away. */
  left(row: Row): void {
    if (this.counted) change(this.counted, row, -1);
  }

  /** Are the counts in memory, so that reading them reads next to nothing? */
  get isCounted(): boolean {
    return this.counted !== null;
  }

  /** The counts at `now`. @param priorities of all rows in the due index */
  read(priorities: Iterable<number>, now: number): Counted {
    const { counted } = this;
    if (counted === null || now < counted.at) {
      this.counted = this.count(priorities, now);
      return this.counted;
    }
    const { standing } = counted;
    if (now === counted.at) return counted;
    for (const priority of priorities) {
      const inBlocks = this.blocks.due.countBetween(priority, counted.at, now);
      standing.scheduled -= inBlocks;
      standing.due += inBlocks;
      const became = this.sql.exec<{ tried: number; n: number }>(
        `SELECT attempt > 0 AS tried, count(*) AS n FROM jobs
         WHERE priority = ? AND due_at > ? AND due_at <= ? GROUP BY 1`,
        priority,
        counted.at,
        now,
      );
      for (const { tried, n } of became) {
        standing[tried ? 'retryable' : 'scheduled'] -= n;
        standing.due += n;
      }
    }
    for (const { attempt } of this.blocks.retries.becoming(counted.at, now)) {
      standing[attempt > 0 ? 'retryable' : 'scheduled']--;
      standing.due++;
    }
    counted.at = now;
    return counted;
  }

  private count(inIndex: Iterable<number>, at: number): Counted {
    const standing = {
      pending: 0,
      due: 0,
      scheduled: 0,
      retryable: 0,
      cancelled: 0,
      discarded: 0,
      dead: 0,
    };
    const priorities = new Map<number, number>();
    const add = (kind: keyof Standing, n: number, priority?: number) => {
      standing[kind] += n;
      if (priority !== undefined) priorities.set(priority, (priorities.get(priority) ?? 0) + n);
    };
    for (const priority of inIndex) {
      const due = this.blocks.due.countBetween(priority, undefined, at);
      add('due', due, priority);
      add('scheduled', this.blocks.due.countBetween(priority) - due, priority);
    }
    for (const entry of this.blocks.retries.becoming()) {
      add(entry.at <= at ? 'due' : entry.attempt > 0 ? 'retryable' : 'scheduled', 1, entry.priority);
    }
    type Group = { priority: number; later: number; tried: number; n: number };
    const due = this.sql.exec<Group>(
      `SELECT priority, due_at > ? AS later, attempt > 0 AS tried, count(*) AS n FROM jobs
       WHERE due_at IS NOT NULL GROUP BY 1, 2, 3`,
      at,
    );
    for (const { priority, later, tried, n } of due) {
      add(later ? (tried ? 'retryable' : 'scheduled') : 'due', n, priority);
    }
    const pending = this.sql.exec<Group>('SELECT priority, count(*) AS n FROM jobs WHERE state = 1 GROUP BY 1');
    for (const { priority, n } of pending) add('pending', n, priority);
    const ended = this.sql.exec<{ state: number; n: number }>(
      'SELECT state, count(*) AS n FROM jobs WHERE state > 1 AND ended_at IS NOT NULL GROUP BY 1',
    );
    for (const { state, n } of ended) {
      const kind = ENDED[state];
      if (kind) add(kind, n);
    }
    return { at, standing, priorities };
  }
}

function change({ at, standing, priorities }: Counted, row: Row, by: 1 | -1): void {
  const kind = kindOf(row, at);
  if (kind === undefined) return;
  standing[kind] += by;
  if (row.ended_at === null) priorities.set(row.priority, (priorities.get(row.priority) ?? 0) + by);
}

/** Undefined: it is in the line, or is held. */
function kindOf(row: Row, at: number): keyof Standing | undefined {
  if (row.ended_at !== null) return ENDED[row.state];
  if (row.state === STATE.pending) return 'pending';
  if (row.state !== STATE.waiting) return undefined;
  if (row.due_at === null) return undefined;
  if (row.due_at <= at) return 'due';
  return row.attempt > 0 ? 'retryable' : 'scheduled';
}
