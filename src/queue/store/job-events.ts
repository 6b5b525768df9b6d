/** The event of each move, as the live feed tells it. */
import type { JobErrorEntry, JobHistory } from '../../job/record';
import type { Move } from '../../job/states';
import type { Active } from './leases';
import { historyOf, idOf, type JobRow } from './rows';
import type { QueueState } from './state';

/** What only the caller knows of a move. */
export interface Note {
  /** Why the job goes. */
  reason?: string;
  /** It comes from another queue, for a second life. */
  redriven?: true;
}

interface Told extends Note {
  move: Move;
  before: JobRow;
  after: JobRow;
  /** Of `after`, where the caller has it. */
  history?: JobHistory | undefined;
  /** The attempt that the move ended. */
  active?: Active | undefined;
  now: number;
}

/** Adds the event of a move to the live feed; some moves nobody needs to hear of. */
export function tell(q: QueueState, told: Told): void {
  const { move, before, after, active, now, reason } = told;
  const add = (type: string, data: Record<string, unknown>) =>
    q.events.add(type, idOf(q.route, after), now, { job_type: after.type, ...data });
  const { attempt } = after;
  const history = () => told.history ?? historyOf(after);
  switch (move) {
    case 'enqueue':
    case 'commit': {
      const later = after.due_at !== null && after.due_at > now;
      return add(later ? 'job.scheduled' : 'job.enqueued', {
        attempt: 0,
        ...(later && { scheduled_at: after.due_at }),
      });
    }
    case 'adopt':
      if (told.redriven) add('job.enqueued', { attempt: 0, redrive: true });
      return;
    case 'activate':
      return add('job.enqueued', { attempt: 0 });
    case 'redrive':
      return add('job.enqueued', { attempt: 0, redrive: true });
    case 'patch': {
      const later = after.due_at !== null && after.due_at > now && after.due_at !== before.due_at;
      if (later) add('job.scheduled', { attempt, scheduled_at: after.due_at });
      return;
    }
    case 'defer':
      return add('job.scheduled', { attempt, scheduled_at: after.due_at, reason: 'rate_limited' });
    case 'cancel':
      return add('job.cancelled', { attempt });
    case 'expire':
      return add('job.expired', { attempt, reason: 'expired' });
    case 'retry': {
      const error = history().error as JobErrorEntry;
      add('job.failed', failureData(error));
      return add('job.retrying', { attempt, backoff_ms: error.backoff_ms, run_at: after.due_at ?? after.waits_since });
    }
    case 'discard': {
      const { error, reason: why, dead_letter = false } = history();
      return add('job.discarded', { ...failureData(error as JobErrorEntry), reason: why, dead_letter });
    }
    case 'drop':
    case 'quarantine': {
      const { reason: why, dead_letter = false } = history();
      return add('job.discarded', { attempt, reason: why, dead_letter });
    }
    case 'purge':
      return add('job.discarded', { attempt: active?.attempt ?? attempt, reason, dead_letter: false });
  }
}

function failureData({ attempt, duration_ms, code, type, message }: JobErrorEntry): Record<string, unknown> {
  return { attempt, duration_ms, error: { code, type, message } };
}

/** An attempt has begun. */
export function tellStarted(q: QueueState, row: JobRow, { attempt, workerId }: Active, now: number): void {
  const holder = workerId === undefined ? {} : { worker_id: workerId };
  q.events.add('job.started', idOf(q.route, row), now, { job_type: row.type, attempt, ...holder });
}

/** An attempt has succeeded. */
export function tellCompleted(
  q: QueueState,
  row: JobRow,
  attempt: { number: number; startedAt: number },
  now: number,
): void {
  q.events.add('job.completed', idOf(q.route, row), now, {
    job_type: row.type,
    attempt: attempt.number,
    duration_ms: now - attempt.startedAt,
    result: null,
  });
}
