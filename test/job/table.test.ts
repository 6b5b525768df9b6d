import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { columnOf, fromTable, toTable } from '../../src/job/table';

interface Row {
  a?: number | null;
  b?: string;
  c?: object;
}

const rows = fc.array(
  fc.record<Row>(
    {
      a: fc.option(fc.integer({ min: 0, max: 2 })),
      b: fc.constantFrom('', 'x'),
      c: fc.constantFrom({}, { d: 1 }, [], [1]),
    },
    { requiredKeys: [], noNullPrototype: true },
  ),
  { maxLength: 12 },
);

describe('objects as columns', () => {
  it('come back as they were, through a message', () => {
    fc.assert(
      fc.property(rows, (given) => {
        expect(fromTable(structuredClone(toTable(given)))).toStrictEqual(given);
      }),
    );
  });

  it('say once what all of them have', () => {
    const table = toTable(Array.from({ length: 100 }, (_, a) => ({ a, b: 'the same', c: {} })));
    expect(table.columns).toMatchObject({ b: { all: 'the same' }, c: { all: {} } });
    expect(columnOf(table, 'a')).toEqual(Array.from({ length: 100 }, (_, a) => a));
    expect(columnOf(table, 'b')[99]).toBe('the same');
  });

  it('tell a list without entries from an object without members', () => {
    expect(fromTable(toTable<Row>([{ c: [] }, { c: {} }]))).toStrictEqual([{ c: [] }, { c: {} }]);
  });
});
