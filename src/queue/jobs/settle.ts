/**
 * Settling: an attempt ends as its {@link AttemptOutcome} says, whether its runner was pushed the job or pulled it. Who may say so is
 * decided before: a pushed attempt by its claim, a pulled one by the fence of its report.
 */
import { type AttemptOutcome, failed, type Release } from '../../job/attempt/outcome';
import { ApiError } from '../../job/errors';
import { parseSteps } from '../../job/steps';
import type { Active } from '../store/active';
import { Completions, type EndedAttempt, runningAttempt } from '../store/attempts';
import type { JobRow } from '../store/job-row';
import type { QueueParts } from '../store/parts';
import { bodyOf, historyOf } from '../store/row-texts';
import { fail, type Random, requeue, undoClaim } from './end-attempt';
import { GatheredNotes } from './gathered-notes';
import { noteProgress } from './progress';
import { snooze } from './snooze';
import { recordSteps } from './steps';

/** Pauses after a job was given back unused for the second time and more, ms: no two workers may hand it to and fro. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/** The ends of some attempts, in one transaction. What they have in common is written once, by {@link Settlement.end}. */
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

  /** What attempts say in the same transaction while they go on. */
  get notes(): GatheredNotes {
    this.gathered ??= new GatheredNotes(this.q, this.now);
    return this.gathered;
  }

  /**
   * Ends the attempt that runs, with all that it says beside.
   * @returns the job as it is now; of one that has completed, as it was: nobody may look for it before {@link Settlement.end}
   * @throws {ApiError} 413 for steps that are too much. The attempt goes on then; its log, progress and checkpoint are noted
   */
  settle(row: JobRow, active: Active, outcome: AttemptOutcome): JobRow {
    const { q, now } = this;
    this.gathered?.write(row.key);
    if (outcome.log) q.observed.logs.add(active, outcome.log);
    if (outcome.progress) noteProgress(q, row, active, outcome.progress, now);
    if (outcome.checkpoint !== undefined) q.store.checkpoints.save(row.key, outcome.checkpoint, now);
    switch (outcome.kind) {
      case 'completed':
        this.completions.add({ row, attempt: runningAttempt(active), result: outcome.result });
        return row;
      case 'snoozed':
        return snooze(q, row, active, outcome.snooze, parseSteps(outcome.steps), now);
      case 'released':
        return this.release(row, active, outcome.release);
      case 'failed':
        if (outcome.steps !== undefined) recordSteps(q, row.key, parseSteps(outcome.steps), now);
        return fail(q, row, active, outcome.error, now, this.random);
    }
  }

  /** The same for a runner that nobody can refuse: an attempt whose steps cannot be kept would run them again each time, so it fails. */
  settleSurely(row: JobRow, active: Active, outcome: AttemptOutcome): void {
    try {
      this.settle(row, active, outcome);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { code, message } = error.data;
      this.settle(row, active, failed({ code, type: code, message, retryable: false }));
    }
  }

  /** The job completes by an attempt that timed out, and whose success comes late. */
  completeLate(row: JobRow, attempt: EndedAttempt, result: string | undefined): void {
    this.gathered?.write(row.key);
    this.completions.add({ row, attempt, result });
  }

  /** Somebody is about to look for a job that has completed here. */
  endCompletions(): void {
    this.completions.end();
  }

  /** Writes what is left to write. */
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
 * No handler was called: the attempt does not count, and the job goes back to where it stood. Each further time in a row it
 * pauses, twice as long as the time before, because the worker that cannot run it may be the only one there is.
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
