/** Writes cron entries and their histories as JSON, with every spelling that clients of the contract look for. */
import type * as contract from '../../contract/cron';
import { defined, given, isObject } from '../../job/envelope/fields';
import { formatInstant } from '../../job/time';
import { also } from '../../ojs/names';
import type { CronExecutionView, CronSkip, CronView } from '../../rpc/cron';
import { scheduleOf } from '../../schedules/definition';
import { firesBetween } from '../../schedules/schedule';

const FIRES_AHEAD = 5;

/** An entry. With `ahead`, its next fires. */
export function renderCron(view: CronView, ahead = false): contract.CronStatus {
  const { definition, run } = view;
  const { name, expression, template, queue, timezone, overlap_policy, missed_policy } = definition;
  const { limit, enabled, description, group } = definition;
  const { type, args, meta, options } = template as Pick<contract.CronStatus, 'type' | 'args' | 'meta' | 'options'>;
  const usedUp = enabled && run.next_at === undefined;
  const status: contract.CronStatus['status'] = enabled ? (usedUp ? 'completed' : 'active') : 'paused';
  const own = isObject(options) && isObject(options.meta) ? options.meta : undefined;
  return defined({
    ...also('CronStatus', { name, expression }),
    ...{ timezone, overlap_policy, missed_policy },
    max_catchup: missed_policy === 'fire_all' ? definition.max_catchup : undefined,
    start_at: given(definition.start_at, formatInstant),
    end_at: given(definition.end_at, formatInstant),
    ...{ limit, enabled, status, description, group },
    next_run_at: given(run.next_at, formatInstant) ?? null,
    last_run_at: given(run.last_run_at, formatInstant) ?? null,
    last_job_id: run.last_job,
    ...{ run_count: run.runs, fire_count: run.fires, skipped_count: run.skips },
    last_skipped: given(run.skipped.at(-1), renderSkip),
    waiting: run.waiting.length,
    created_at: formatInstant(run.created_at),
    updated_at: formatInstant(run.updated_at),
    type,
    queue,
    args,
    meta: meta ?? own,
    options,
    job_template: template,
    next_fires: ahead ? firesAhead(view).map(formatInstant) : undefined,
  });
}

/** The answer about one entry, flat and under its names. @param isFlat is `cron` the expression, as SDKs read it? */
export function renderCronAnswer(view: CronView, isFlat: boolean): contract.CronAnswer {
  const entry = renderCron(view, true);
  return { ...entry, cron: isFlat ? entry.cron : entry, cron_job: entry };
}

/** The next fires of an entry, unless it is paused or used up. Epoch ms. */
function firesAhead({ definition, run }: CronView): number[] {
  if (run.next_at === undefined) return [];
  const used = run.fires + run.waiting.length + run.across.length;
  const left = Math.min(FIRES_AHEAD, (definition.limit ?? Number.POSITIVE_INFINITY) - used);
  const schedule = scheduleOf(definition, run.anchor);
  return [run.next_at, ...firesBetween(schedule, run.next_at, Number.POSITIVE_INFINITY, left - 1)];
}

export function renderExecution(execution: CronExecutionView): contract.CronExecution {
  const { job_id, state, tick, at, started_at, ended_at } = execution;
  return {
    job_id,
    state,
    trigger: tick === undefined ? 'manual' : 'schedule',
    scheduled_at: formatInstant(tick ?? at),
    triggered_at: formatInstant(at),
    started_at: given(started_at, formatInstant) ?? null,
    completed_at: given(ended_at, formatInstant) ?? null,
  };
}

export const renderSkip = ({ tick, until, at, ...rest }: CronSkip): contract.CronSkipped => ({
  scheduled_at: formatInstant(tick),
  ...defined({ scheduled_until: given(until, formatInstant) }),
  skipped_at: formatInstant(at),
  ...rest,
});
