/** Who holds how much of a room. */
import { expect, it } from 'vitest';
import { type Hold, Room } from '../../../src/http/request/room';
import { clock, MINUTE } from '../../support/clock';

clock.startAtT0();

it('the memory bound lets one request at a time exceed it', () => {
  const room = new Room(100);
  const large = room.take(undefined, 80) as Hold;
  expect(room.take(large, 80)).toBe(large);
  expect(large.bytes).toBe(160);
  const other = room.take(undefined, 90) as Hold;
  expect(other.bytes).toBe(90);
  expect(room.take(other, 20)).toBeUndefined();
  expect(room.take(undefined, 20)).toBeUndefined();
  expect(room.take(undefined, 10)).toBeDefined();
  room.release(large);
  expect(room.take(other, 20)).toBe(other);
  expect(room.take(undefined, 90)).toBeDefined();
});

it('memory is released by dropped requests after two minutes', () => {
  const room = new Room(100);
  const [apart, held] = [room.take(undefined, 500), room.take(undefined, 100)];
  expect([apart, held]).not.toContain(undefined);
  expect(room.take(undefined, 1)).toBeUndefined();
  clock.advance(3 * MINUTE);
  expect(room.take(undefined, 100)).toBeDefined();
  // What they let go of late is theirs no more.
  for (const one of [apart, held]) room.release(one);
  expect(room.take(undefined, 300)).toBeDefined();
  expect(room.take(undefined, 1)).toBeUndefined();
});
