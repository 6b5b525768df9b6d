/** The jobs of the newsletter, and what is done for each. The provider of mail is only simulated. */
import { defineHandlers, fail, type Job } from '../../../src/library';

export interface Mail {
  to: string;
  template: 'welcome' | 'confirm' | 'digest';
}

export const handlers = defineHandlers({
  'mail.send': {
    retry: { maxAttempts: 3, initialInterval: '30s', backoffStrategy: 'constant', jitter: false },
    handler: (job: Job<[mail: Mail]>, ctx) => {
      const [{ to, template }] = job.args;
      if (to.endsWith('@gone.example')) throw fail(`${to} bounces`);
      if (to.endsWith('@busy.example') && ctx.attempt < 3) throw new Error('the mail server is busy');
      ctx.log.info('sent', { to, template });
      return { accepted: to };
    },
  },

  /** Asks for a confirmation, waits for it, and welcomes whoever gave it. */
  'subscription.begin': async (job: Job<[address: string]>, ctx) => {
    const [to] = job.args;
    await ctx.step('ask', async () => {
      await ctx.enqueue('mail.send', [{ to, template: 'confirm' }], { queue: 'mail' });
    });
    await ctx.waitFor('confirmed', { timeout: '2d' });
    await ctx.step('welcome', async () => {
      await ctx.enqueue('mail.send', [{ to, template: 'welcome' }], { queue: 'mail' });
    });
    return { subscribed: to };
  },

  'digest.build': async (_job, ctx) => {
    await ctx.enqueue('mail.send', [{ to: 'readers@list.example', template: 'digest' }], { queue: 'mail' });
  },
});
