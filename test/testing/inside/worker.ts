/** A Worker that holds the queue, with handlers that behave as a test needs it. */
import { batched, createTocsin, defineHandlers, type Job, retryIn } from '../../../src/library';

export { DirectoryObject, QueueObject, TocsinHandlers, UniqueLockObject, WorkflowObject } from '../../../src/library';

export const handlers = defineHandlers(
  {
    'note.write': (job: Job<[text: string]>) => ({ text: job.args[0], at: Date.now() }),
    'note.fail': (_job: Job<[text: string]>) => {
      throw retryIn('90s', 'no paper');
    },
    /** Takes a while of real time, in which the clock of the test stands still. */
    'note.slow': async (job: Job<[ms: number]>) => {
      await scheduler.wait(job.args[0]);
      return Date.now();
    },
    'note.bundle': batched({ size: 3, wait: '1m' }, (jobs: readonly Job<[text: string]>[]) =>
      jobs.map(({ args: [text] }) => ({ text, together: jobs.length })),
    ),
    'note.sum': async (job: Job<[texts: string[]]>, ctx) => {
      const jobs = job.args[0].map((text) => ({ type: 'note.write', args: [text], options: { delay: '1h' as const } }));
      const notes = await ctx.runAll<{ text: string }>('notes', jobs);
      const slow = await ctx.run<number>('slow', 'note.slow', [1], { queue: 'narrow' });
      return { texts: notes.map(({ result }) => result?.text), at: slow };
    },
    'chain.next': async (job: Job<[left: number, delay: number]>) => {
      const [left, delay] = job.args;
      if (left > 0) await tocsin.enqueue('chain.next', [left - 1, delay], { delay });
    },
  },
  { log: () => undefined },
);

const tocsin = createTocsin({
  handlers,
  queues: { narrow: { concurrency: 1 } },
  webhooks: { operators: { url: 'https://operators.example/hook', events: ['*'] } },
  alerts: { deep: { metric: 'depth', above: 1, webhook: 'operators' } },
  crons: {
    daily: { expression: '0 7 * * *', job: { type: 'note.write', args: ['daily'], options: { queue: 'cron' } } },
  },
});

export default tocsin.worker({
  fetch: async () => Response.json(await tocsin.enqueue('note.write', ['by the route'])),
});
