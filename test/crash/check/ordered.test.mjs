/** The judge must see a group whose order is broken. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { done, history, job, rules } from './histories.mjs';

const run = { attempt: 1, leaseMs: 1_000, beats: [], outcome: 'success', via: 'push', life: 0 };

/** Two jobs of one group. @param times when the second one began, and what the server shows of the first */
function two(startedAt, first = {}) {
  const of = (token, order) => job(token, 'push', { group: 'acme', order });
  return history({
    jobs: [of('a', 1), of('b', 2)],
    enqueues: [{ tokens: ['a', 'b'], outcome: 'accepted', ids: ['id-a', 'id-b'] }],
    runs: [
      { ...run, token: 'a', startedAt: 1_000 },
      { ...run, token: 'b', startedAt },
    ],
    shown: [done('a', 'push', 1, { endedAt: 2_000, ...first }), done('b', 'push', 1)],
  });
}

test('a job that begins when the one before it has ended keeps the order', () => {
  assert.deepEqual(rules(two(2_000)), []);
});

test('a job that begins before the one before it has ended is found', () => {
  assert.deepEqual(rules(two(1_999)), ['order']);
});

test('a job that begins before the one that was enqueued earlier is found', () => {
  assert.deepEqual(rules(two(500)), ['order']);
});
