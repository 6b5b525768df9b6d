/** Many reports in one transaction: each is fenced on its own, and a refused one keeps none of the others out. */
import { type Outcome, outcomeOf } from '../../job/errors';
import { decodeId } from '../../job/ids';
import type { JobView } from '../../job/record';
import type { Report, Reported } from '../../rpc/workers';
import { mustFindForReport, viewOf } from '../read/find';
import { Completions } from '../store/attempts';
import type { QueueState } from '../store/state';
import { withRows } from '../store/where';
import { saveCheckpoint } from './checkpoint';
import { refuseLocked } from './lock';
import { reportProgress } from './progress';
import { ackAmong, nack } from './report';
import type { Random } from './settle';
import { recordStep } from './steps';

/** A report that does not end the attempt. */
type Note = Exclude<Report, { action: 'ack' | 'nack' }>;

/**
 * Takes each report in turn. A refusal comes before anything is written, so it leaves nothing behind. What the reports have in
 * common is done once: the rows of their jobs are read, and those of completed jobs removed.
 */
export function reportEach(
  q: QueueState,
  reports: readonly Report[],
  now: number,
  random: Random,
): Outcome<Reported>[] {
  const keys = reports.map(({ job_id }) => decodeId(job_id).key);
  const completions = new Completions(q, now);
  const completed = new Set<number>();
  const takeOne = (report: Report, key: number): Reported => {
    refuseLocked(q, report.job_id);
    // Whoever speaks of it again finds it where it is then.
    if (completed.has(key)) completions.end();
    if (report.action !== 'ack') return take(q, report, now, random);
    completed.add(key);
    return ackAmong(q, report, now, completions);
  };
  const running = keys.filter((key) => q.leases.active.has(key));
  return withRows(q, running, () => {
    const outcomes = reports.map((report, index) => outcomeOf(() => takeOne(report, keys[index] as number)));
    completions.end();
    return outcomes;
  });
}

function take(q: QueueState, report: Exclude<Report, { action: 'ack' }>, now: number, random: Random): Reported {
  if (report.action === 'nack') return reported(nack(q, report, now, random));
  const said = note(q, report, now);
  return { ...reported(viewOf(q, mustFindForReport(q, report.job_id), now)), ...said };
}

/** Notes what an attempt says while it goes on. @returns what its worker is told beside where the job stands */
function note(q: QueueState, report: Note, now: number): Pick<Reported, 'progress' | 'step'> {
  if (report.action === 'progress') {
    const { progress } = reportProgress(q, report, now);
    return progress === undefined ? {} : { progress };
  }
  if (report.action === 'checkpoint') {
    saveCheckpoint(q, report, now);
    return {};
  }
  const { earlier } = recordStep(q, report, now);
  return earlier === undefined ? {} : { step: earlier };
}

/** Where the job stands now, without what it carries. */
function reported({ record }: JobView): Reported {
  const { state, attempt, due_at, history } = record;
  const { retry_delay_ms, completed_at, discarded_at } = history;
  const waits = state === 'retryable' || state === 'scheduled';
  const receipt: Reported = { state, attempt };
  if (waits && due_at !== undefined) receipt.due_at = due_at;
  if (state === 'retryable' && retry_delay_ms !== undefined) receipt.retry_delay_ms = retry_delay_ms;
  if (completed_at !== undefined) receipt.completed_at = completed_at;
  if (discarded_at !== undefined) receipt.discarded_at = discarded_at;
  return receipt;
}
