/** The types of events, and which of them a request names. */
import { invalidRequest } from '../../job/errors';
import { quote } from '../../job/text';
import type { AppContext } from '../context';
import { listParam } from '../request/query';

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
  ...['heartbeat', 'progress', 'state_changed'],
]
  .map((name) => `job.${name}`)
  .concat(
    ['paused', 'resumed', 'push_suspended', 'push_resumed'].map((name) => `queue.${name}`),
    ['storage_pruned', 'dead_letters_evicted'].map((name) => `queue.${name}`),
    ['started', 'stopped', 'quiet', 'heartbeat'].map((name) => `worker.${name}`),
    ['started', 'step_completed', 'completed', 'failed'].map((name) => `workflow.${name}`),
    ['triggered', 'skipped'].map((name) => `cron.${name}`),
  );

/** Names that other servers of the protocol have for the same. */
const ALIASES: Readonly<Record<string, string>> = {
  'job.retried': 'job.retrying',
  'worker.registered': 'worker.started',
  'worker.deregistered': 'worker.stopped',
  'worker.stale': 'worker.stopped',
};

/** The types that these parameters name, each once; `job.*` names all of a kind. @throws {ApiError} 400 */
export function typesParam(c: AppContext, ...names: string[]): string[] | undefined {
  return readTypes(listParam(c, ...names), names[0] ?? 'types');
}

/** As {@link typesParam}, of a list. */
export function readTypes(given: readonly string[] | undefined, field: string): string[] | undefined {
  if (given === undefined) return undefined;
  const types = given.flatMap((name) => {
    const known = matching(ALIASES[name] ?? name);
    if (known.length > 0) return known;
    throw invalidRequest(
      field,
      `${field} knows no "${quote(name)}"; use ${EVENT_TYPES.join(', ')}, or job.* for a kind.`,
    );
  });
  return [...new Set(types)];
}

function matching(name: string): readonly string[] {
  if (name === '*') return EVENT_TYPES;
  if (name.endsWith('.*')) return EVENT_TYPES.filter((type) => type.startsWith(name.slice(0, -1)));
  return EVENT_TYPES.includes(name) ? [name] : [];
}

/** What a queue must be asked for, so that a stream can have these types: a change of state comes with events of many types. */
export function typesToFollow(types: readonly string[] | undefined): readonly string[] | undefined {
  return types?.includes(STATE_CHANGED) ? undefined : types;
}
