import type { Page } from '../../../contract/common';
import type { InspectedQueue, QueueStanding } from '../../../contract/queues';

export type QueueItem = QueueStanding &
  Required<Pick<QueueStanding, 'recent'>> &
  Partial<Pick<InspectedQueue, 'configuration'>>;

export type QueueList = Pick<Page<QueueItem>, 'items' | 'total'>;
