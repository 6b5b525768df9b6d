import type { InspectedQueue, QueueStanding } from '../../../contract/queues';

export type QueueItem = QueueStanding &
  Required<Pick<QueueStanding, 'recent'>> &
  Partial<Pick<InspectedQueue, 'configuration'>>;

export interface QueueList {
  items: readonly QueueItem[];
  total: number;
}
