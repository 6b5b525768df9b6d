/** The smallest useful handler Worker: two job types, one result, one failure that is worth another try. */
import { defineHandlers, retryIn } from '../../../src/handler';

interface Jobs {
  'greeting.write': [name: string];
  'greeting.post': [name: string, url: string];
}

export default defineHandlers<Jobs>({
  // The return value is the job's result; an error is retried under the job's policy.
  'greeting.write': (job) => {
    const [name] = job.args;
    if (typeof name !== 'string') throw new TypeError('a greeting needs a name');
    return { text: `Hello, ${name}!` };
  },

  // An outside effect: the job's id is the same in every attempt, so the receiver recognises a repetition.
  'greeting.post': async (job, ctx) => {
    const [name, url] = job.args;
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'Idempotency-Key': job.id },
      body: `Hello, ${name}!`,
      signal: ctx.signal,
    });
    if (response.status === 429) throw retryIn('30s', 'the receiver is busy');
    if (!response.ok) throw new Error(`${url} answered ${response.status}`);
    return { status: response.status };
  },
});
