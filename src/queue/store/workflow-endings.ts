/** Notifies workflows of the ends of their jobs: messages, posted in the transaction that ends the job. */
import type { JobHistory } from '../../job/record';
import { cut } from '../../job/text';
import type { Ending } from '../../rpc/workflow';
import type { JobRow } from './job-row';
import type { Named, Stored } from './parts';
import { readableBody } from './row-texts';
import { idOf } from './rows';

/** The kind of these messages. Their address is the workflow's id, their data a JSON array of {@link Ending}. */
export const ENDING = 'ending';

const MAX_MESSAGE = 1024;

type Owned = Pick<JobRow, 'key' | 'alias' | 'created_at' | 'body'>;

/** A job has completed: notifies its workflow, if it has one. `result` is JSON text. */
export function noteCompletion(q: Named & Stored, row: Owned, result: string | undefined, now: number): void {
  note(q, row, { end: 'completed', at: now, ...(result !== undefined && { result }) }, now);
}

/** A job has ended otherwise: notifies its workflow, if it has one. */
export function noteFailure(q: Named & Stored, row: Owned, cancelled: boolean, history: JobHistory, now: number): void {
  const { error, reason } = history;
  const code = error?.code ?? (cancelled ? 'cancelled' : (reason ?? 'discarded'));
  const why = {
    code,
    type: error?.type ?? code,
    message: cut(error?.message ?? `The job was ${cancelled ? 'cancelled' : 'discarded'}.`, MAX_MESSAGE),
  };
  note(q, row, { end: cancelled ? 'cancelled' : 'failed', at: now, error: why }, now);
}

function note(q: Named & Stored, row: Owned, ending: Omit<Ending, 'step' | 'job_id'>, now: number): void {
  // Most jobs belong to no workflow, and parsing is not free.
  const workflow = row.body.includes('"workflow":{') ? readableBody(row)?.workflow : undefined;
  if (!workflow) return;
  addEnding(q, workflow.id, { step: workflow.step, job_id: idOf(q.route, row), ...ending }, now);
}

/** Posts this ending to a workflow. */
export function addEnding(q: Stored, workflow: string, ending: Ending, now: number): void {
  q.store.outbox.gather(ENDING, workflow, JSON.stringify(ending), now);
}
