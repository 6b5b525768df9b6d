/** The live feed through the client. It is kept in memory: a feed, not a record. */

import { type Moment, momentText } from '../producer/job';
import { listOf, member } from './answers';
import { byCursor, type ListOptions, parametersFrom } from './pages';
import type { Requests } from './requests';

/** Something that happened. */
export interface QueueEvent {
  specversion: string;
  /** Names its place in the feed. */
  id: string;
  /** `job.completed`, `queue.paused`, `cron.triggered`, … */
  type: string;
  source: string;
  /** The job, queue, worker, workflow or schedule it is about. */
  subject: string;
  /** RFC 3339. */
  time: string;
  /** What is known of it, in the wire's names. */
  data: Record<string, unknown>;
}

/** Which events are meant. */
export interface EventQuery {
  /** Absent: all, and those of workers, which belong to no queue. */
  queue?: string | readonly string[];
  types?: readonly string[];
  /** Events after the one with this id. */
  after?: string | undefined;
  since?: Moment;
}

/** Recent events, as `tocsin.events`. */
export class Events {
  constructor(private readonly requests: Requests) {}

  /**
   * Every event in the feed that matches, the oldest first, up to now. To go on later, ask for those after the last.
   * @example
   * for await (const event of tocsin.events.list({ queue: 'mail', types: ['job.discarded'], after: last })) {
   *   last = event.id;
   * }
   */
  async *list(query: EventQuery = {}, options: ListOptions = {}): AsyncGenerator<QueueEvent> {
    const conditions = parametersFrom({
      queues: query.queue,
      types: query.types,
      after: query.after,
      since: momentText(query.since, 'since'),
    });
    // Each page follows the last event of the page before.
    if (query.after !== undefined) {
      conditions.delete('after');
      conditions.set('cursor', query.after);
    }
    yield* byCursor<QueueEvent>(this.requests.safely, { path: '/events', conditions, member: 'events' }, options);
  }

  /** The id of the latest event, to follow only later ones from there; undefined when the feed is empty. */
  async latest(): Promise<string | undefined> {
    const answer = await this.requests.safely('GET', '/events?page=1&per_page=1');
    const id = member(listOf<QueueEvent>(answer, 'events', 'the events')[0], 'id');
    return typeof id === 'string' ? id : undefined;
  }
}
