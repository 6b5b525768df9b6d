/** Ids that the client chooses name the queue of their job in the server's own way. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decodeId, FIRST_CHOSEN, isUuidV7, routeCandidate, sequenceOf } from '../../src/job/ids';
import { jobIds } from '../../src/producer/id';

it('a client-made id is a UUIDv7 with the time, the queue, and a number that the server never gives out', () => {
  const queue = fc.string({ minLength: 1, maxLength: 128 });
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(queue, fc.integer({ min: 0, max: 2 ** 48 - 1 }), random, (name, time, fraction) => {
      const next = jobIds(
        () => time,
        () => fraction,
      );
      const ids = [next(name), next(name), next(name)];
      expect(new Set(ids).size).toBe(3);
      for (const id of ids) {
        expect(isUuidV7(id)).toBe(true);
        expect(decodeId(id)).toMatchObject({ time, route: routeCandidate(name, 0) });
        expect(sequenceOf(decodeId(id).key)).toBeGreaterThanOrEqual(FIRST_CHOSEN);
      }
    }),
  );
});
