import type { Moment } from '../producer/job';
import { listOf, member } from './answers';
import { type Following, type FollowOptions, type FollowQuery, follow, type QueueEvent } from './follow';
import { byCursor, type ListOptions, parametersFrom } from './pages';
import { checked, type Requests } from './requests';

export interface EventQuery {
  queue?: string | readonly string[];
  types?: readonly string[];
  /** Events after the one with this id. */
  after?: string | undefined;
  since?: Moment;
}

/** Recent events, as `tocsin.events`. */
export interface Events {
  /**
   * Events as they happen, until the job that is followed ends, or forever; leave the loop to stop. Lost connections
   * are made again after the last event. `system.gap`: events may be missing; `system.events_dropped`: more than a
   * hundred came in a second.
   * @throws {NotFoundError} when there is no such queue or job
   * @example
   * for await (const event of tocsin.events.follow({ queue: 'mail', types: ['job.discarded'] })) {
   *   console.log(event.data.job_id, event.data.error);
   * }
   */
  follow(query?: FollowQuery, options?: FollowOptions): AsyncGenerator<QueueEvent>;
  /**
   * Every event in the feed that matches, the oldest first, up to now. To continue later, ask for those after the last.
   * @example
   * for await (const event of tocsin.events.list({ queue: 'mail', types: ['job.discarded'], after: last })) {
   *   last = event.id;
   * }
   */
  list(query?: EventQuery, options?: ListOptions): AsyncGenerator<QueueEvent>;
  /** The id of the latest event, to follow only later ones from there; undefined when the feed is empty. */
  latest(): Promise<string | undefined>;
}

export function createEvents({ safely }: Requests, following: Following): Events {
  return {
    follow: (query = {}, options = {}) => follow(following, query, options),
    async *list({ after, ...chosen } = {}, options = {}) {
      const { queue: queues, ...others } = checked(chosen, { queue: true, types: true, since: true });
      // Each page follows the last event of the page before.
      const conditions = () => parametersFrom({ queues, ...others, cursor: after });
      yield* byCursor<QueueEvent>(safely, { path: '/events', conditions, member: 'events' }, options);
    },
    latest: async () => {
      const answer = await safely('GET', '/events?page=1&per_page=1');
      const id = member(listOf<QueueEvent>(answer, 'events', 'the events')[0], 'id');
      return typeof id === 'string' ? id : undefined;
    },
  };
}
