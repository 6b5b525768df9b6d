/** Handlers of the tests of `tocsin serve`: a job asks the test, which answers when it likes. */
import { defineHandlers } from '../../../../src/handler';

export default defineHandlers<{ 'test.ask': [url: string] }, { GREETING?: string; API_KEYS?: string }>({
  'test.ask': async (job, { env }) => {
    console.warn(`asking\nfor ${job.id}`);
    const response = await fetch(String(job.args[0]));
    return { said: await response.text(), greeting: env.GREETING ?? null, keys: env.API_KEYS ?? null };
  },
});
