/**
 * Snoozing: the handler continues later, at a moment or a signal. The attempt is not used up, and nothing is written
 * meanwhile.
 */
import type { AttemptOutcome, OutcomeNotes } from '../../job/attempt/outcome';
import { MAX_DURATION_MS } from '../../job/duration';
import { parseExactly } from '../../job/envelope/exact';
import { defined } from '../../job/envelope/fields';
import { conflict } from '../../job/errors';
import { firstStart } from '../../job/history';
import { own } from '../../job/own';
import type { JobView, Snooze, Snoozed } from '../../job/record';
import { isPendingRun, mayContinue } from '../../job/runs';
import { isFinal, MAX_INLINE_BYTES, parseSteps, StepBook, type Steps } from '../../job/steps';
import type { RunRequest } from '../../job/wire';
import type { SignalReceipt, SignalRequest, StepAnswer } from '../../rpc/workers';
import { mustFind, refuseSetAside, viewOfRow } from '../read/find';
import type { Active } from '../store/active';
import { historyOf, type JobRow } from '../store/job-row';
import type { QueueParts } from '../store/parts';
import { isSnoozed, stateOf } from '../store/rows';
import { giveBackToChunk, goBack, isOutOfTurn } from './end-attempt';
import { openRow } from './fence';
import { refuseMoving } from './legal-move';
import { Runs, wakeIf } from './runs';
import { recordBook, recordedSteps, recordSteps, replaceStep } from './steps';

/** Pause of a handler that continues at once without anything new on record, ms: it might do so for ever. */
const IDLE_PAUSE_MS = 1_000;

/**
 * Ends the attempt, records its steps, and starts the jobs that it waits for. Two rows, one more for steps and runs.
 * @throws {ApiError} 400, 413 for too many steps; then nothing has changed
 */
export function snooze(
  q: QueueParts,
  row: JobRow,
  active: Active,
  { snooze: asked, steps: text, ...outcome }: OutcomeNotes & AttemptOutcome & { kind: 'snoozed' },
  now: number,
): JobRow {
  const { signal } = asked;
  const said = parseSteps(text);
  const requests = outcome.runs === undefined ? undefined : (parseExactly(outcome.runs) as RunRequest[]);
  const runs = requests && new Runs(q, row, active, requests, outcome.enqueuer, now);
  const book = new StepBook(q.store.checkpoints.steps(row.key), now, MAX_INLINE_BYTES);
  for (const [name, record] of Object.entries(said)) book.add(name, record);
  const deadline = runs?.plan(book) ?? Number.POSITIVE_INFINITY;
  runs?.start();
  recordBook(q, row, book, now);
  if (isOutOfTurn(q, active)) return giveBackToChunk(q, row, active, now);
  const { steps, isChanged: isNew } = book;
  const isHere =
    waitedFor(asked, said).some((name) => own(steps, name)?.signal !== undefined) ||
    (runs !== undefined && mayContinue(steps, runs.names));
  const wanted = isHere ? now : Math.max(now, Math.min(momentOf(asked, now), deadline));
  const until = wanted <= now && !isNew && !isHere ? now + IDLE_PAUSE_MS : wanted;
  const history = historyOf(row);
  history.first_started_at = firstStart(history) ?? active.startedAt;
  history.started_at = active.startedAt;
  history.snoozed = { since: now, until, claim: active.claim, ...defined({ signal, runs: runs?.names }) };
  delete history.unused;
  if (runs || isSuspended(asked, said, isNew)) history.begun = active.attempt;
  // A job that continues at once keeps its place.
  const place = until > now ? { availableAt: until } : { due_at: row.due_at ?? row.enqueued_at };
  return goBack(q, row, 'snooze', { ...place, history }, now);
}

/**
 * Does the attempt continue where it was: after a sleep, a signal, or a recorded step? A handler that only asks to
 * run later repeats its work, which is a start for limits.
 */
function isSuspended({ in: after, signal }: Snooze, said: Steps, isNew: boolean): boolean {
  if (signal !== undefined || (after === 0 && isNew)) return true;
  return Object.values(said).some(({ until }) => until !== undefined);
}

/** The names whose signals end the pause: the one that was named, and all that are recorded until a moment. */
function waitedFor({ signal }: Snooze, said: Steps): string[] {
  const pending = Object.entries(said).filter(([, { until }]) => until !== undefined);
  return [...(signal === undefined ? [] : [signal]), ...pending.map(([name]) => name)];
}

/** Without a moment the job waits for the signal alone. */
const momentOf = ({ in: after = MAX_DURATION_MS, until = undefined }: Snooze, now: number): number =>
  Math.max(now, Math.min(until ?? now + after, now + MAX_DURATION_MS));

/**
 * A signal for a job: kept if early, the first one wins. A job that waits for it is available at once: two more rows.
 * @throws {ApiError} 404; 409 when the job has ended, or no longer waits for the signal; 413; 503 on its way elsewhere
 */
export function signal(q: QueueParts, { job_id, name, payload }: SignalRequest, now: number): SignalReceipt {
  refuseSetAside(q, job_id);
  const row = openRow(q, { job_id }, 'its signals', now);
  const before = own(recordedSteps(q, row.key), name);
  if (before?.signal) return { job: viewOfRow(q, row, now), at: before.signal.at, earlier: true };
  if (before && (isFinal(before) || before.tries !== undefined || before.run || before.begun)) {
    const why = before.timed_out ? 'has stopped waiting for it' : 'has a step of that name';
    throw conflict(`Signal ${name} comes too late for job ${job_id}, which ${why}.`, { job_id, signal: name });
  }
  recordSteps(
    q,
    row,
    parseSteps(JSON.stringify({ [name]: { signal: { payload: JSON.parse(payload), at: now } } })),
    now,
  );
  const isPending = before?.until !== undefined && before.until > now;
  return { job: viewOfRow(q, wake(q, row, isPending ? undefined : name, now), now), at: now };
}

/**
 * Records an operator's answer for a step that has no result yet. A job that sleeps until the next try of the step
 * continues now. @throws {ApiError} 404; 409 while the job runs or has completed, and where there is a result; 413
 */
export function answerStep(q: QueueParts, { job_id, name, result }: StepAnswer, now: number): JobView {
  const { row } = mustFind(q, job_id);
  const state = row ? stateOf(row, q.store.leases.active.has(row.key), now) : 'completed';
  const refused = (why: string, hint?: string) =>
    conflict(`The step ${name} of job ${job_id} cannot be answered: ${why}`, { job_id, current_state: state }, hint);
  if (!row || state === 'completed') throw refused('the job has completed.');
  if (state === 'active')
    throw refused('the job is active.', 'Try again when the attempt has ended, or cancel the job.');
  refuseMoving(q, row);
  const before = own(recordedSteps(q, row.key), name);
  const isWaiting = before?.tries !== undefined || isPendingRun(before);
  if (before?.until !== undefined && !isWaiting) {
    throw refused('the job sleeps, or waits for a signal, under this name.', 'Send the signal instead.');
  }
  if (before && isFinal(before) && before.error === undefined) throw refused('it has a result on record.');
  replaceStep(q, row, name, { result: JSON.parse(result) }, now);
  return viewOfRow(q, isWaiting ? wake(q, row, undefined, now) : row, now);
}

/** Continues the job now if it waits for this signal. @param name undefined: its handler has said that it does */
function wake(q: QueueParts, row: JobRow, name: string | undefined, now: number): JobRow {
  const isFor = (snoozed: Snoozed) => (name === undefined || snoozed.signal === name) && isSnoozed(row, { snoozed });
  return wakeIf(q, row, isFor, now);
}

/** Is this the repeated report of the claim that ended so? @param claim that the report names */
export const snoozedBy = (row: JobRow, claim: number): boolean =>
  row.claims === claim && historyOf(row).snoozed?.claim === claim;
