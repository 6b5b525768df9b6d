/** The event of each record of a step, for the live feed. */
import type { StepRecord } from '../../job/steps';
import { kindOf } from '../../job/timeline';
import type { JobRow } from './job-row';
import type { Named, Observed, Stored } from './parts';
import { idOf } from './rows';

export function emitStep(
  q: Named & Stored & Observed,
  row: JobRow,
  name: string,
  record: StepRecord,
  now: number,
): void {
  const is = kindOf(record);
  const attempt = q.store.leases.active.get(row.key)?.attempt ?? row.attempt;
  const data = { job_type: row.type, attempt, name };
  const id = idOf(q.route, row);
  if (is === 'signal') q.observed.events.add('job.signal', id, now, data);
  else q.observed.events.add('job.step', id, now, { ...data, is });
}
