/** What the group of a job has to do with it that the job does not run. */
import { formatDuration } from '../../job/duration';
import { namedGroup, type WaitingFor } from '../../job/waiting';
import type { JobRow } from '../store/job-row';
import type { Named, Stored } from '../store/parts';
import { rowByKey } from '../store/row-lookup';
import { groupOfRow } from '../store/row-texts';
import { availableSince, idOf } from '../store/rows';

/** The group of an available job may start no other one, because of those that run, or that must end first. */
export function waitsForGroup(q: Named & Stored, row: JobRow, now: number): WaitingFor | undefined {
  const { gates, leases } = q.store;
  const group = gates.rules && groupOfRow(row);
  if (group === undefined) return undefined;
  const hold = gates.holdOf(group, row, 0, now);
  if (!hold) return undefined;
  const since = availableSince(row);
  const named = namedGroup(group);
  const rate = gates.limitsOf(group)?.rate;
  if (hold.by === 'rate' && rate) {
    const detail = `${rate.limit} jobs of ${named} have started within ${formatDuration(rate.period_ms)}, as many as its queue allows.`;
    return { reason: 'group', since, until: hold.opensAt, detail };
  }
  if (hold.by === 'concurrency') {
    const detail = `${gates.runningOf(group)} jobs of ${named} run, as many as its queue allows.`;
    return { reason: 'group', since, detail };
  }
  const running = Array.from(leases.active.values()).find((active) => active.group === group)?.key;
  const key = running ?? gates.holderOf(group);
  const earlier = key === undefined ? undefined : rowByKey(q.store, key);
  if (!earlier) return undefined;
  const id = idOf(q.route, earlier);
  const rests = earlier.waits_since === null ? 'has begun and waits to continue' : 'waits for its limit';
  const why = running === undefined ? rests : 'runs';
  const detail = `An earlier job of ${named}, ${id}, ${why}. One job of a group runs at a time here, in the order of enqueue.`;
  return { reason: 'group', since, detail, job_id: id };
}
