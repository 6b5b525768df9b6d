import { runInDurableObject } from 'cloudflare:test';
import { expect, it } from 'vitest';
import { recallAnswer, rememberAnswer } from '../../src/durable/inbox';
import { freshName, TestQueue } from '../support/queue';
import { server } from '../support/server';

server.emptyBeforeEach();

it('an answer comes back as it was, wherever its text is divided', async () => {
  const name = freshName('inbox');
  await server.enqueue(name);
  await runInDurableObject(new TestQueue(name).stub, (_, state) => {
    const inbox = { sql: state.storage.sql, wake: () => undefined };
    for (const before of ['', 'x']) {
      const answer = { text: `${before}${'😀'.repeat(300_000)}` };
      rememberAnswer(inbox, { key: 'k', hash: 'h' }, answer, 0);
      expect(recallAnswer<typeof answer>(inbox, { key: 'k', hash: 'h' }, 1)?.text === answer.text).toBe(true);
    }
  });
});
