import type { InspectedQueue, QueueStanding } from '../../../contract/queues';

/** A queue as it is asked for: with its last half hour. */
export type QueueItem = QueueStanding &
  Required<Pick<QueueStanding, 'recent'>> &
  Partial<Pick<InspectedQueue, 'configuration'>>;

export interface QueueList {
  items: readonly QueueItem[];
  total: number;
}
