/** Takes the jobs of workflows, each once however often it is sent, and notifies the workflows of their ends. */

import { type MessageKind, posted } from '../../../durable/outbox-relay';
import { rows } from '../../../durable/sql';
import { ApiError, type ErrorData, type Outcome, outcomeOf } from '../../../job/errors';
import type { NewJob } from '../../../job/record';
import type { EnqueuedJob } from '../../../rpc/receipts';
import type { Ending, StepStart } from '../../../rpc/workflow';
import type { Host } from '../../feature';
import { enqueue } from '../../jobs/enqueue';
import type { QueueParts } from '../../store/parts';
import { addEnding, ENDING } from '../../store/workflow-endings';

/**
 * Enqueues jobs of a workflow, each once. A job refused for good has ended, and the workflow is notified.
 * @returns per step, in order: its job; null: refused for good; undefined: not now, though others were taken
 * @throws {ApiError} when the queue cannot take them now; then nothing was written
 */
export function startSteps(q: QueueParts, start: StepStart, now: number): (string | null | undefined)[] {
  const taken = stepsTaken(q.store.sql, start.workflow);
  const fresh = start.steps.filter(({ step }) => !taken.has(step));
  if (fresh.length > 0) {
    const noted = enqueueAccepted(q, start, fresh, now);
    noteTaken(q.store.sql, start.workflow, noted);
    for (const [step, id] of noted) taken.set(step, id);
    if (start.first) q.observed.events.add('workflow.started', start.workflow, now, { workflow_id: start.workflow });
  }
  return start.steps.map(({ step }) => taken.get(step));
}

/** Enqueues what the queue takes now. @returns what became of these steps, at least of one */
function enqueueAccepted(
  q: QueueParts,
  { workflow, cancelled, divisible, follow }: StepStart,
  steps: StepStart['steps'],
  now: number,
): Map<number, string | null> {
  const jobs = steps.map(({ job }): NewJob => (cancelled ? { ...job, superseded: true } : job));
  const noted = new Map<number, string | null>();
  let later: ErrorData | undefined;
  for (const [place, outcome] of outcomesOf(q, jobs, now, !follow).entries()) {
    const { step } = steps[place] as StepStart['steps'][number];
    if (outcome.ok) {
      noted.set(step, outcome.value.record.id);
      continue;
    }
    const { code, type = code, message, retryable } = outcome.error;
    // A draining queue takes nothing now, whatever the job; that is not the job's fault.
    if (retryable || code === 'conflict') {
      later ??= outcome.error;
      continue;
    }
    noted.set(step, null);
    addEnding(q, workflow, { step, end: 'failed', at: now, error: { code, type, message } }, now);
  }
  if (later && !(divisible && noted.size > 0)) throw new ApiError(later);
  return noted;
}

/**
 * Enqueues all together, which costs fewest rows; if refused, one by one, replacing no jobs, which may be among these.
 */
function outcomesOf(q: QueueParts, jobs: readonly NewJob[], now: number, mayDrop: boolean): Outcome<EnqueuedJob>[] {
  const all = outcomeOf(() => enqueue(q, jobs, now, mayDrop).jobs);
  if (all.ok) return all.value.map((value) => ({ ok: true, value }));
  return jobs.map((job) => outcomeOf(() => enqueue(q, [job], now, false).jobs[0] as EnqueuedJob));
}

/** Jobs of a workflow that this queue has taken, so that it takes none twice: a row of `workflow_starts`. */
type Start = { first: number; steps: Record<string, string | null> };

/** The jobs that were taken and may be asked for again: step → job id, null where it was refused. */
function stepsTaken(sql: SqlStorage, workflow: string): Map<number, string | null> {
  const found = new Map<number, string | null>();
  for (const { steps } of startsOf(sql, workflow)) {
    for (const [step, id] of Object.entries(steps)) found.set(Number(step), id);
  }
  return found;
}

function noteTaken(sql: SqlStorage, workflow: string, jobs: ReadonlyMap<number, string | null>): void {
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
function forgetStarts(sql: SqlStorage, workflow: string, known: readonly Start[], unrecorded: readonly number[]): void {
  const asked = new Set(unrecorded);
  for (const { first, steps } of known) {
    if (Object.keys(steps).some((step) => asked.has(Number(step)))) continue;
    rows(sql, 'DELETE FROM workflow_starts WHERE workflow = ? AND first = ?', workflow, first);
  }
}

/** Ends in one notice, unless a single outbox message has more. */
const MAX_ENDINGS = 100;

const read = ({ data }: { data: string }) => JSON.parse(data) as Ending[];

/** A repeated notice changes nothing. */
export const endingMessages = ({ q, write, others }: Host): MessageKind =>
  posted(q.store.outbox, write, {
    kind: ENDING,
    together: { most: MAX_ENDINGS, itemsIn: (message) => read(message).length },
    send: async (workflow, messages, taken) => {
      const starts = startsOf(q.store.sql, workflow);
      const receipt = await others.workflow(workflow).stepsEnded(q.name, messages.flatMap(read));
      await taken((now) => {
        forgetStarts(q.store.sql, workflow, starts, receipt.unrecorded);
        for (const { type, data } of receipt.events) q.observed.events.add(type, workflow, now, data);
      });
    },
  });
