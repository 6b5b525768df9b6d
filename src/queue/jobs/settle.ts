/** Settling: an attempt ends with its {@link AttemptOutcome}, pushed or pulled. Its right to end was checked before. */
import { type AttemptOutcome, failed, type Release } from '../../job/attempt/outcome';
import { ApiError } from '../../job/errors';
import { parseSteps } from '../../job/steps';
import type { Active } from '../store/active';
import { Completions, type EndedAttempt, runningAttempt } from '../store/attempts';
import { bodyOf, historyOf, type JobRow } from '../store/job-row';
import type { QueueParts } from '../store/parts';
import { fail, type Random, requeue, undoClaim } from './end-attempt';
import { noteProgress } from './progress';
import { snooze } from './snooze';
import { GatheredNotes, recordSteps } from './steps';
import { addChunks } from './streams';

/** Pauses of a job given back unused more than once, ms: two workers must not pass it to and fro. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/** The ends of some attempts in one transaction. {@link Settlement.end} writes the shared part once. */
export class Settlement {
  private readonly completions: Completions;
  private gathered: GatheredNotes | undefined;

  /** @param now epoch ms */
  constructor(
    readonly q: QueueParts,
    readonly now: number,
    private readonly random: Random,
  ) {
    this.completions = new Completions(q, now);
  }

  /** Notes of attempts that continue, in the same transaction. */
  get notes(): GatheredNotes {
    this.gathered ??= new GatheredNotes(this.q, this.now);
    return this.gathered;
  }

  /**
   * Ends the running attempt with its outcome.
   * @returns the job; a completed one as before: do not look for it until {@link Settlement.end}
   * @throws {ApiError} 413 for too many steps or chunks; the attempt continues with its log, progress and checkpoint
   */
  settle(row: JobRow, active: Active, outcome: AttemptOutcome): JobRow {
    const { q, now } = this;
    this.gathered?.write(row.key);
    if (outcome.log) q.observed.logs.add(active, outcome.log);
    if (outcome.progress) noteProgress(q, row, active, outcome.progress, now);
    if (outcome.checkpoint !== undefined) q.store.checkpoints.save(row.key, outcome.checkpoint, now);
    if (outcome.streams) for (const said of outcome.streams) addChunks(q, row, active, said);
    switch (outcome.kind) {
      case 'completed':
        this.completions.add({ row, attempt: runningAttempt(active), result: outcome.result });
        return row;
      case 'snoozed':
        return snooze(q, row, active, outcome, now);
      case 'released':
        return this.release(row, active, outcome.release);
      case 'failed':
        if (outcome.steps !== undefined) recordSteps(q, row, parseSteps(outcome.steps), now);
        return fail(q, row, active, outcome.error, now, this.random);
    }
  }

  /**
   * {@link settle} for a runner that cannot be refused: without its steps an attempt would repeat them, so it fails.
   */
  settleSurely(row: JobRow, active: Active, outcome: AttemptOutcome): void {
    try {
      this.settle(row, active, outcome);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { code, message } = error.data;
      this.settle(row, active, failed({ code, type: code, message, retryable: false }));
    }
  }

  /** The job completes by an attempt that timed out and succeeds late. */
  completeLate(row: JobRow, attempt: EndedAttempt, result: string | undefined): void {
    this.gathered?.write(row.key);
    this.completions.add({ row, attempt, result });
  }

  endCompletions(): void {
    this.completions.end();
  }

  end(): void {
    this.completions.end();
    this.gathered?.end();
  }

  private release(row: JobRow, active: Active, release: Release): JobRow {
    const { q, now } = this;
    switch (release.attempt) {
      case 'unused':
        return giveBackUnused(q, row, active, now);
      case 'unreached':
        return undoClaim(q, row, now);
      case 'goes_on':
        return undoClaim(q, row, now, { history: { ...historyOf(row), begun: active.attempt } });
      case 'used': {
        const isLast = active.attempt >= Math.max(1, q.config.policyFor(row.type, bodyOf(row)).max_attempts);
        return isLast ? fail(q, row, active, release.error, now, this.random) : requeue(q, row, active, now);
      }
    }
  }
}

/**
 * No handler was called: the attempt does not count. From the second time in a row the job pauses, doubling: the
 * worker that cannot run it may be the only one.
 */
function giveBackUnused(q: QueueParts, row: JobRow, active: Active, now: number): JobRow {
  const history = historyOf(row);
  const before = history.unused?.attempt === row.attempt ? history.unused.count : 0;
  history.unused = {
    attempt: row.attempt,
    claim: active.claim,
    count: before + 1,
    at: now,
    ...(active.workerId !== undefined && { worker_id: active.workerId }),
  };
  const pause = before === 0 ? undefined : Math.min(FIRST_PAUSE_MS * 2 ** Math.min(before - 1, 10), LONGEST_PAUSE_MS);
  return undoClaim(q, row, now, { history, ...(pause !== undefined && { availableAt: now + pause }) });
}
