import { definePage } from '../page';
import { askQueues, hearQueues, listQueues, loadQueues, type QueuesAnswer } from './queue-list';

export const queues = definePage<QueuesAnswer>({
  ...{ id: 'queues', title: 'Queues', key: 'q', scope: 'admin:read' },
  load: loadQueues,
  show: ({ items, total }, _, now) => ({
    ...{ facts: [], total, empty: 'No queues yet. A queue is created by its first job.' },
    ...listQueues(items, now),
  }),
  hear: hearQueues,
  ask: askQueues,
});
