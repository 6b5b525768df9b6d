/** The job that undoes the steps of one that ends otherwise than completed: made in the transaction that ends it. */
import type { JobHistory } from '../../job/record';
import { parseSteps } from '../../job/steps';
import { type JobToUndo, stepsToUndo, undoBody } from '../../job/undo';
import { UNDO_OF, UNDO_SUFFIX } from '../../job/undo-names';
import { bodyOf, type JobRow } from './job-row';
import type { Named, Stored } from './parts';
import { rowByKey } from './row-lookup';
import { idOf } from './rows';

export interface UndoJob extends Pick<JobRow, 'type' | 'priority' | 'body'> {
  group: string | undefined;
}

/** The undo job of a job that ends so; undefined when nothing of it must be undone. Writes nothing. */
export function undoJobOf(
  q: Named & Stored,
  row: JobRow,
  end: JobToUndo['end'],
  history: JobHistory,
): UndoJob | undefined {
  const text = q.store.checkpoints.steps(row.key, '"undo"');
  // Most jobs have no such steps, and parsing is not free.
  if (!text?.includes('"undo":true') || undoneBy(row) !== undefined) return undefined;
  const { values } = q.store.checkpoints;
  const steps = stepsToUndo(parseSteps(text), (name) => values.read(row.key, name));
  if (steps.length === 0) return undefined;
  const body = undoBody(idOf(q.route, row), bodyOf(row), steps, { end, history });
  return { type: body.type, priority: row.priority, body: JSON.stringify(body), group: body.group };
}

/** Of rows of jobs, in SQL: those that undo no other. Only they make room where there is none. */
export const UNDOES_NONE = `NOT (type LIKE '%${UNDO_SUFFIX}'
  AND CASE WHEN json_valid(body) THEN body ->> '$.meta.${UNDO_OF}' END IS NOT NULL)`;

/** Does this job undo another one? @param row its body may be left out */
export const undoesOther = (q: Stored, row: JobRow): boolean =>
  row.type.endsWith(UNDO_SUFFIX) && undoneBy(rowByKey(q.store, row.key) ?? row) !== undefined;

/** The id of the job whose steps this one undoes; undefined: it is not an undo job. */
export function undoneBy(row: Pick<JobRow, 'type' | 'body'>): string | undefined {
  const of = row.type.endsWith(UNDO_SUFFIX) ? bodyOf(row).meta[UNDO_OF] : undefined;
  return typeof of === 'string' ? of : undefined;
}
