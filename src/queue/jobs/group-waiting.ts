/** What the group of a job has to do with it that the job does not run. */
import { formatDuration } from '../../job/duration';
import { namedGroup, type WaitingFor, waiting } from '../../job/waiting';
import { type JobRow, STATE } from '../store/job-row';
import type { Named, Stored } from '../store/parts';
import { rowByKey } from '../store/row-lookup';
import { groupOfRow } from '../store/row-texts';
import { availableSince, idOf } from '../store/rows';
import { longestWaitingOf } from './group-oldest';
import { roomFor } from './limit-check';

/** The group of an available job may start no other one: paused, rate used up, or others run or must end first. */
export function waitsForGroup(q: Named & Stored, row: JobRow, now: number): WaitingFor | undefined {
  const group = q.store.gates.rules && groupOfRow(row);
  return group === undefined ? undefined : groupWaits(q, group, row, availableSince(row), now);
}

/** What says which holds of its group a job is subject to. */
type Start = Pick<JobRow, 'key' | 'attempt' | 'history'>;

/** Any job of a group that has not begun. */
export const NEXT: Start = { key: 0, attempt: 0, history: null };

/** Why this job may not start because of its group. @param since when it became available, epoch ms */
export function groupWaits(
  q: Named & Stored,
  group: string,
  row: Start,
  since: number,
  now: number,
): WaitingFor | undefined {
  const held = groupHeld(q, group, row, since, now);
  return held ?? (q.store.gates.isStrict ? waitsForFirst(q, group, row, since, now) : undefined);
}

/** What holds the whole group; not the limit key of its first job, which only {@link groupWaits} reads. */
export function groupHeld(
  q: Named & Stored,
  group: string,
  row: Start,
  since: number,
  now: number,
): WaitingFor | undefined {
  const { gates } = q.store;
  const named = namedGroup(group);
  const hold = gates.holdOf(group, row, 0, now);
  switch (hold?.by) {
    case 'pause':
      return waiting(
        'group_paused',
        `An operator has paused ${named}: it hands out no jobs until it is resumed.`,
        since,
      );
    case 'rate': {
      const { limit, period_ms } = gates.limitsOf(group)?.rate ?? { limit: 0, period_ms: 0 };
      const detail = `${limit} jobs of ${named} have started within ${formatDuration(period_ms)}, as many as its queue allows.`;
      return waiting('group', detail, since, hold.opensAt);
    }
    case 'concurrency': {
      const detail = `${gates.runningOf(group)} jobs of ${named} run, as many as its queue allows.`;
      return waiting('group', detail, since);
    }
    case 'order':
      return waitsForEarlier(q, group, since);
    default:
      return undefined;
  }
}

/** In a strict order, the first job of its group waits for its key. Reads a bounded part of the backlog. */
function waitsForFirst(
  q: Named & Stored,
  group: string,
  row: Pick<JobRow, 'key'>,
  since: number,
  now: number,
): WaitingFor | undefined {
  const [key] = longestWaitingOf(q, new Map([[group, 1]]), new Set()).keys.get(group) ?? [];
  const first = key === undefined || key === row.key ? undefined : rowByKey(q.store, key);
  if (!first || availableSince(first) > now || roomFor(q, first, now) > 0) return undefined;
  return behindEarlier(q, group, first, 'waits for its limit', since);
}

function waitsForEarlier(q: Named & Stored, group: string, since: number): WaitingFor | undefined {
  const { gates, leases } = q.store;
  const running = Array.from(leases.active.values()).find((active) => active.group === group)?.key;
  const key = running ?? gates.holderOf(group);
  const earlier = key === undefined ? undefined : rowByKey(q.store, key);
  if (!earlier) return undefined;
  if (earlier.state === STATE.held) {
    const detail = `An operation over several queues has a job of ${namedGroup(group)}, and is being decided.`;
    return waiting('group', detail, since);
  }
  return behindEarlier(q, group, earlier, running === undefined ? 'has begun and waits to continue' : 'runs', since);
}

function behindEarlier(q: Named, group: string, earlier: JobRow, why: string, since: number): WaitingFor {
  const id = idOf(q.route, earlier);
  const detail = `An earlier job of ${namedGroup(group)}, ${id}, ${why}. One job of a group runs at a time here, in the order of enqueue.`;
  return { ...waiting('group', detail, since), job_id: id };
}
