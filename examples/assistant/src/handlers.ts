/** A question, from the search for sources to an answer that a person has approved. Its words are seen as they come. */
import { defineHandlers, fail, type HandlerContext, type Job } from '../../../src/library';
import { answer } from './model';

/** Tries of the search, seconds apart. */
const TRIES = { max_attempts: 3, initial_interval: '1s', jitter: false } as const;

export const handlers = defineHandlers({
  'question.answer': async (job: Job<[question: string]>, ctx: HandlerContext) => {
    const [question] = job.args;
    const { sources } = await ctx.run<{ sources: string[] }>('search', 'source.search', [question], { retry: TRIES });

    // A step on record is not executed again, so its words stay. If it fails halfway, readers get `reset`.
    const text = await ctx.step('answer', async () => {
      const out = ctx.stream('answer');
      let whole = '';
      for await (const word of answer(question, sources)) {
        whole += word;
        await out.write(word);
      }
      return whole;
    });

    const choices = ['publish', 'discard'];
    const url = await ctx.signalUrl('approved', { title: 'Publish this answer?', choices, expires: '1d' });
    await ctx.step('ask', () => ctx.stream('approval').write(url));
    const { choice } = await ctx.waitFor<{ choice: string }>('approved', { timeout: '1d' });
    if (choice !== 'publish') throw fail('The answer was discarded.');
    return { text };
  },

  /** The index is busy at first: the second try finds something. */
  'source.search': (job: Job<[question: string]>) => {
    if (job.attempt === 1) throw new Error('The index is busy.');
    return { sources: ['the manual', 'an old letter'] };
  },
});
