/** An assistant: a page, and the queue whose jobs answer what people ask there. */
import { Hono } from 'hono';
import { createTocsin, type JobsOf } from '../../../src/library';
import { handlers } from './handlers';
import { page } from './page';

export {
  DirectoryObject,
  QueueObject,
  TocsinHandlers,
  UniqueLockObject,
  WorkflowObject,
} from '../../../src/library';

const tocsin = createTocsin<JobsOf<typeof handlers>>({ handlers });

const app = new Hono();

app.get('/', (c) => c.html(page));

/** The page gets a token that reads this one job, and nothing else. */
app.post('/questions', async (c) => {
  const { question } = await c.req.json<{ question: string }>();
  const { id } = await tocsin.enqueue('question.answer', [question]);
  return c.json({ id, token: await tocsin.token({ job: id, read: true, expiresIn: '1h' }) }, 202);
});

export default tocsin.worker({ fetch: app.fetch });
