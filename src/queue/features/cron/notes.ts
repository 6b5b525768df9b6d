/** The records of an entry's fires: jobs enqueued, fires skipped and why. Each is an event of the live feed too. */
import type { ErrorData } from '../../../job/errors';
import { cut } from '../../../job/text';
import { formatInstant } from '../../../job/time';
import type { CronSkip, CronView } from '../../../rpc/cron';
import type { EnqueuedJob } from '../../../rpc/receipts';
import type { Observed } from '../../store/parts';

const KEPT_EXECUTIONS = 50;
const KEPT_SKIPS = 20;

/** A job has been enqueued, or found to exist. @param own the id reserved for it */
export function noteJob(
  q: Observed,
  entry: CronView,
  enqueued: EnqueuedJob,
  tick: number | undefined,
  now: number,
  own?: string,
): void {
  const { id, type } = enqueued.record;
  if (enqueued.deduplicated && id !== own) {
    if (tick !== undefined) noteSkip(q, entry, { tick, at: now, reason: 'unique', job_id: id });
    return;
  }
  noteRun(q, entry, { id, type }, tick, now);
}

const entryOf = ({ name, expression, timezone }: CronView['definition']) => ({
  cron_name: name,
  cron_expression: expression,
  timezone,
});

function noteRun(
  q: Observed,
  { definition, run }: CronView,
  job: { id: string; type: string },
  tick: number | undefined,
  now: number,
): void {
  run.runs++;
  if (tick !== undefined) run.fires++;
  run.last_run_at = now;
  run.last_job = job.id;
  const execution = { job_id: job.id, ...(tick !== undefined && { tick }), at: now };
  run.history = [...run.history, execution].slice(-KEPT_EXECUTIONS);
  q.observed.events.add('cron.triggered', definition.name, now, {
    ...entryOf(definition),
    job_id: job.id,
    job_type: job.type,
    run_count: run.runs,
    ...(tick !== undefined && { scheduled_time: formatInstant(tick) }),
    actual_time: formatInstant(now),
  });
}

/** A job was refused. @param own the id reserved for it */
export function noteRefusal(
  q: Observed,
  entry: CronView,
  tick: number,
  error: ErrorData,
  now: number,
  own?: string,
): void {
  const { existing_job_id } = error.details ?? {};
  const existing = typeof existing_job_id === 'string' && existing_job_id !== '' ? existing_job_id : undefined;
  // An earlier try succeeded, and was cut off before it could note it.
  if (own !== undefined && existing === own) {
    noteRun(q, entry, { id: own, type: String(entry.definition.template.type) }, tick, now);
    return;
  }
  noteSkip(q, entry, {
    tick,
    at: now,
    reason: error.code === 'duplicate' ? 'unique' : 'refused',
    ...(existing !== undefined && { job_id: existing }),
    ...(error.code !== 'duplicate' && { message: cut(error.message, 500) }),
  });
}

export function noteSkip(q: Observed, { definition, run }: CronView, skip: CronSkip): void {
  run.skips++;
  run.skipped = [...run.skipped, skip].slice(-KEPT_SKIPS);
  q.observed.events.add('cron.skipped', definition.name, skip.at, {
    ...entryOf(definition),
    reason: skip.reason,
    scheduled_time: formatInstant(skip.tick),
    ...(skip.until !== undefined && { scheduled_until: formatInstant(skip.until) }),
    ...(skip.job_id !== undefined && { active_job_id: skip.job_id }),
    ...(skip.message !== undefined && { message: skip.message }),
  });
}
