/** The types of events, and the names by which somebody asks for them. */

/** A job has changed its state. A stream has it beside the event that says why. */
export const STATE_CHANGED = 'job.state_changed';

const TYPES = [
  'job.enqueued',
  'job.scheduled',
  'job.started',
  'job.completed',
  'job.failed',
  'job.retrying',
  'job.discarded',
  'job.cancelled',
  'job.expired',
  'job.snoozed',
  'job.heartbeat',
  'job.progress',
  'job.log',
  'job.state_changed',
  'queue.paused',
  'queue.resumed',
  'queue.push_suspended',
  'queue.push_resumed',
  'queue.storage_pruned',
  'queue.dead_letters_evicted',
  'queue.archive_damaged',
  'worker.started',
  'worker.stopped',
  'worker.quiet',
  'worker.heartbeat',
  'workflow.started',
  'workflow.step_completed',
  'workflow.completed',
  'workflow.failed',
  'cron.triggered',
  'cron.skipped',
  'alert.firing',
  'alert.resolved',
  'webhook.disabled',
] as const;

/** The type of an event. */
export type EventType = (typeof TYPES)[number];

export const EVENT_TYPES: readonly string[] = TYPES;

/** Names that other servers of the protocol have for the same. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['job.retried', 'job.retrying'],
  ['worker.registered', 'worker.started'],
  ['worker.deregistered', 'worker.stopped'],
  ['worker.stale', 'worker.stopped'],
]);

/**
 * The types that a name stands for: a type, another server's name for one, `job.*` for a kind, or `*`. None: it is
 * unknown.
 */
export function eventTypesNamed(name: string): readonly string[] {
  if (name === '*') return EVENT_TYPES;
  if (name.endsWith('.*')) return EVENT_TYPES.filter((type) => type.startsWith(name.slice(0, -1)));
  const type = ALIASES.get(name) ?? name;
  return EVENT_TYPES.includes(type) ? [type] : [];
}
