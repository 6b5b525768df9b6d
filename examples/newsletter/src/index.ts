/** A newsletter: a Worker with pages of its own that also holds the queue and runs its jobs. */
import { Hono } from 'hono';
import { createTocsin, type JobsOf } from '../../../src/library';
import { handlers } from './handlers';

export {
  DirectoryObject,
  QueueObject,
  TocsinHandlers,
  UniqueLockObject,
  WorkflowObject,
} from '../../../src/library';

const tocsin = createTocsin<JobsOf<typeof handlers>>({
  handlers,
  queues: { mail: { concurrency: 5 } },
  crons: { digest: { expression: '0 7 * * *', job: { type: 'digest.build', args: [] } } },
});

const app = new Hono();

app.post('/subscribers/:address', async (c) => {
  const job = await tocsin.enqueue('subscription.begin', [c.req.param('address')]);
  return c.json({ id: job.id }, 202);
});

export default tocsin.worker({ fetch: app.fetch });
