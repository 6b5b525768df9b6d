import type { EventType } from './event-data';

/** A job has changed its state. A stream has it beside the event that says why. */
export const STATE_CHANGED = 'job.state_changed';

/** A record, so that the compiler requires every {@link EventType} here. */
const TYPES: Readonly<Record<EventType, true>> = {
  ...{ 'job.enqueued': true, 'job.scheduled': true, 'job.accumulated': true, 'job.started': true },
  ...{ 'job.completed': true, 'job.failed': true, 'job.retrying': true, 'job.discarded': true },
  ...{ 'job.cancelled': true, 'job.expired': true, 'job.snoozed': true, 'job.heartbeat': true, 'job.progress': true },
  ...{ 'job.log': true, 'job.step': true, 'job.run': true, 'job.signal': true, 'job.state_changed': true },
  ...{ 'queue.paused': true, 'queue.resumed': true, 'queue.push_suspended': true, 'queue.push_resumed': true },
  ...{ 'queue.storage_pruned': true, 'queue.dead_letters_evicted': true, 'queue.archive_damaged': true },
  ...{ 'worker.started': true, 'worker.stopped': true, 'worker.quiet': true, 'worker.heartbeat': true },
  ...{ 'workflow.started': true, 'workflow.step_completed': true, 'workflow.completed': true, 'workflow.failed': true },
  ...{ 'cron.triggered': true, 'cron.skipped': true, 'alert.firing': true, 'alert.resolved': true },
  ...{ 'webhook.disabled': true },
};

export const EVENT_TYPES: readonly string[] = Object.keys(TYPES);

/** Names that other servers of the protocol have for the same. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['job.retried', 'job.retrying'],
  ['worker.registered', 'worker.started'],
  ['worker.deregistered', 'worker.stopped'],
  ['worker.stale', 'worker.stopped'],
]);

/** The types that a name stands for: a type, another server's name for one, `job.*`, or `*`. None: unknown. */
export function eventTypesNamed(name: string): readonly string[] {
  if (name === '*') return EVENT_TYPES;
  if (name.endsWith('.*')) return EVENT_TYPES.filter((type) => type.startsWith(name.slice(0, -1)));
  const type = ALIASES.get(name) ?? name;
  return EVENT_TYPES.includes(type) ? [type] : [];
}
