/** The types of events, and the names by which somebody asks for them. */

/** A job has changed its state. A stream has it beside the event that says why. */
export const STATE_CHANGED = 'job.state_changed';

export const EVENT_TYPES: readonly string[] = [
  ...[
    'enqueued',
    'scheduled',
    'started',
    'completed',
    'failed',
    'retrying',
    'discarded',
    'cancelled',
    'expired',
    'snoozed',
  ],
  ...['heartbeat', 'progress', 'log', 'state_changed'],
]
  .map((name) => `job.${name}`)
  .concat(
    ['paused', 'resumed', 'push_suspended', 'push_resumed'].map((name) => `queue.${name}`),
    ['storage_pruned', 'dead_letters_evicted'].map((name) => `queue.${name}`),
    ['started', 'stopped', 'quiet', 'heartbeat'].map((name) => `worker.${name}`),
    ['started', 'step_completed', 'completed', 'failed'].map((name) => `workflow.${name}`),
    ['triggered', 'skipped'].map((name) => `cron.${name}`),
    ['firing', 'resolved'].map((name) => `alert.${name}`),
    ['webhook.disabled'],
  );

/** Names that other servers of the protocol have for the same. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['job.retried', 'job.retrying'],
  ['worker.registered', 'worker.started'],
  ['worker.deregistered', 'worker.stopped'],
  ['worker.stale', 'worker.stopped'],
]);

/** The types that a name stands for: a type, another server's name for one, `job.*` for a kind, or `*`. None: it is unknown. */
export function eventTypesNamed(name: string): readonly string[] {
  if (name === '*') return EVENT_TYPES;
  if (name.endsWith('.*')) return EVENT_TYPES.filter((type) => type.startsWith(name.slice(0, -1)));
  const type = ALIASES.get(name) ?? name;
  return EVENT_TYPES.includes(type) ? [type] : [];
}
