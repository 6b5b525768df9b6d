/** A shop: a Worker that takes orders, and holds the queue that has them approved and fulfils them. */
import { Hono } from 'hono';
import { createTocsin, type JobsOf } from '../../../src/library';
import { handlers, type Order } from './handlers';

export {
  DirectoryObject,
  QueueObject,
  TocsinHandlers,
  UniqueLockObject,
  WorkflowObject,
} from '../../../src/library';

const tocsin = createTocsin<JobsOf<typeof handlers>>({ handlers });

const app = new Hono();

app.post('/orders', async (c) => {
  const job = await tocsin.enqueue('order.fulfil', [await c.req.json<Order>()]);
  return c.json({ id: job.id }, 202);
});

export default tocsin.worker({ fetch: app.fetch });
