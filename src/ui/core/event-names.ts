/** The types of events, as one chooses among them. */
import { EVENT_TYPES, STATE_CHANGED } from '../../job/event-types';

/** Names of each kind: `job` has `job.enqueued` and more, but not the event for each change of state. */
export const EVENT_KINDS: ReadonlyMap<string, readonly string[]> = Map.groupBy(
  EVENT_TYPES.filter((name) => name !== STATE_CHANGED),
  (name) => name.split('.')[0] ?? '',
);

export const isEvent = (event: string, wanted: string): boolean =>
  wanted === '' || (wanted.endsWith('.*') ? event.startsWith(wanted.slice(0, -1)) : event === wanted);
