/** The handlers of the shop. They only simulate the providers. */
import { deadLetter, defineHandlers } from '../../../src/handler';
import type { ShopJobs } from './jobs';

export default defineHandlers<ShopJobs>({
  'order.check': (job) => {
    const [order] = job.args;
    if (!(order.cents > 0) || order.items.length === 0)
      throw new TypeError(`order ${order.number} has nothing to pay for`);
    return { number: order.number, items: order.items.length };
  },

  'payment.charge': (job) => {
    const [charge] = job.args;
    // A new card is in the job's meta, because its arguments never change.
    const card = typeof job.meta.card === 'string' ? job.meta.card : charge.card;
    if (card.startsWith('expired')) throw deadLetter(`card ${card} was declined`);
    return { receipt: `${charge.number}/${job.id}`, cents: charge.cents };
  },

  'stock.reserve': (job) => ({ reserved: job.args[0].items }),

  'mail.send': (job) => {
    const [mail] = job.args;
    // In a workflow: the results of the steps before.
    return { to: mail.to, template: mail.template, about: job.parentResults ?? [] };
  },

  'catalogue.index': () => ({ indexed: true }),

  'report.build': (job) => ({ of: job.args[0].of, day: job.meta.cron_scheduled_at ?? null }),
});
