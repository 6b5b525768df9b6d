/** The judge must see an export that lacks a job, or has it twice. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { history, rules } from './histories.mjs';

/** A history with one export. @param ids that it has @param more what is different of it */
function exported(ids, more = {}) {
  const end = { jobs: { waiting: ids.length }, not_kept: {}, ...more };
  return history({ exports: [{ queue: 'push', accepted: ['a', 'b'], ids, end, sentAt: 1_000 }] });
}

test('an export with each job once is as it must be, also with jobs that came later', () => {
  assert.deepEqual(rules(exported(['a', 'b', 'c'])), []);
});

test('an export that lacks a job is found', () => {
  assert.deepEqual(rules(exported(['a'])), ['export']);
});

test('an export that has a job twice is found', () => {
  assert.deepEqual(rules(exported(['a', 'b', 'b'])), ['export']);
});

test('an export that counts other jobs than it has is found', () => {
  assert.deepEqual(rules(exported(['a', 'b'], { jobs: { waiting: 3 } })), ['export']);
});

test('an export may lack jobs of a batch that is not decided, and one that broke off may lack any', () => {
  assert.deepEqual(rules(exported(['a'], { not_kept: { undecided_batch: 1 } })), []);
  assert.deepEqual(rules(history({ exports: [{ queue: 'push', accepted: ['a'], ids: [], sentAt: 1_000 }] })), []);
});
