/** The event of each move, for the live feed. */
import { setDefined } from '../../job/envelope/fields';
import type { EventChange, JobEvents, LoggedData } from '../../job/event-data';
import { getOrInsert } from '../../job/get-or-insert';
import { own } from '../../job/own';
import type { JobErrorEntry, JobHistory } from '../../job/record';
import type { JobState, Move } from '../../job/states';
import type { Active } from './active';
import { groupOfRow, historyOf, type JobRow, STATE } from './job-row';
import type { Named, Observed } from './parts';
import { idOf, stateOf } from './rows';

/** What only the caller knows of a move. */
export interface Note {
  reason?: string;
  /** It comes from another queue, for a second life. */
  redriven?: true;
  /** Newcomers that have become a part of it. */
  taken?: number;
}

interface MadeMove extends Note {
  move: Move;
  before: JobRow;
  after: JobRow;
  /** Of `after`, where the caller has it. */
  history?: JobHistory | undefined;
  /** The attempt that the move ended. */
  active?: Active | undefined;
  now: number;
}

/** Adds the events of a move to the live feed. A move without an event of its own only reports the new state. */
export function emit(q: Named & Observed, made: MadeMove): void {
  const { after, now } = made;
  const events = eventsOf(made);
  const change = changeOf(made);
  const group = groupOfEvent(made);
  // No open job has one.
  const undo_job_id = after.history?.includes('"undo_job":') ? historyOf(after).undo_job : undefined;
  if (events.length === 0 && change) events.push(['job.state_changed', { attempt: after.attempt }]);
  for (const [index, [type, data]] of events.entries()) {
    // The last event of a move reports the state it led to.
    const changed = index === events.length - 1 ? change : undefined;
    q.observed.events.add(
      type,
      idOf(q.route, after),
      now,
      {
        job_type: after.type,
        ...(group !== undefined && { group }),
        ...(undo_job_id !== undefined && { undo_job_id }),
        ...data,
      },
      changed,
      made.active?.workerId,
    );
  }
}

/** Whose job it is. A body is read only where that is not known: not for a new job, nor when an attempt ends. */
function groupOfEvent({ move, after, active }: MadeMove): string | undefined {
  const known = after.group ?? active?.group;
  return known === undefined && move !== 'enqueue' && !active ? groupOfRow(after) : known;
}

/** Undefined: the job is created or removed by this move, is hidden, or stays in its state. */
function changeOf({ move, before, after, active, now }: MadeMove): EventChange | undefined {
  if (before === after || before.state === STATE.held || after.state === STATE.held) return undefined;
  const from = stateOf(before, active !== undefined, now);
  const to = stateOf(after, false, now);
  // A purged job leaves the state it was in; it has no new one.
  return from === to || move === 'purge' ? undefined : changed(from, to);
}

const changes = new Map<string, EventChange>();

/** One object for each pair of states: events are many. */
const changed = (from: JobState, to: JobState): EventChange =>
  getOrInsert(changes, `${from} ${to}`, () => ({ from, to }));

/** Type and group of their jobs are added to all of them. */
type Event = {
  [Type in keyof JobEvents]: [type: Type, data: Omit<LoggedData<Type>, 'job_type' | 'group'>];
}[keyof JobEvents];

function eventsOf(made: MadeMove): Event[] {
  const { move, before, after, active, now, reason } = made;
  const { attempt } = after;
  const scheduled_at = after.due_at !== null && after.due_at > now ? after.due_at : undefined;
  const history = () => made.history ?? historyOf(after);
  switch (move) {
    case 'enqueue':
    case 'commit':
      if (scheduled_at === undefined) return [['job.enqueued', { attempt: 0 }]];
      return [['job.scheduled', { attempt: 0, scheduled_at }]];
    case 'activate':
      return [['job.enqueued', { attempt: 0 }]];
    case 'adopt':
      return made.redriven ? [['job.enqueued', { attempt: 0, redrive: true }]] : [];
    case 'redrive':
      return [['job.enqueued', { attempt: 0, redrive: true }]];
    case 'patch':
      if (scheduled_at === undefined || scheduled_at === before.due_at) return [];
      return [['job.scheduled', { attempt, scheduled_at }]];
    case 'accumulate':
      return [['job.accumulated', { attempt, accumulated: made.taken ?? 0, scheduled_at }]];
    case 'defer':
      return [['job.scheduled', { attempt, scheduled_at, reason: 'rate_limited' }]];
    case 'cancel':
      return [['job.cancelled', { attempt }]];
    case 'expire':
      return [['job.expired', { ...withoutRun(attempt, 'expired'), reason: 'expired' }]];
    case 'retry': {
      const error = history().error as JobErrorEntry;
      const run_at = after.due_at ?? now;
      return [
        ['job.failed', failureData(error)],
        ['job.retrying', { attempt, backoff_ms: error.backoff_ms, run_at }],
      ];
    }
    case 'snooze':
      return [
        [
          'job.snoozed',
          { attempt: attempt + 1, scheduled_at, signal: history().snoozed?.signal, runs: history().snoozed?.runs },
        ],
      ];
    case 'signal':
      return [['job.enqueued', { attempt, signal: before.history && historyOf(before).snoozed?.signal }]];
    case 'quarantine':
    case 'discard': {
      const { error, reason: why, dead_letter = false } = history();
      return [['job.discarded', { ...failureData(error as JobErrorEntry), reason: why, dead_letter }]];
    }
    case 'drop': {
      const { reason: why } = history();
      return [['job.discarded', { ...withoutRun(attempt, why), reason: why, dead_letter: false }]];
    }
    case 'purge': {
      const cutOff = active && { attempt: active.attempt, duration_ms: now - active.startedAt };
      return [['job.discarded', { ...withoutRun(attempt, reason), ...cutOff, reason, dead_letter: false }]];
    }
    default:
      return [];
  }
}

const WHY: Record<string, string> = {
  expired: 'The job expired before it ran.',
  queue_full: 'The queue had no room for the job.',
  group_full: 'The group of the job had no room for it.',
  rate_limited: 'The job was dropped by its limits.',
  purged: 'The job was purged.',
  queue_deleted: 'The queue of the job was deleted.',
};

/** For a job that was discarded without a failed attempt: nothing ran, and the reason is the error. */
function withoutRun(attempt: number, reason = 'discarded') {
  const message = own(WHY, reason) ?? 'The job was discarded.';
  return { attempt, duration_ms: null, error: { code: reason, type: `tocsin.${reason}`, message } };
}

const failureData = ({ attempt, duration_ms, code, type, message }: JobErrorEntry) => ({
  attempt,
  duration_ms,
  error: { code, type, message },
});

const STARTED = changed('available', 'active');
const COMPLETED = changed('active', 'completed');

export function emitStarted(q: Named & Observed, row: JobRow, { attempt, workerId, group }: Active, now: number): void {
  const data: LoggedData<'job.started'> = { job_type: row.type, attempt };
  setDefined(data, 'group', group);
  setDefined(data, 'worker_id', workerId);
  q.observed.events.add('job.started', idOf(q.route, row), now, data, STARTED);
}

export function emitCompleted(
  q: Named & Observed,
  row: JobRow,
  attempt: { number: number; startedAt: number },
  group: string | undefined,
  now: number,
): void {
  const duration_ms = now - attempt.startedAt;
  const data: LoggedData<'job.completed'> = {
    ...{ job_type: row.type, attempt: attempt.number, duration_ms, result: null },
  };
  setDefined(data, 'group', group);
  q.observed.events.add('job.completed', idOf(q.route, row), now, data, COMPLETED);
}
