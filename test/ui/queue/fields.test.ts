/** What the form of a queue's settings shows, and what it sends. */
import { expect, it } from 'vitest';
import { changesOf, settingAt, textOf } from '../../../src/ui/pages/queue/fields';

const COUNT = 'dead_letter.retention.max_count';
const own = { dead_letter: { retention: { max_count: null } } };

function sent(path: string, text: string, config = {}) {
  const form = new FormData();
  form.set(path, text);
  return changesOf(config, form);
}

it('a number of dead letters without a bound is a word, and emptied returns to the default', () => {
  expect(textOf(settingAt(own, COUNT))).toBe('unlimited');
  expect(sent(COUNT, 'unlimited', own)).toBeUndefined();
  expect(sent(COUNT, '', own)).toEqual({ dead_letter: { retention: { max_count: 'default' } } });
  expect(sent(COUNT, 'unlimited')).toEqual(own);
  expect(sent(COUNT, '20')).toEqual({ dead_letter: { retention: { max_count: 20 } } });
  expect(sent('retention.completed', 'forever')).toEqual({ retention: { completed: 'forever' } });
  expect(sent('retention.completed', '', { retention: { completed: 'forever' } })).toEqual({
    retention: { completed: null },
  });
});
