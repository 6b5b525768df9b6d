import { api, type Resource } from '../../core/api';
import { type ListUpdates, useListUpdates } from '../../core/list-updates';
import { segment } from '../../core/router';
import type { QueueItem, QueueList } from './types';

export interface QueueUpdates extends Pick<ListUpdates<QueueItem, QueueItem>, 'onChange' | 'onEvents' | 'onGap'> {
  /** Would a queue of this name that is not in the list stand there? */
  belongs: (name: string) => boolean;
}

export function useQueueUpdates(queues: Resource<QueueList>, { belongs, ...options }: QueueUpdates) {
  const { changed } = useListUpdates<QueueItem, QueueList, QueueItem>(queues, {
    ...options,
    keyOf: ({ name }) => name,
    about: ({ data }) => (typeof data.queue === 'string' ? data.queue : undefined),
    ask: (name) => api.get<QueueItem>(`admin/queues/${segment(name)}`, { include: 'recent' }),
    isNew: (names) => names.some(belongs),
  });
  return changed;
}
