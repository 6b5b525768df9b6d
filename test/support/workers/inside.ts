/** A Worker that has other work and holds the queue as well, with handlers of its own. */
import { Hono } from 'hono';
import { createTocsin, defineHandlers, Tocsin } from '../../../src/library';

export { DirectoryObject, QueueObject, TocsinHandlers, UniqueLockObject, WorkflowObject } from '../../../src/library';
export { Tocsin };

const calls: number[] = [];

const handlers = defineHandlers({
  'greeting.write': { handler: (job) => `Hello, ${job.args[0]}!`, defaults: { tags: ['greeting'] } },
  'greeting.fail': () => {
    throw new Error('no greeting');
  },
});

const counted = {
  ...handlers,
  async fetch(...given: Parameters<typeof handlers.fetch>) {
    if (given[0].method === 'POST') calls.push(Date.now());
    return await handlers.fetch(...given);
  },
};

const tocsin = createTocsin({
  handlers: counted,
  delivery: { batchSize: 50 },
  queues: { mail: { concurrency: 60 } },
  limits: { stripe: { concurrency: 2 } },
  crons: {
    nightly: { expression: '@daily', job: { type: 'greeting.write', args: ['night'], options: { queue: 'mail' } } },
  },
  webhooks: { ops: { url: 'https://ops.example/hook', events: ['alert.*'], format: 'slack' } },
  alerts: { 'mail is late': { queue: 'mail', metric: 'oldest_age', above: '1h', webhook: 'ops' } },
});

const app = new Hono();
app.get('/hello/:name', async (c) => c.json(await tocsin.enqueue('greeting.write', [c.req.param('name')])));
app.get('/token/:id', async (c) => c.text(await tocsin.token({ job: c.req.param('id'), read: true })));
app.get('/calls', (c) => c.json(calls.splice(0).length));
// Runs one job of a queue here, with the library that runs workers or without it.
app.get('/run/:queue/:how', async (c) => {
  const { queue, how } = c.req.param();
  if (how === 'library') await import('../../../src/client');
  const stop = new AbortController();
  const worker = tocsin.client.worker('here', { queues: [queue] });
  await worker.run({ '*': () => stop.abort() }, { signal: stop.signal, waitMs: 0, socket: false });
  return c.body(null, 204);
});
app.onError((error, c) => c.text(error.message, 500));
app.route('/tocsin', tocsin.app);

export default tocsin.worker({ fetch: app.fetch });
