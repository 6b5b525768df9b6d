/** All queues: what waits in each, how fast it goes, whether it is stopped. */
import { definePage } from '../page';
import { askQueues, hearQueues, loadQueues, QUEUE_COLUMNS, type QueuesAnswer, queueRow } from './queue-list';

export const queues = definePage<QueuesAnswer>({
  id: 'queues',
  title: 'Queues',
  key: 'q',
  scope: 'admin:read',
  load: loadQueues,
  show: ({ items, total }, _, now) => ({
    facts: [],
    columns: QUEUE_COLUMNS,
    rows: items.map((item) => queueRow(item, now)),
    total,
    empty: 'No queues yet. A queue is created by its first job.',
  }),
  hear: hearQueues,
  ask: askQueues,
});
