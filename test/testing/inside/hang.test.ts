/** Work that does not end: the test hears of it before its own limit. */
import { describe, expect, it } from 'vitest';
import { testQueue } from '../../../src/testing/vitest';

describe('an idle wait that fails', () => {
  const queue = testQueue({ restMs: 200 });

  it('names the job that does not end', async () => {
    const { id } = await queue.enqueue('note.slow', [1_000]);
    const error = await queue.idle().catch((thrown: Error) => thrown);
    expect(String(error)).toContain(
      `after 200 ms there is work under way in queue default; running: note.slow (${id})`,
    );
  });
});

describe('an idle wait that fails after very many alarms', () => {
  // Much longer than one job takes on a busy machine.
  const queue = testQueue({ restMs: 3_000 });

  it('reports work that creates new work endlessly', async () => {
    await queue.enqueue('chain.next', [1_000_000, 1]);
    await expect(queue.advance('1h')).rejects.toThrow(
      /\d+ alarms rang within \d+ ms of its clock, and queue default is still busy/,
    );
  });
});
