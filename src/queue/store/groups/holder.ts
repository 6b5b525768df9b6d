/** Which job all others of its group wait for, where the order is strict. */
import type { Move } from '../../../job/states';
import { groupOfRow, type JobRow, STATE } from '../job-row';
import type { GroupGates } from './gates';

interface Gated {
  readonly store: { readonly gates: Pick<GroupGates, 'isStrict' | 'priorityOf'> };
}

/** After these moves a job that has begun holds its group up. All others leave what it holds as it was. */
const ENDS_ATTEMPT: ReadonlySet<Move> = new Set<Move>(['retry', 'giveBack', 'snooze', 'undoClaim']);

export const priorityOf = ({ store: { gates } }: Gated, row: Pick<JobRow, 'priority' | 'group' | 'body'>): number =>
  row.priority !== 0 && gates.isStrict ? gates.priorityOf(groupOfRow(row), row.priority) : row.priority;

/** The group that a job holds up from its arrival on. */
export const heldBy = ({ store: { gates } }: Gated, row: Pick<JobRow, 'group' | 'body'>): string | null =>
  gates.isStrict ? (groupOfRow(row) ?? null) : null;

/**
 * The group that a job holds up after a move: it has begun, or was claimed and did not start. A job that is locked
 * keeps what it holds. A dead letter that is redriven has not begun.
 */
export function holdsGroup(
  kind: Move,
  before: JobRow,
  after: JobRow,
  { now, isInChunk, isBehind }: { now: number; isInChunk: boolean; isBehind: boolean },
): string | null {
  // Nothing passes a job that waits to be decided about, or to leave.
  if (kind === 'lock' && before.state === STATE.waiting) return groupOfRow(before) ?? null;
  if (kind === 'lock' || kind === 'setAside') return before.holds_group;
  if (after.state !== STATE.waiting || isBehind) return null;
  // One of a chunk goes back to its place among the others.
  if (kind === 'undoClaim' && isInChunk) return before.holds_group;
  const hasBegun = after.attempt > 0 || after.history?.includes('"snoozed":') === true;
  if (kind === 'undoClaim' || (hasBegun && ENDS_ATTEMPT.has(kind))) return groupOfRow(after) ?? null;
  if (hasBegun) return before.holds_group;
  // One that has not begun gives its place up when it is given another time.
  return kind === 'defer' || (kind === 'patch' && after.due_at !== null && after.due_at > now)
    ? null
    : before.holds_group;
}
