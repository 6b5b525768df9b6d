/**
 * The states of a job and the one table of legal moves between them.
 *
 *                      ┌────────────── redrive ◀───────────────┐
 *                      ▼                                       │
 *   enqueue ─▶ scheduled ─(time)─▶ available ─claim─▶ active ─▶ completed · cancelled · discarded ─remove─▶ gone
 *       │                              ▲                │
 *       └─▶ pending ───activate────────┤◀─(time)─ retryable ◀─ retry
 *
 * | move | made by | writes |
 * |---|---|---|
 * | `enqueue`, `adopt` | producers, cron, workflows; another queue | its share of a block; a row + 1 outside the line |
 * | `restore` | an import | its share of a block, of a retry block or of an archive chunk; else a row + 1 |
 * | `prepare`, `commit`, `abort` | an enqueue over several queues, until it is decided | row + 1; row + 1; delete |
 * | `activate` | producers | row + 1 |
 * | `claim` | workers that pull, the pump | one lease row for the whole batch, no row of the job |
 * | `complete` | ack, an answer of a handler | a share of an archive chunk, and the delete of a row of its own |
 * | `retry`, `giveBack` | a failed attempt; its worker | row + 1 |
 * | `undoClaim` | a handler that was never called; an earlier job of its chunk that must run again | row + 1 |
 * | `snooze`, `signal` | a handler that continues later, its attempt unused; the signal that it waits for | row + 1 |
 * | `discard` | an attempt that failed for good | row + 1 |
 * | `cancel` | producers, operators, unique policies, cron, workflows | row + 1 |
 * | `expire`, `drop` | the queue: its time is over; there is no room for it | row + 1 |
 * | `quarantine` | the queue: its record cannot be read | row + 1 |
 * | `redrive` | operators | row + 1 |
 * | `patch` | producers | row, + 1 when its place in the due index changes |
 * | `accumulate` | producers: newcomers become a part of it | as `patch` |
 * | `defer` | limits: it is given a later time | row + 1 |
 * | `lock`, `unlock` | an operation over several queues that is being decided | row; row + 1 |
 * | `setAside` | the deletion of the queue: it travels to another one | row |
 * | `remove`, `purge`, `depart` | retention, operators; operators, for unfinished jobs; a queue that took it | delete |
 *
 * `scheduled` and `retryable` become `available` by comparison with the time: nothing is written for it. Which waiting
 * job is `active` follows from the leases. `held` is the state of an untouchable row: locked, set aside, or not decided
 * yet.
 */

export const JOB_STATES = [
  'scheduled',
  'available',
  'pending',
  'active',
  'retryable',
  'completed',
  'cancelled',
  'discarded',
] as const;
export type JobState = (typeof JOB_STATES)[number];

export const TERMINAL_STATES: readonly JobState[] = ['completed', 'cancelled', 'discarded'];

export type Position = JobState | 'held' | 'none' | 'gone';

const WAITING = ['scheduled', 'available', 'pending', 'retryable'] as const;
const OPEN = ['scheduled', 'available', 'pending', 'active', 'retryable'] as const;
const ENDED_IN_ROW = ['cancelled', 'discarded'] as const;

export const MOVES = {
  enqueue: { from: ['none'], to: ['scheduled', 'available', 'pending'] },
  adopt: { from: ['none'], to: WAITING },
  restore: { from: ['none'], to: [...WAITING, 'completed', 'cancelled', 'discarded'] },
  prepare: { from: ['none'], to: ['held'] },
  commit: { from: ['held'], to: ['scheduled', 'available', 'pending'] },
  abort: { from: ['held'], to: ['gone'] },
  activate: { from: ['pending'], to: ['available', 'scheduled'] },
  claim: { from: ['available'], to: ['active'] },
  complete: { from: ['active', 'retryable'], to: ['completed'] },
  retry: { from: ['active'], to: ['retryable', 'available'] },
  giveBack: { from: ['active'], to: ['available'] },
  undoClaim: { from: ['active', 'scheduled', 'retryable', 'available'], to: ['available', 'scheduled', 'retryable'] },
  snooze: { from: ['active'], to: ['scheduled', 'retryable', 'available'] },
  signal: { from: ['scheduled', 'retryable'], to: ['available'] },
  discard: { from: ['active'], to: ['discarded'] },
  cancel: { from: OPEN, to: ['cancelled'] },
  expire: { from: WAITING, to: ['discarded'] },
  drop: { from: WAITING, to: ['discarded'] },
  quarantine: { from: ['available', 'active'], to: ['discarded'] },
  redrive: { from: ['discarded', 'cancelled', 'retryable'], to: ['available'] },
  patch: { from: WAITING, to: WAITING },
  accumulate: { from: ['scheduled', 'available', 'pending'], to: ['scheduled', 'available', 'pending'] },
  defer: { from: ['available'], to: ['scheduled', 'retryable'] },
  lock: { from: [...WAITING, ...ENDED_IN_ROW], to: ['held'] },
  unlock: { from: ['held'], to: [...WAITING, ...ENDED_IN_ROW] },
  setAside: { from: WAITING, to: ['held'] },
  depart: { from: ['held', 'discarded'], to: ['gone'] },
  remove: { from: TERMINAL_STATES, to: ['gone'] },
  purge: { from: OPEN, to: ['gone'] },
} as const satisfies Record<string, { from: readonly Position[]; to: readonly Position[] }>;

export type Move = keyof typeof MOVES;

export function mayMove(move: Move, from: Position): boolean {
  return (MOVES[move].from as readonly Position[]).includes(from);
}

export function isLegal(move: Move, from: Position, to: Position): boolean {
  return mayMove(move, from) && (MOVES[move].to as readonly Position[]).includes(to);
}

/** The states from which a move is made, in words: `discarded, cancelled or retryable`. */
export function statesBefore(move: Move): string {
  const names = [...MOVES[move].from];
  const last = names.pop() as string;
  return names.length === 0 ? last : `${names.join(', ')} or ${last}`;
}
