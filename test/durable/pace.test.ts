import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Pace } from '../../src/durable/pace';

const T0 = Date.UTC(2040, 0, 1);

describe('the pace of a queue', () => {
  it('is what happened in the last sixty seconds, whenever it is asked', () => {
    const steps = fc.array(fc.record({ wait: fc.nat(90), happens: fc.boolean() }), { maxLength: 200 });
    fc.assert(
      fc.property(steps, (history) => {
        const pace = new Pace();
        const moments: number[] = [];
        let second = 0;
        for (const { wait, happens } of history) {
          second += wait;
          const now = T0 + second * 1000;
          if (happens) {
            pace.note(now);
            moments.push(second);
          }
          expect(pace.perMinute(now)).toBe(moments.filter((at) => at > second - 60).length);
        }
      }),
    );
  });
});
