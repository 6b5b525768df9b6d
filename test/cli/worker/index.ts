/** A Worker with the queue and handlers of its own, and settings in code, for the tests of the program. */
import { createTocsin, defineHandlers, SignalTimeoutError, UnrecoverableError } from '../../../src/library';

export {
  DirectoryObject,
  QueueObject,
  Tocsin,
  TocsinHandlers,
  UniqueLockObject,
  WorkflowObject,
} from '../../../src/library';

const handlers = defineHandlers({
  'greeting.write': (job) => `Hello, ${job.args[0]}!`,
  'greeting.all': async (_, ctx) => {
    for (const name of ['Ada', 'Ben']) await ctx.enqueue('greeting.write', [name]);
  },
  'greeting.refused': () => {
    throw new UnrecoverableError('Nobody is greeted.');
  },
  'order.fulfil': async (job, ctx) => {
    const [order] = job.args;
    ctx.log.info('begun', { orderNumber: order });
    await ctx.step('charge', () => ({ order, receiptNumber: 'r1' }));
    await ctx.progress(0.5, 'paid');
    await ctx.waitFor('approved by boss');
    await ctx.sleep('delivery', '3d');
  },
  'order.nested': async (job, ctx) => {
    const [depth = 0] = job.args as [number?];
    if (depth > 0) await ctx.run('below', 'order.nested', [depth - 1], { timeout: '1h' });
    else await ctx.waitFor('packed');
  },
  'order.counted': async (_, ctx) => {
    for (let n = 1; n <= 25; n++) await ctx.step(`count ${n}`, () => ({ n, text: n === 25 ? 'x'.repeat(1_000) : '' }));
    await ctx.waitFor('counted');
  },
  'order.hurried': async (_, ctx) => {
    await ctx.waitFor('never', { timeout: 1 }).catch((error: unknown) => {
      if (!(error instanceof SignalTimeoutError)) throw error;
    });
  },
});

const tocsin = createTocsin({
  handlers,
  queues: { mail: { concurrency: 20 } },
  limits: { stripe: { concurrency: 2 } },
  crons: { nightly: { expression: '@yearly', job: { type: 'greeting.write', args: ['night'] } } },
});

export default tocsin.worker({ fetch: () => new Response('own') });
