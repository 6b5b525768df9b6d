/** The handler on its own. */
import { expect, it } from 'vitest';
import { runToEnd } from '../../../src/testing';
import { handlers } from '../src/handlers';

const QUESTION = 'Is it late?';
const runs = { search: { result: { sources: ['a book'] } } };

it('streams the words that it returns in the end', async () => {
  const job = await runToEnd(handlers, 'question.answer', [QUESTION], {
    runs,
    signals: { approved: { choice: 'publish' } },
  });
  expect(job.status).toBe('completed');
  const { text } = job.result as { text: string };
  expect(text).toContain('I have read a book.');
  expect(job.streams.answer?.join('')).toBe(text);
});

it('fails for good when a person discards the answer', async () => {
  const job = await runToEnd(handlers, 'question.answer', [QUESTION], {
    runs,
    signals: { approved: { choice: 'discard' } },
  });
  expect(job.error).toMatchObject({ message: 'The answer was discarded.' });
});
