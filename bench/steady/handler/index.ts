/** The handler of the steady load, bound to the queue or in its Worker: it works 1 ms, and counts how long jobs waited. */
import { defineHandlers } from '../../../src/handler';
import { Histogram } from '../histogram.mjs';

let waited = new Histogram();

export const handlers = defineHandlers({
  'steady.work': async (job) => {
    waited.record(Date.now() - (job.args[0] as number));
    await scheduler.wait(1);
  },
  /** The counts since it was last asked. */
  'steady.starts': () => {
    const { counts, max } = waited.toJSON();
    waited = new Histogram();
    return { counts, max };
  },
});

export default handlers;
