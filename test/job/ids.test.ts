/** Ids carry their route and their place in the sequence. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeId, deliveryId, isUuidV7, MAX_SEQUENCE, mintId, RANK_BIT, routeOf, sequenceOf } from '../../src/job/ids';
import { T0 } from '../support/clock';

const time = fc.integer({ min: 0, max: 2 ** 48 - 1 });
const route = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const key = fc.integer({ min: 0, max: 2 ** 42 - 1 });
const edge = <T>(arbitrary: fc.Arbitrary<T>, ...edges: T[]) => fc.oneof(fc.constantFrom(...edges), arbitrary);

describe('an id', () => {
  it('is a UUIDv7 that gives back what it was made of', () => {
    fc.assert(
      fc.property(
        edge(time, 0, 2 ** 48 - 1),
        edge(route, 0, 2 ** 32 - 1, 2 ** 20 - 1, 2 ** 20, 63, 64),
        edge(key, 0, RANK_BIT, RANK_BIT - 1, 2 ** 42 - 1, MAX_SEQUENCE - 1),
        (t, r, k) => {
          const id = mintId(t, r, k);
          expect(isUuidV7(id)).toBe(true);
          expect(decodeId(id)).toEqual({ time: t, route: r, key: k });
          expect(routeOf(id)).toBe(r);
        },
      ),
    );
  });

  it('sorts by time, and by number within a millisecond of one queue and rank', () => {
    fc.assert(
      fc.property(time, time, route, route, key, key, (t1, t2, r1, r2, k1, k2) => {
        if (t1 !== t2) expect(mintId(t1, r1, k1) < mintId(t2, r2, k2)).toBe(t1 < t2);
        if (k1 !== k2) expect(mintId(t1, r1, k1) < mintId(t1, r1, k2)).toBe(k1 < k2);
      }),
    );
  });

  it('is distinguished from everything else', () => {
    const id = mintId(T0, 7, 9);
    for (const wrong of [id.toUpperCase(), `${id}0`, id.slice(1), id.replaceAll('-', ''), '', ` ${id}`, `${id}\n`]) {
      expect(isUuidV7(wrong)).toBe(false);
    }
    expect(isUuidV7(id.replace('-7', '-4'))).toBe(false);
    expect(isUuidV7(`${id.slice(0, 19)}c${id.slice(20)}`)).toBe(false);
    fc.assert(fc.property(fc.uuid({ version: 7 }), (uuid) => isUuidV7(uuid)));
  });

  it('decodes to numbers in range even when a client chose it', () => {
    fc.assert(
      fc.property(fc.uuid({ version: 7 }), (uuid) => {
        const decoded = decodeId(uuid);
        expect(decoded.route).toBeLessThan(2 ** 32);
        expect(decoded.key).toBeLessThan(2 ** 42);
        expect(sequenceOf(decoded.key)).toBeLessThan(MAX_SEQUENCE);
        expect(mintId(decoded.time, decoded.route, decoded.key)).toBe(uuid);
      }),
    );
  });

  it('reads one after the other, however alike they are', () => {
    const part = fc.record({
      time: fc.constantFrom(T0, T0 + 1),
      route: fc.constantFrom(0, 1, 63, 64, 2 ** 31),
      key: fc.constantFrom(1, 2, 4096, RANK_BIT + 1),
    });
    fc.assert(
      fc.property(fc.array(part), fc.string({ maxLength: 40 }), (parts, noId) => {
        for (const { time, route, key } of parts) {
          decodeId(noId);
          expect(decodeId(mintId(time, route, key))).toEqual({ time, route, key });
        }
      }),
    );
  });
});

describe('a delivery id', () => {
  it('names one claim of one job', () => {
    const claim = fc.record({ key: fc.integer({ min: 1, max: 40 }), claim: fc.integer({ min: 1, max: 40 }) });
    fc.assert(
      fc.property(claim, claim, (one, other) => {
        const [named, otherwise] = [one, other].map(({ key, claim: n }) => deliveryId(mintId(T0, 1, key), n));
        expect(named === otherwise).toBe(one.key === other.key && one.claim === other.claim);
      }),
    );
  });
});
