import type { History } from '../queues/history';
import type { QueueItem } from '../queues/types';

export interface QueueTab {
  queue: QueueItem;
  history: History;
  /** Rises whenever something has happened in the queue. */
  round: number;
  reload: () => void;
}
