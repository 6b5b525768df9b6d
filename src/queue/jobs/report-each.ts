/** Many reports in one transaction: each is fenced on its own, and a refused one affects no other. */
import { isEnd, type NoteReport } from '../../job/attempt/outcome';
import { utf8Bytes } from '../../job/bytes';
import { type Outcome, outcomeOf } from '../../job/errors';
import { decodeId } from '../../job/ids';
import type { StepRecord } from '../../job/steps';
import type { Report, Reported } from '../../rpc/workers';
import { mustFindForReport, viewOf } from '../read/find';
import type { QueueParts } from '../store/parts';
import { withRows } from '../store/row-lookup';
import type { Random } from './end-attempt';
import { openRow } from './fence';
import { refuseLocked } from './lock';
import { reportProgress } from './progress';
import { reportedOf, settleAmong } from './report';
import { Settlement } from './settle';

/** Work of one transaction, in characters of rows: further reports wait for the next one. */
const MAX_WORK = 4 * 1024 * 1024;

/** How much of an answer is left for records of steps, in bytes. It shrinks. */
export interface AnswerRoom {
  bytes: number;
}

/**
 * Takes each report in turn; a refusal leaves nothing behind. Rows, completions, checkpoints and steps are batched.
 * @param room for steps on record @returns outcomes of the first reports, at least one: the rest exceeds one
 * transaction
 */
export function reportEach(
  q: QueueParts,
  reports: readonly Report[],
  now: number,
  random: Random,
  room: AnswerRoom,
): Outcome<Reported>[] {
  const keys = reports.map(({ job_id }) => decodeId(job_id).key);
  const settlement = new Settlement(q, now, random);
  const completed = new Set<number>();
  const takeOne = (report: Report, key: number): Reported => {
    refuseLocked(q, report.job_id);
    // A further report about the job finds it in the archive.
    if (completed.has(key)) settlement.endCompletions();
    if (!isEnd(report)) return takeNote(settlement, report, room);
    if (report.kind === 'completed') completed.add(key);
    return settleAmong(settlement, report);
  };
  const running = keys.filter((key) => q.store.leases.active.has(key));
  const most = q.store.written.work + MAX_WORK;
  return withRows(q.store, running, () => {
    const outcomes: Outcome<Reported>[] = [];
    for (const [index, report] of reports.entries()) {
      if (index > 0 && q.store.written.work > most) break;
      const { changes } = q.observed.logs;
      const outcome = outcomeOf(() => takeOne(report, keys[index] as number));
      if (!outcome.ok) q.observed.logs.rollback(changes);
      outcomes.push(outcome);
    }
    settlement.end();
    return outcomes;
  });
}

/** Notes what a running attempt reports. @returns where its job stands, and what else its worker is sent */
function takeNote(settlement: Settlement, report: NoteReport, room: AnswerRoom): Reported {
  const { q, now } = settlement;
  const told = noted(settlement, report, room);
  return { ...reportedOf(viewOf(q, mustFindForReport(q, report.job_id), now)), ...told };
}

function noted({ q, now, notes }: Settlement, report: NoteReport, room: AnswerRoom): Partial<Reported> {
  if (report.kind === 'progress') {
    const { progress } = reportProgress(q, report, now, notes);
    return progress === undefined ? {} : { progress };
  }
  if (report.kind === 'checkpoint') {
    notes.saveCheckpoint(openRow(q, report, 'its checkpoint', now).key, report.content);
    return {};
  }
  const row = openRow(q, report, 'its steps', now);
  const earlier = notes.recordStep(row, report.name, JSON.parse(report.record) as StepRecord);
  return earlier === undefined ? {} : told(JSON.stringify(earlier), room);
}

function told(step: string, room: AnswerRoom): Pick<Reported, 'step' | 'step_omitted'> {
  const bytes = utf8Bytes(step);
  if (bytes > room.bytes) return { step_omitted: true };
  room.bytes -= bytes;
  return { step };
}
