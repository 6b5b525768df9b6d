/** A shop: a Worker that takes orders, asks a person to approve them, and holds the queue that fulfils them. */
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

/** Whoever approves orders decides here. In production, protect this route. */
app.post('/orders/:id/:decision{approve|refuse}', async (c) => {
  await tocsin.client.signal(c.req.param('id'), 'approved', { isApproved: c.req.param('decision') === 'approve' });
  return c.body(null, 204);
});

export default tocsin.worker({ fetch: app.fetch });
