import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { grouped } from '../../src/job/size';

const sum = (sizes: readonly number[]) => sizes.reduce((total, size) => total + size, 0);

describe('items in groups of bounded size', () => {
  it('keeps every item in its order, no group beyond the bound unless one item is, and none that the next item would fit', () => {
    const bound = fc.integer({ min: 1, max: 30 });
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 30 }), bound, (sizes, max) => {
        const groups = [...grouped(sizes, (size) => size, max)];
        expect(groups.flat()).toEqual(sizes);
        for (const [index, group] of groups.entries()) {
          expect(group.length === 1 || sum(group) <= max).toBe(true);
          const next = groups[index + 1]?.[0];
          if (next !== undefined) expect(sum(group) + next).toBeGreaterThan(max);
        }
      }),
    );
  });
});
