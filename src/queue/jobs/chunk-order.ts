/**
 * The order of a chunk in a strict group: once a job must run again, those behind it count as not run. It follows
 * from the lease, which has the jobs in order, and from where they are now, so the order of reports does not matter.
 */
import type { JobHistory } from '../../job/record';
import type { Move } from '../../job/states';
import type { Active } from '../store/active';
import { type JobRow, STATE } from '../store/job-row';
import { type Change, move } from '../store/jobs';
import type { QueueParts, Stored } from '../store/parts';
import { rowByKey } from '../store/row-lookup';
import { historyOf } from '../store/row-texts';
import { placeOf } from '../store/rows';

/** Must an earlier job of its chunk run again? Then it was not the turn of this one. */
export function isOutOfTurn({ store }: Stored, active: Active): boolean {
  const { place } = active;
  if (place === undefined || !store.gates.isStrict) return false;
  return store.leases.isBehind(active, ({ key }) => {
    const row = rowByKey(store, key);
    if (row?.ended_at !== null || (row.state !== STATE.waiting && row.state !== STATE.held)) return false;
    return row.holds_group !== null || placeOf(row) <= place;
  });
}

/** The attempt of a job ends, and it waits again: so do those behind it in its chunk that failed before. */
export function goBack(q: QueueParts, row: JobRow, kind: Move, change: Change, now: number): JobRow {
  const { leases, gates } = q.store;
  const active = leases.active.get(row.key);
  const holders = active?.group === undefined || active.place === undefined ? [] : gates.holdersOf(active.group);
  // The lease may be over with this attempt.
  const later = holders.flatMap((key) => leases.behind(active as Active, key) ?? []);
  const after = move(q, row, kind, change, now);
  for (const mate of later) makeUnused(q, mate, now);
  return after;
}

/** Its failure does not count, and it returns to its place. Two rows written. */
function makeUnused(q: QueueParts, mate: Active, now: number): void {
  const row = q.store.leases.active.has(mate.key) ? undefined : rowByKey(q.store, mate.key);
  if (row?.state !== STATE.waiting || row.claims !== mate.claim) return;
  const { error, errors = [], snoozed: _, ...rest } = historyOf(row);
  const history: JobHistory = { ...rest };
  const kept = error?.attempt === mate.attempt ? errors.slice(0, -1) : errors;
  const last = kept.at(-1);
  if (last) Object.assign(history, { error: last, errors: kept });
  const attempt = Math.min(row.attempt, mate.attempt - 1);
  delete history.retry_delay_ms;
  move(
    q,
    row,
    'undoClaim',
    {
      attempt,
      due_at: mate.place ?? row.enqueued_at,
      history: withUnused(history, mate, attempt, now),
      isBehind: true,
    },
    now,
  );
}

/** An earlier job of its chunk runs before it: no attempt is used up, whatever this one reports. */
export function giveBackToChunk(q: QueueParts, row: JobRow, active: Active, now: number): JobRow {
  const history = withUnused(historyOf(row), active, row.attempt, now);
  return goBack(q, row, 'undoClaim', { due_at: placeOf(row), history, isBehind: true }, now);
}

function withUnused(history: JobHistory, { claim, workerId }: Active, attempt: number, now: number): JobHistory {
  const by = workerId !== undefined && { worker_id: workerId };
  return { ...history, unused: { attempt, claim, count: 0, at: now, ...by } };
}
