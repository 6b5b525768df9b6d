/** Following the live feeds of objects: the requests of followers, the messages to them, and their sockets. */
import type { Env } from '../config';
import type { FollowRequest } from '../durable/feed-messages';
import { askToFollow } from '../durable/followed';
import type { Outcome } from '../job/errors';
import type { JobRecord } from '../job/record';
import { directoryStub, queueStub } from './stubs';

/** What the first message tells of a job that is followed. */
export interface FollowedJob extends Pick<JobRecord, 'id' | 'type' | 'state' | 'attempt'> {
  /** Epoch ms; absent: it has not ended. */
  ended_at?: number;
}

/** The directory tells its followers by this notice that a queue is coming into being. */
export const QUEUE_CREATED = 'queue.created';

/** Follows one queue, or one job in it. 404 when there is no such queue or job. */
export const followQueue = (env: Env, name: string, wanted: FollowRequest): Promise<Outcome<WebSocket>> =>
  askToFollow(queueStub(env, name), wanted);

/** Follows the workers, and which queues come into being. */
export const followDirectory = (env: Env, wanted: FollowRequest): Promise<Outcome<WebSocket>> =>
  askToFollow(directoryStub(env), wanted);
