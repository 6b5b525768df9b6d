/** An order from its payment to its shipping. If it does not complete, what it has done is undone. */
import { defineHandlers, fail, type HandlerContext, type Job, type UndoContext } from '../../../src/library';
import { charge, mail, refund, release, reserve } from './shop';

export interface Order {
  number: string;
  cents: number;
  items: string[];
}

/** Tries of calls to the bank and the warehouse, seconds apart. */
const TRIES = { maxAttempts: 3, initialInterval: '10s', jitter: false } as const;

export const handlers = defineHandlers({
  'order.fulfil': {
    handler: async (job: Job<[order: Order]>, ctx: HandlerContext) => {
      const [order] = job.args;
      const { receipt } = await ctx.step('charge', () => charge(`${job.id}:charge`, order.cents), { retry: TRIES });
      for (const [at, item] of order.items.entries()) {
        await ctx.step(`reserve-${at}`, () => reserve(`${job.id}:reserve-${at}`, item), { retry: TRIES });
      }
      const url = await ctx.signalUrl('approved', {
        title: `Ship order ${order.number}?`,
        choices: ['ship', 'refuse'],
        expires: '3d',
      });
      await ctx.step('ask', () => ctx.enqueue('approval.mail', [order.number, url]));
      const { choice } = await ctx.waitFor<{ choice: string }>('approved', { timeout: '3d' });
      if (choice !== 'ship') throw fail(`order ${order.number} was refused`);
      await ctx.step('ship', () => ctx.enqueue('parcel.send', [order.number]));
      return { receipt };
    },

    // By the names of steps. Keys are those of the job that is undone.
    undo: {
      charge: (_, { job }) => refund(`${job.id}:charge`),
      'reserve-*': (reserved: { place: number } | undefined, { job, step, log }: UndoContext) => {
        release(`${job.id}:${step}`);
        log.info('released', { step, ...(reserved && { place: reserved.place }) });
      },
    },
  },

  'approval.mail': (job: Job<[number: string, url: string]>) => {
    const [number, url] = job.args;
    mail(number, url);
  },

  'parcel.send': (job: Job<[number: string]>) => ({ sent: job.args[0] }),
});
