/** The ends of jobs, noted in the transaction that ends them, for workflows and for handlers that wait. */
import { parseStored } from '../../durable/sql';
import { fitsBytes, utf8Bytes } from '../../job/bytes';
import { MAX_DEPTH, nestingDepth } from '../../job/envelope/nesting';
import type { Awaited, JobBody, JobHistory } from '../../job/record';
import { isPendingRun, MAX_LISTED_BYTES } from '../../job/runs';
import { parseSteps } from '../../job/steps';
import { cut } from '../../job/text';
import type { RunEnding } from '../../rpc/runs';
import type { Ending } from '../../rpc/workflow';
import { type JobRow, readableBody } from './job-row';
import type { Named, Stored } from './parts';
import { idOf } from './rows';

/** The kind of these messages. Their address is the workflow's id, their data a JSON array of {@link Ending}. */
export const ENDING = 'ending';

const MAX_MESSAGE = 1024;

/** Bytes of a result as quoted text: a row with a message holds 2 MB. */
const MAX_QUOTED = 1_900_000;

/** Characters of `awaited` in a body, at most. */
const MAX_AWAITED = 32 * 1024;

type Owned = Pick<JobRow, 'key' | 'alias' | 'created_at' | 'body'>;

/** Levels of a result or of details beyond which no record of a run has room for it. */
const MAX_NESTING = MAX_DEPTH - 6;

/** A job has completed. `result` is JSON text. Called before its checkpoint is removed. */
export function noteCompletion(q: Named & Stored, row: Owned, result: string | undefined, now: number): void {
  abandonRuns(q, row.key);
  const owner = ownerOf(row);
  if (!owner) return;
  noteStep(q, owner, row, { end: 'completed', at: now, ...(result !== undefined && { result }) }, now);
  if (!owner.awaited) return;
  noteEnd(q, owner.awaited, row, result === undefined ? {} : mayTravel(result, owner.awaited));
}

/** The result for the handler that waits, or its bytes: it may be too large, or nest too deeply, for a record. */
function mayTravel(result: string, { index }: Awaited): Pick<RunEnding, 'result' | 'omitted'> {
  const fits =
    index === undefined ? fitsBytes(JSON.stringify(result), MAX_QUOTED) : fitsBytes(result, MAX_LISTED_BYTES);
  return fits && nestingDepth(result, MAX_NESTING) <= MAX_NESTING ? { result } : { omitted: utf8Bytes(result) };
}

/** A job has ended otherwise. Called before its checkpoint is removed. */
export function noteFailure(q: Named & Stored, row: Owned, cancelled: boolean, history: JobHistory, now: number): void {
  abandonRuns(q, row.key);
  const owner = ownerOf(row);
  if (!owner) return;
  const { error, reason } = history;
  const code = error?.code ?? (cancelled ? 'cancelled' : (reason ?? 'discarded'));
  const why = {
    code,
    type: error?.type ?? code,
    message: cut(error?.message ?? `The job was ${cancelled ? 'cancelled' : 'discarded'}.`, MAX_MESSAGE),
  };
  noteStep(q, owner, row, { end: cancelled ? 'cancelled' : 'failed', at: now, error: why }, now);
  if (!owner.awaited) return;
  const details = cancelled ? undefined : error?.details;
  const isShown = details !== undefined && nestingDepth(JSON.stringify(details), MAX_NESTING) <= MAX_NESTING;
  const state = cancelled ? 'cancelled' : 'discarded';
  const said = cancelled ? { code: 'cancelled', type: 'cancelled', message: 'The job was cancelled.' } : why;
  noteEnd(q, owner.awaited, row, { error: { ...said, ...(isShown && { details }), state } });
}

interface Owner extends Pick<JobBody, 'workflow'> {
  awaited?: Awaited | undefined;
}

/** Who waits for its end. Hardly any job has one, and parsing is not free. */
function ownerOf(row: Owned): Owner | undefined {
  if (!row.body.includes('"workflow":{') && !row.body.includes('"awaited":{')) return undefined;
  return readableBody(row) ?? { awaited: lastMember(row.body) };
}

/** Who waits for a job that cannot be read: `awaited` is the last member of a body. */
function lastMember(body: string): Awaited | undefined {
  const [, text] = /,"awaited":(\{"by":"[\s\S]*\})\}$/.exec(body.slice(-MAX_AWAITED)) ?? [];
  return text === undefined ? undefined : (parseStored(text) as Awaited | undefined);
}

function noteStep(
  q: Stored & Named,
  { workflow }: Owner,
  row: Owned,
  ending: Omit<Ending, 'step' | 'job_id'>,
  now: number,
): void {
  if (workflow) addEnding(q, workflow.id, { step: workflow.step, job_id: idOf(q.route, row), ...ending }, now);
}

function noteEnd(
  q: Stored & Named,
  awaited: Awaited,
  row: Owned,
  end: Pick<RunEnding, 'result' | 'omitted' | 'error'>,
): void {
  const { by, queue, name, claim, index } = awaited;
  q.store.runs.ended(queue, { by, name, claim, ...(index !== undefined && { index }), id: idOf(q.route, row), ...end });
}

/** Nothing waits any more for the jobs that this one waited for. */
function abandonRuns({ store }: Stored, key: number): void {
  const steps = store.checkpoints.steps(key, '"run"');
  if (!steps?.includes('"run":{')) return;
  for (const record of Object.values(parseSteps(steps))) if (isPendingRun(record)) store.runs.abandon(record.run);
}

export function addEnding(q: Stored, workflow: string, ending: Ending, now: number): void {
  q.store.outbox.gather(ENDING, workflow, JSON.stringify(ending), now);
}
