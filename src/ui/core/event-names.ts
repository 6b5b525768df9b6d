/** The types of events, as one chooses among them. The compiler says when one lacks. */
import type { EventType } from '../../job/event-data';

/** A job has changed its state: the twin of an event that says why, and no event of its own. */
export const STATE_CHANGED: EventType = 'job.state_changed';

const NAMES: Readonly<Record<Exclude<EventType, 'job.state_changed'>, true>> = {
  'job.enqueued': true,
  'job.scheduled': true,
  'job.accumulated': true,
  'job.started': true,
  'job.completed': true,
  'job.failed': true,
  'job.retrying': true,
  'job.discarded': true,
  'job.cancelled': true,
  'job.expired': true,
  'job.snoozed': true,
  'job.heartbeat': true,
  'job.progress': true,
  'job.log': true,
  'queue.paused': true,
  'queue.resumed': true,
  'queue.push_suspended': true,
  'queue.push_resumed': true,
  'queue.storage_pruned': true,
  'queue.dead_letters_evicted': true,
  'queue.archive_damaged': true,
  'worker.started': true,
  'worker.stopped': true,
  'worker.quiet': true,
  'worker.heartbeat': true,
  'workflow.started': true,
  'workflow.step_completed': true,
  'workflow.completed': true,
  'workflow.failed': true,
  'cron.triggered': true,
  'cron.skipped': true,
  'alert.firing': true,
  'alert.resolved': true,
  'webhook.disabled': true,
};

/** Names of each kind: `job` has `job.enqueued` and more. */
export const EVENT_KINDS: ReadonlyMap<string, readonly string[]> = Map.groupBy(
  Object.keys(NAMES),
  (name) => name.split('.')[0] ?? '',
);

/** Is an event of a type, or of a kind such as `job.*`? Empty: of any. */
export function isEvent(event: string, wanted: string): boolean {
  return wanted === '' || (wanted.endsWith('.*') ? event.startsWith(wanted.slice(0, -1)) : event === wanted);
}
