/** Which jobs of a workflow this queue has taken, so that it takes none twice (table `workflow_starts`). */
import { rows } from '../../../durable/sql';

type Start = { first: number; steps: Record<string, string | null> };

/** The jobs that were taken and may be asked for again: step → job id, null where it was refused. */
export function stepsTaken(sql: SqlStorage, workflow: string): Map<number, string | null> {
  const found = new Map<number, string | null>();
  for (const { steps } of startsOf(sql, workflow)) {
    for (const [step, id] of Object.entries(steps)) found.set(Number(step), id);
  }
  return found;
}

export function noteTaken(sql: SqlStorage, workflow: string, jobs: ReadonlyMap<number, string | null>): void {
  const data = JSON.stringify(Object.fromEntries(jobs));
  const insert = 'INSERT INTO workflow_starts (workflow, first, data) VALUES (?, ?, ?)';
  rows(sql, insert, workflow, Math.min(...jobs.keys()), data);
}

export function startsOf(sql: SqlStorage, workflow: string): Start[] {
  const query = 'SELECT first, data FROM workflow_starts WHERE workflow = ?';
  const found = rows<{ first: number; data: string }>(sql, query, workflow);
  return found.map(({ first, data }) => ({ first, steps: JSON.parse(data) as Start['steps'] }));
}

/**
 * Forgets notes that the workflow has itself. @param known what was noted when the workflow was asked
 * @param unrecorded steps that the workflow may still ask this queue to take
 */
export function forgetStarts(
  sql: SqlStorage,
  workflow: string,
  known: readonly Start[],
  unrecorded: readonly number[],
): void {
  const asked = new Set(unrecorded);
  for (const { first, steps } of known) {
    if (Object.keys(steps).some((step) => asked.has(Number(step)))) continue;
    rows(sql, 'DELETE FROM workflow_starts WHERE workflow = ? AND first = ?', workflow, first);
  }
}
