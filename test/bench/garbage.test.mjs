/**
 * What a job leaves for the garbage collector has a budget, because a collection is what the slowest starts wait for. The figures
 * are counted, not timed: they hardly depend on the machine, nor on what else it does.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allocated } from '../../bench/table/garbage.mjs';

/** kB a job. Whoever needs less may lower them. */
const BUDGETS = {
  alone: {
    'enqueued, socket': 28.5,
    'enqueued, HTTP': 42,
    'enqueued and started, socket': 60,
    'completed, socket': 21,
    'a whole life, pushed': 71,
  },
  'in batches of 100': {
    'enqueued, HTTP': 5.9,
    'started, socket': 5.2,
    'completed, socket': 4.1,
  },
};

/** The compiler optimises at moments of its own, after which some objects are not made any more. */
const TOLERANCE = 1.15;

test('no job allocates more than its budget', { timeout: 600_000 }, async () => {
  const found = await allocated();
  assert.deepEqual(Object.keys(found), Object.keys(BUDGETS));
  for (const [how, lines] of Object.entries(BUDGETS)) {
    assert.deepEqual(Object.keys(found[how]), Object.keys(lines));
    for (const [what, budget] of Object.entries(lines)) {
      const kb = found[how][what] / 1000;
      assert.ok(kb > 0 && kb <= budget * TOLERANCE, `${how}, ${what}: ${kb} kB, more than ${budget}`);
    }
  }
});
