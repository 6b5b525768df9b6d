/** What is on record of a job, as the events that the stream of the job had when they happened. */
import { boundedData, type QueueEvent } from '../../durable/event-log';
import type { EventChange, EventType } from '../../job/event-data';
import { historyOfJob } from '../../job/history';
import { mintId, routeOf } from '../../job/ids';
import { parseSteps } from '../../job/steps';
import { eventOfStep, momentOf } from '../../job/timeline';
import type { JobStory } from '../../rpc/queue';

/** Most events of a record, the newest. */
const MOST = 2_000;

/** Names what happened to a job, in its record and in its live events. */
export function keyOf({ type, time, data: { attempt, name, is } }: Pick<QueueEvent, 'type' | 'time' | 'data'>): string {
  const what = type.slice('job.'.length);
  const of = /^job\.(started|failed|retrying|completed)$/.test(type)
    ? ['attempt', attempt, what]
    : [what === 'scheduled' ? 'enqueued' : what, name, is].filter((part) => part !== undefined);
  return [...of, time].join(':');
}

/** Everything on record, oldest first. @param since epoch ms */
export function eventsOnRecord({ job: { record }, progress, steps }: JobStory, since = 0): QueueEvent[] {
  const { id, queue, type: job_type, attempt, state, history } = record;
  const events: QueueEvent[] = [];
  const add = (type: EventType, time: number, data: Record<string, unknown>, change?: EventChange) => {
    const members = boundedData({ job_type, attempt, ...data });
    events.push({ id: '', type, queue, subject: id, time, data: members, ...(change && { change }) });
  };
  const failures = (history.errors ?? []).values();
  const end: EventChange = { from: attempt > 0 ? 'active' : 'available', to: state };
  for (const { event_type, at, data, actor } of historyOfJob(record)) {
    const { attempt: of } = data;
    switch (event_type) {
      case 'job.created':
        add('job.enqueued', at, { attempt: 0 });
        break;
      case 'job.attempt_started': {
        const worker = actor.type === 'worker' && { worker_id: actor.id };
        add('job.started', at, { attempt: of, ...worker }, { from: 'available', to: 'active' });
        break;
      }
      case 'job.attempt_failed': {
        const { code, type, message, duration_ms, backoff_ms } = failures.next().value ?? {};
        const failed = { attempt: of, duration_ms, error: { code, type, message } };
        // The end of an earlier life does not end the stream.
        if (backoff_ms != null || at !== history.discarded_at) add('job.failed', at, failed);
        if (backoff_ms != null) {
          const run_at = at + backoff_ms;
          add('job.retrying', at, { attempt: of, backoff_ms, run_at }, { from: 'active', to: 'retryable' });
        }
        break;
      }
      case 'job.snoozed': {
        const { until: scheduled_at, signal } = history.snoozed ?? {};
        const change: EventChange | undefined = state === 'active' ? undefined : { from: 'active', to: state };
        add('job.snoozed', at, { attempt: attempt + 1, scheduled_at, signal }, change);
        break;
      }
      case 'job.attempt_completed': {
        const duration_ms = history.started_at === undefined ? null : at - history.started_at;
        add('job.completed', at, { attempt: of, duration_ms, result: null }, { from: 'active', to: 'completed' });
        break;
      }
      case 'job.cancelled':
        add('job.cancelled', at, { undo_job_id: history.undo_job }, end);
        break;
      case 'job.discarded': {
        const { error: last, reason = 'discarded', dead_letter = false } = history;
        const ran = last?.occurred_at === at ? last : undefined;
        const { code, type, message } = ran ?? { code: reason, type: `tocsin.${reason}`, message: 'It was discarded.' };
        const failed = {
          duration_ms: ran?.duration_ms ?? null,
          error: { code, type, message },
          reason,
          undo_job_id: history.undo_job,
        };
        if (reason === 'expired') add('job.expired', at, failed, end);
        else add('job.discarded', at, { ...failed, dead_letter }, end);
        break;
      }
      case 'job.state_changed':
        if (data.from === null) add('job.enqueued', at, { attempt: 0, redrive: true });
        break;
    }
  }
  if (progress?.at !== undefined && state !== 'completed') {
    const { progress: part = 0, message, at } = progress;
    add('job.progress', at, { progress: Math.round(part * 10_000) / 100, message });
  }
  for (const [name, step] of Object.entries(parseSteps(steps))) {
    const at = momentOf(step);
    const { type, data } = eventOfStep(name, step);
    if (at !== undefined) add(type, at, data);
  }
  // Sorting keeps the order of what happened in the same millisecond.
  events.sort((a, b) => a.time - b.time);
  const latest = events.filter(({ time }) => time >= since).slice(-MOST);
  return latest.map((event, index) => ({ ...event, id: `evt_${mintId(event.time, routeOf(id), 0)}.h${index}` }));
}
