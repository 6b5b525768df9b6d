/** The available jobs as stored, bounded reads: heads of blocks for jobs waiting since their enqueue, else rows. */
import { rowsUntil } from '../../durable/sql';
import { RANK_BIT } from '../../job/ids';
import { groupOfRow, isBegun, type JobRow, STATE } from '../store/job-row';
import type { WaitingJobs } from '../store/limits/limiter';
import type { Stored } from '../store/parts';
import { availableSince } from '../store/rows';
import { GROUP_OF_BODY } from './filter';

/** Jobs looked at in retry blocks and in rows, whose bodies name their groups; and characters of these. */
const MAX_BODIES = 10_000;
const MAX_CHARS = 32 * 1024 * 1024;

interface AvailableJob {
  group: string | undefined;
  limitKey: string | null;
  /** Was its start counted before? */
  isBegun: boolean;
  /** Since when, epoch ms. */
  since: number;
}

/** Visits available jobs that do not run. @param mostHeads in the line's blocks, and in the due index @returns all? */
export function eachAvailable(q: Stored, now: number, mostHeads: number, visit: (job: AvailableJob) => void): boolean {
  const { blocks, leases, priorities } = q.store;
  let complete = true;
  const visitAll = (rows: Iterable<JobRow>, most: number, mostChars = Number.POSITIVE_INFINITY) => {
    let [looked, chars] = [0, 0];
    for (const row of rows) {
      if (looked++ >= most || chars > mostChars) {
        complete = false;
        return;
      }
      chars += row.body.length;
      if (leases.active.has(row.key)) continue;
      visit({ group: groupOfRow(row), limitKey: row.limit_key, isBegun: isBegun(row), since: availableSince(row) });
    }
  };
  const byPriority = [...priorities].sort((a, b) => b - a);
  visitAll(blocks.line.after(leases.head, false), mostHeads);
  visitAll(
    inTurn(byPriority, (priority) => blocks.due.inTurn(priority, undefined, now, false)),
    mostHeads,
  );
  visitAll(
    inTurn(byPriority, (priority) => blocks.retries.inTurn(priority, undefined, now)),
    MAX_BODIES,
    MAX_CHARS,
  );
  return visitRows(q, now, visit) && complete;
}

function* inTurn(priorities: readonly number[], rows: (priority: number) => Iterable<JobRow>): Generator<JobRow> {
  for (const priority of priorities) yield* rows(priority);
}

type OwnRow = Pick<JobRow, 'key' | 'state' | 'enqueued_at' | 'due_at' | 'attempt' | 'history' | 'limit_key'> & {
  grp: string | null;
  chars: number;
};

/** Jobs with a row of their own, by the index that has them. @returns were these all? */
function visitRows(q: Stored, now: number, visit: (job: AvailableJob) => void): boolean {
  const { sql, leases, priorities } = q.store;
  const columns = `key, state, enqueued_at, due_at, attempt, limit_key, length(body) AS chars,
    CASE WHEN limit_key IS NOT NULL THEN history END AS history,
    ${GROUP_OF_BODY} AS grp`;
  const sources: [from: string, ...bindings: number[]][] = [
    ...[...priorities].map((priority): [string, number, number] => [
      'jobs WHERE priority = ? AND due_at <= ?',
      priority,
      now,
    ]),
    [`jobs WHERE key > ? AND key < ${RANK_BIT}`, leases.head],
  ];
  let [looked, chars] = [0, 0];
  for (const [place, [from, ...bindings]] of sources.entries()) {
    const isLine = place === sources.length - 1;
    for (const row of rowsUntil<OwnRow>(sql, `SELECT ${columns} FROM ${from}`, ...bindings)) {
      if (looked++ >= MAX_BODIES || chars > MAX_CHARS) return false;
      chars += row.chars;
      if (row.state !== STATE.waiting || leases.active.has(row.key)) continue;
      if (isLine && row.due_at !== null) continue;
      const { grp, limit_key: limitKey } = row;
      visit({ group: grp ?? undefined, limitKey, isBegun: isBegun(row), since: availableSince(row) });
    }
  }
  return true;
}

const MAX_HEADS = 100_000;

export interface WaitingUnder {
  counts: ReadonlyMap<string, WaitingJobs>;
  /** False: there may be more, as not all that is available was looked at. */
  isAll: boolean;
}

/** Counts the jobs under these keys. Reads a bounded part of the backlog. @param now epoch ms */
export function waitingUnder(q: Stored, keys: ReadonlySet<string>, now: number): WaitingUnder {
  const counts = new Map<string, WaitingJobs>();
  const isAll = eachAvailable(q, now, MAX_HEADS, ({ limitKey, isBegun }) => {
    if (limitKey === null || !keys.has(limitKey)) return;
    const found = counts.get(limitKey) ?? { all: 0, begun: 0 };
    found.all++;
    if (isBegun) found.begun++;
    counts.set(limitKey, found);
  });
  return { counts, isAll };
}
