/** Writes jobs stored elsewhere or earlier, in as few rows as batches: blocks, retry blocks, archive chunks. */
import type { StoredJob } from '../../export/stored-job';
import { groupOf } from '../../job/group';
import { decodeId, FIRST_CHOSEN, RANK_BIT, routeOf, sequenceOf } from '../../job/ids';
import type { JobHistory } from '../../job/record';
import { heldBy, priorityOf } from './groups/holder';
import { bodyOf, isInLine, isPlain, type JobRow, mayWaitInLine, STATE } from './job-row';
import { check, positionOf } from './jobs';
import { learn, policyOf } from './limits/place';
import { endOf, keptUntil } from './own-retention';
import { writeRow } from './own-rows';
import type { Configured, Named, Observed, Stored, Woken } from './parts';
import { enters } from './row-places';
import { fingerprintIn, remember } from './unique-keys';

type Parts = Named & Stored & Configured & Observed & Woken;

/** Restores the jobs of a transaction, in the order of their numbers. Call {@link end} behind the last one. */
export class Restoration {
  /** Jobs whose ids do not name their numbers here. */
  id_rows = 0;
  private completed = 0;

  constructor(
    private readonly q: Parts,
    private readonly now: number,
  ) {}

  /** Writes a job under its own number if unused, else with a chosen id: one row more. @param together as `Arrival` */
  add(job: StoredJob, together: boolean): void {
    const { q, now } = this;
    q.store.changes++;
    const { type, body } = job;
    const isOpen = job.state === 'waiting' || job.state === 'pending';
    const priority = isOpen ? priorityOf(q, job) : job.priority;
    const limit = policyOf(q, { type, body });
    const isWaiting = job.state === 'waiting';
    const isImmediate = isWaiting && job.due_at === undefined && priority === 0 && mayWaitInLine(limit);
    const key = this.keyOf(job, isImmediate, isWaiting && !mayWaitInLine(limit));
    const row: JobRow = {
      ...{ key, type, priority, body, state: job.state === 'completed' ? STATE.waiting : STATE[job.state] },
      ...{ alias: this.aliasOf(job, key), attempt: job.attempt, claims: job.claims },
      ...{ created_at: job.created_at, enqueued_at: job.enqueued_at, expires_at: job.expires_at ?? null },
      ...{ history: job.history ?? null, ended_at: job.ended_at ?? null },
      ...{ due_at: null, limit_key: limit?.key ?? null, holds_group: null },
    };
    if (row.alias !== null) {
      this.id_rows += 1;
      q.store.sql.exec('INSERT OR REPLACE INTO aliases (id, key) VALUES (?, ?)', row.alias, key).toArray();
    }
    const fingerprint = fingerprintIn(row);
    if (fingerprint !== undefined) remember(q.store.sql, fingerprint, key);
    if (job.checkpoint) q.store.checkpoints.put(key, job.checkpoint);
    q.store.written.spend(body.length + (row.history?.length ?? 0));
    if (job.run) {
      this.archive(row, job);
      return;
    }
    if (limit) learn(q, limit, now);
    if (job.holds) row.holds_group = heldBy(q, row);
    if (isWaiting && !isImmediate) row.due_at = job.due_at ?? job.enqueued_at;
    check('restore', 'none', positionOf(row, false, now));
    this.write(row, together);
    q.store.gates.changed(key, null, row.holds_group);
    q.store.tally.entered(row);
    enters(q, row, now);
    const end = endOf(row.state);
    if (end === undefined) {
      q.store.depth.added(row);
      q.observed.meters.enqueued(type, 1, now);
    } else {
      const endedAt = row.ended_at as number;
      q.wake.at(keptUntil(q, row, end, endedAt) ?? endedAt + q.config.retentionMs(end));
    }
  }

  /** The numbers of completed jobs are not given out again: one row, if there are any. */
  end(): void {
    if (this.completed > 0) this.q.store.recordSequence(this.completed);
  }

  /** Its own key, if that is free and leads to it; else the next one. */
  private keyOf({ id, created_at }: StoredJob, isImmediate: boolean, isOutside: boolean): number {
    const { store, route } = this.q;
    const { key, time } = decodeId(id);
    const sequence = sequenceOf(key);
    const isMinted = routeOf(id) === route && time === created_at && sequence < FIRST_CHOSEN;
    // The line has keys of its own.
    const fits = key < RANK_BIT ? !isOutside : !isImmediate;
    if (isMinted && fits && sequence >= store.nextSequence) {
      store.nextSequence = sequence + 1;
      return key;
    }
    const next = store.nextSequence++;
    return isImmediate ? next : RANK_BIT + next;
  }

  private aliasOf({ id, created_at }: StoredJob, key: number): string | null {
    const decoded = decodeId(id);
    return decoded.route === this.q.route && decoded.key === key && decoded.time === created_at ? null : id;
  }

  private write(row: JobRow, together: boolean): void {
    const { q } = this;
    const { blocks, sql } = q.store;
    const isDue = together && row.due_at !== null && row.key >= RANK_BIT;
    if ((isInLine(row) || isDue) && isPlain(row)) {
      const group = groupOf(bodyOf(row));
      blocks.add({ ...row, at: row.created_at, ...(group !== undefined && { group }) });
    } else if (row.state === STATE.waiting && blocks.retries.takes(row)) {
      blocks.retries.add(row);
    } else {
      const end = endOf(row.state);
      writeRow(sql, row, { keep_until: (end && keptUntil(q, row, end, row.ended_at as number)) ?? null });
    }
  }

  private archive(row: JobRow, { run, ended_at: endedAt = 0, history: text }: StoredJob): void {
    if (!run) return;
    const { q } = this;
    check('restore', 'none', 'completed');
    const history = (text === undefined ? {} : JSON.parse(text)) as JobHistory;
    const own = keptUntil(q, row, 'completed', endedAt);
    q.store.archive.add(
      {
        ...{ k: row.key, a: row.alias ?? undefined, t: row.type, p: row.priority, n: row.attempt, c: row.claims },
        at: [row.created_at, row.enqueued_at, run.started_at, endedAt],
        ...{ f: history.first_started_at, e: history.errors, push: run.timeout_ms },
        ...{ w: run.worker_id, g: run.target, pg: run.progress, l: history.log },
        cp: q.store.checkpoints.sizeOf(row.key) > 0 ? 1 : undefined,
      },
      row.body,
      run.result,
      own,
    );
    this.completed = Math.max(this.completed, sequenceOf(row.key));
    q.wake.at(own ?? endedAt + q.config.retentionMs('completed'));
  }
}
