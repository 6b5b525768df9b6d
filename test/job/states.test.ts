/** The table of legal moves, against a list of its own: what is not on this list is refused. */
import { describe, expect, it } from 'vitest';
import { isLegal, JOB_STATES, MOVES, type Move, mayMove, type Position, statesBefore } from '../../src/job/states';

const POSITIONS: readonly Position[] = ['none', ...JOB_STATES, 'held', 'gone'];

/** Every legal move: `from > to`, by name. */
const LEGAL: Record<string, string> = {
  enqueue: 'none > scheduled, none > available, none > pending',
  adopt: 'none > scheduled, none > available, none > pending, none > retryable',
  restore:
    'none > scheduled, none > available, none > pending, none > retryable, none > completed, none > cancelled, none > discarded',
  prepare: 'none > held',
  commit: 'held > scheduled, held > available, held > pending',
  abort: 'held > gone',
  activate: 'pending > available, pending > scheduled',
  claim: 'available > active',
  complete: 'active > completed, retryable > completed',
  retry: 'active > retryable, active > available',
  giveBack: 'active > available',
  snooze: 'active > scheduled, active > retryable, active > available',
  signal: 'scheduled > available, retryable > available',
  undoClaim: `active > available, active > scheduled, active > retryable,
    available > available, available > scheduled, available > retryable,
    retryable > available, retryable > scheduled, retryable > retryable,
    scheduled > available, scheduled > scheduled, scheduled > retryable`,
  discard: 'active > discarded',
  cancel:
    'scheduled > cancelled, available > cancelled, pending > cancelled, active > cancelled, retryable > cancelled',
  expire: 'scheduled > discarded, available > discarded, pending > discarded, retryable > discarded',
  drop: 'scheduled > discarded, available > discarded, pending > discarded, retryable > discarded',
  quarantine: 'available > discarded, active > discarded',
  redrive: 'discarded > available, cancelled > available, retryable > available',
  patch: `scheduled > scheduled, scheduled > available, scheduled > pending, scheduled > retryable,
    available > scheduled, available > available, available > pending, available > retryable,
    pending > scheduled, pending > available, pending > pending, pending > retryable,
    retryable > scheduled, retryable > available, retryable > pending, retryable > retryable`,
  accumulate: `scheduled > scheduled, scheduled > available, scheduled > pending,
    available > scheduled, available > available, available > pending,
    pending > scheduled, pending > available, pending > pending`,
  defer: 'available > scheduled, available > retryable',
  lock: 'scheduled > held, available > held, pending > held, retryable > held, cancelled > held, discarded > held',
  unlock: 'held > scheduled, held > available, held > pending, held > retryable, held > cancelled, held > discarded',
  setAside: 'scheduled > held, available > held, pending > held, retryable > held',
  depart: 'held > gone, discarded > gone',
  remove: 'completed > gone, cancelled > gone, discarded > gone',
  purge: 'scheduled > gone, available > gone, pending > gone, active > gone, retryable > gone',
};

const expected = (move: string): string[] =>
  (LEGAL[move] ?? '')
    .split(',')
    .flatMap((pair) => pair.trim() || [])
    .sort();

describe('the table of moves', () => {
  it('has these moves and no others', () => {
    expect(Object.keys(MOVES).sort()).toEqual(Object.keys(LEGAL).sort());
  });

  it.each(Object.keys(LEGAL) as Move[])('lets %s lead from where to where the list says, and nowhere else', (move) => {
    const legal = POSITIONS.flatMap((from) =>
      POSITIONS.flatMap((to) => (isLegal(move, from, to) ? [`${from} > ${to}`] : [])),
    );
    expect(legal.sort()).toEqual(expected(move));
    const starts = new Set(expected(move).map((pair) => pair.split(' > ')[0]));
    expect(POSITIONS.filter((from) => mayMove(move, from))).toEqual(POSITIONS.filter((from) => starts.has(from)));
  });

  it('lets nothing follow the end of a job but a second life, its way elsewhere, and its removal', () => {
    const movesFrom = (state: Position) => (Object.keys(MOVES) as Move[]).filter((move) => mayMove(move, state)).sort();
    expect(movesFrom('completed')).toEqual(['remove']);
    expect(movesFrom('cancelled')).toEqual(['lock', 'redrive', 'remove']);
    expect(movesFrom('discarded')).toEqual(['depart', 'lock', 'redrive', 'remove']);
    expect(movesFrom('gone')).toEqual([]);
  });

  it('names the states of a refusal in the order of a life', () => {
    expect(statesBefore('cancel')).toBe('scheduled, available, pending, active or retryable');
    expect(statesBefore('redrive')).toBe('discarded, cancelled or retryable');
    expect(statesBefore('activate')).toBe('pending');
  });
});
