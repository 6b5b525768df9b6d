import { formatDuration } from '../../job/duration';
import { type Limits, plainKey } from '../../job/limits/policy';
import { formatInstant } from '../../job/time';
import { namedKey, overridePath, type WaitingFor, waiting } from '../../job/waiting';
import type { JobRow } from '../store/job-row';
import { countAhead, MAX_COUNTED } from '../store/jobs-ahead';
import type { Limiter } from '../store/limits/limiter';
import { limiterOf, policyOf, runningOf } from '../store/limits/place';
import { queueStandstill } from '../store/limits/queue-limit';
import type { Named, Stored, StoredQueue } from '../store/parts';
import { bodyOf, isBegun } from '../store/row-texts';
import { availableSince } from '../store/rows';
import { Scan } from '../store/scan';
import { roomFor } from './limit-check';

/** What a rate counts, for the reader of an explanation. */
const WHAT_COUNTS =
  ' Each attempt counts once, when it starts, and not again when it continues after a sleep or a signal.';

/** The key of an available job has no room, or jobs before it take that room. */
export function waitsForKey(q: Named & Stored, row: JobRow, now: number): WaitingFor | undefined {
  const { limit_key: key } = row;
  if (key === null) return undefined;
  const limiter = limiterOf(q, row);
  const { name } = limiter;
  const hasBegun = isBegun(row);
  const room = roomFor(q, row, now);
  if (room > 0 && (hasBegun || isInTime(q, row, room, now))) return undefined;
  const since = availableSince(row);
  const override = limiter.overrideAt(now);
  if (limiter.isStopped(now)) {
    const until = override?.expires_at;
    const how = until === undefined ? '' : ` until ${formatInstant(until)}`;
    const detail = `An operator has stopped ${namedKey(name)}${how}. DELETE ${overridePath(name)} to resume.`;
    return { ...waiting('key_limit', detail, since, until), key: name };
  }
  const opensAt = hasBegun ? undefined : limiter.opensAt(now);
  const until = opensAt !== undefined && opensAt > now ? opensAt : undefined;
  const byRate = !hasBegun && limiter.room(0, now) <= 0;
  const use = usedUp(limiter.inForce(now), runningOf(q, key), byRate);
  const counted = hasBegun ? ' Its start was counted before: it continues as soon as one of them ends.' : '';
  const raised = override ? ` An override holds; DELETE ${overridePath(name)} to end it.` : '';
  if (limiter.holder) {
    const detail = `It counts under ${namedKey(name)} in all queues. ${sharedUse(limiter, runningOf(q, key), now)}${raised}`;
    return { ...waiting('key_limit', detail, since, until), key: name };
  }
  const detail = use
    ? `It counts under ${namedKey(name)}, whose limit is reached: ${use}.${byRate ? WHAT_COUNTS : counted}${raised}`
    : `It counts under ${namedKey(name)}, and jobs ahead of it take the free slots.${raised}`;
  return { ...waiting('key_limit', detail, since, until), key: name };
}

function isInTime(q: Stored, row: JobRow, room: number, now: number): boolean {
  // Where groups take turns, no order among all of them says who comes before.
  if (q.store.gates.rules || room > MAX_COUNTED) return true;
  const { active, head } = q.store.leases;
  const scan = new Scan();
  scan.reset(head);
  const isRival = (other: Pick<JobRow, 'key' | 'limit_key'>) =>
    other.limit_key === row.limit_key && !active.has(other.key);
  const ahead = countAhead(q.store, scan, row, now, isRival);
  return ahead.count < room && !ahead.isMore;
}

/** How a limit over all queues delays the jobs of this one. */
function sharedUse(limiter: Limiter, running: number, now: number): string {
  if (limiter.isUndecided(running, now)) return 'Its queue has asked for a part of the limit and waits for the answer.';
  const use = usedUp(limiter.inForce(now), running, false);
  if (use) return `The limit is reached: ${use}.`;
  return limiter.room(running, now) > 0
    ? 'Jobs ahead of it take the part of the limit that its queue has.'
    : 'Its queue waits for a part of the limit: other queues have, or have used, all of it.';
}

/** The job's policy reschedules it if the key has no room, and that happened. */
export function rescheduledByKey(q: Named, row: JobRow, now: number): WaitingFor | undefined {
  const { limit_key: key, due_at } = row;
  if (key === null || due_at === null || due_at <= now || row.attempt > 0) return undefined;
  if (bodyOf(row).scheduled_at === due_at || policyOf(q, row)?.on_limit !== 'reschedule') return undefined;
  const detail = `There was no room under ${namedKey(plainKey(key))}, so it was scheduled for ${formatInstant(due_at)}.`;
  return { ...waiting('key_limit', detail, row.enqueued_at, due_at), key: plainKey(key) };
}

/** The queue's own limit lets no job start. @param since when the job became available, epoch ms */
export function waitsForQueueLimit(q: StoredQueue, since: number, now: number): WaitingFor | undefined {
  const standstill = queueStandstill(q, now);
  if (!standstill) return undefined;
  const { limits, running, opensAt } = standstill;
  const use = usedUp(limits, running, opensAt !== undefined);
  const detail = `The limit of queue ${q.name} is used up: ${use}.${opensAt === undefined ? '' : WHAT_COUNTS} Raise rate_limit in its settings to run more.`;
  return waiting('queue_limit', detail, since, opensAt);
}

/** Which of the limits are used up. @param byRate the rate of starts is used up */
function usedUp({ concurrency, rate, throttle }: Limits, running: number, byRate: boolean): string {
  const uses: string[] = [];
  if (concurrency !== undefined && running >= concurrency) uses.push(`${running} of ${concurrency} jobs run`);
  if (byRate && rate) uses.push(`${rate.limit} jobs have started within ${formatDuration(rate.period_ms)}`);
  if (byRate && throttle) {
    uses.push(`one job starts every ${formatDuration(Math.ceil(throttle.period_ms / throttle.limit))}`);
  }
  return uses.join(', and ');
}
