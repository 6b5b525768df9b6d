// A known defect that can no longer be put back proves nothing: its edits must fit the sources.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mutated, readMutations } from '../simulation/mutations/list.mjs';
import { ROOT } from '../simulation/vitest.mjs';

describe('the defects that the simulation must find', () => {
  for (const mutation of readMutations()) {
    it(`can be put back: ${mutation.name}`, () => {
      assert.ok(mutated(mutation, ROOT).size > 0);
      assert.ok(mutation.how, 'it says what a history must do to meet it');
    });
  }

  it('have names of their own', () => {
    const names = readMutations().map(({ name }) => name);
    assert.deepEqual(names, [...new Set(names)]);
  });
});
