import fc from 'fast-check';
import { expect, it } from 'vitest';
import { bindingsOf, type JobFilter } from '../../src/job/filter';
import { conditionOnRow } from '../../src/queue/read/filter';

const range = fc.record({ min: fc.integer(), max: fc.integer() }, { requiredKeys: [] });
const texts = fc.array(fc.string(), { maxLength: 5 });
const anyFilter = fc.record(
  {
    types: fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '*') }), { minLength: 1, maxLength: 5 }),
    states: fc.constant(['available']),
    tags: texts,
    priority: range,
    attempt: range,
    created: range,
    enqueued: range,
    scheduled: range,
    ended: range,
    aged: range,
    error_type: fc.string(),
    dead: fc.boolean(),
    fields: fc.array(fc.record({ path: fc.constant('.args[0]'), values: texts }), { maxLength: 5 }),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<JobFilter>;

it('a filter needs as many bindings as are counted before it is accepted', () => {
  fc.assert(
    fc.property(anyFilter, (filter) => {
      expect(conditionOnRow(filter, 0, []).bindings.length).toBe(bindingsOf(filter));
    }),
  );
});
