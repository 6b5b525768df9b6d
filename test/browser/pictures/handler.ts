/** The handlers of the story that the pictures tell: a shop whose card processor goes down for a while. */
import { defineHandlers } from '../../../src/handler';

/** The card processor, as this Worker sees it. */
let isDown = false;

class CardProcessorUnavailable extends Error {
  override name = 'CardProcessorUnavailable';
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export default defineHandlers({
  'story.processor': (job) => {
    isDown = job.args[0] === 'down';
  },
  'payment.capture': async (job, ctx) => {
    const [{ order, cents }] = job.args as [{ order: string; cents: number }];
    ctx.log.info(`capturing ${(cents / 100).toFixed(2)} EUR for ${order}`);
    await pause(20 + (cents % 180));
    if (isDown) {
      ctx.log.warn('api.cards.example answered 503');
      throw new CardProcessorUnavailable(`POST https://api.cards.example/v1/charges/${order} answered 503`);
    }
    return { charge: `ch_${order.slice(-4)}`, cents };
  },
  'email.send': async (job) => {
    const [{ to }] = job.args as [{ to: string }];
    await pause(5 + (to.length % 40));
    return { accepted: to };
  },
  'report.build': async (_, ctx) => {
    for (let done = 1; done <= 8; done++) {
      await ctx.progress(done / 10, `table ${done} of 10`);
      await pause(400);
    }
    await pause(590_000);
    return { pages: 41 };
  },
});
