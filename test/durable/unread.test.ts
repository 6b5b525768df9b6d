/** What waits for the clients of sockets and streams. */
import { describe, expect, it } from 'vitest';
import { Share, Unread } from '../../src/durable/unread';

const MIB = 1024 * 1024;
const text = (bytes: number) => 'x'.repeat(bytes - 64);

describe('what a client has not read', () => {
  it('is forgiven by the answer to a ping, as far as it was sent before', () => {
    const unread = new Unread(1_000);
    const [first, none, second] = [unread.sent(text(1_000), 0), unread.sent(text(600), 0), unread.sent(text(500), 0)];
    expect(none).toBeUndefined();
    unread.sent(text(300), 0);
    expect(unread.bytes).toBe(2_400);
    for (const wrong of [undefined, 0, 1, 'x', (first as number) + 1]) unread.answered(wrong, 0);
    expect(unread.bytes).toBe(2_400);
    unread.answered(first, 0);
    expect(unread.bytes).toBe(1_400);
    // An answer counts once.
    unread.answered(first, 0);
    expect(unread.bytes).toBe(1_400);
    unread.answered(second, 0);
    expect(unread.bytes).toBe(300);
    unread.end();
  });

  it('counts bytes, and what is around a message', () => {
    const unread = new Unread(1_000);
    unread.sent('üü', 0);
    expect(unread.bytes).toBe(4 + 64);
    unread.end();
  });

  it('is waited for since the last answer', () => {
    const unread = new Unread(1_000);
    expect(unread.isSilent(10, 99)).toBe(false);
    const asked = Array.from({ length: 3 }, () => unread.sent(text(1_000), 100));
    expect([unread.isSilent(10, 109), unread.isSilent(10, 110)]).toEqual([false, true]);
    unread.answered(asked[0], 120);
    expect([unread.isSilent(10, 129), unread.isSilent(10, 130)]).toEqual([false, true]);
    unread.answered(asked[2], 130);
    expect(unread.isSilent(10, 999)).toBe(false);
    unread.end();
  });
});

it('too much for an isolate is too much for those that have more than their share', () => {
  const [large, small, tiny] = [new Share(), new Share(), new Share()];
  large.bytes = 20 * MIB;
  small.bytes = 3 * MIB;
  tiny.bytes = 1_000;
  expect([large, small, tiny].map(({ isTooMuch }) => isTooMuch)).toEqual([false, false, false]);
  small.bytes = 5 * MIB;
  expect([large, small, tiny].map(({ isTooMuch }) => isTooMuch)).toEqual([true, false, false]);
  large.end();
  large.bytes = 90 * MIB;
  expect(small.isTooMuch).toBe(false);
  const many = Array.from({ length: 500 }, () => new Share());
  for (const one of many) one.bytes = 60_000;
  // Each may have a little in any case.
  expect([small.isTooMuch, many[0]?.isTooMuch]).toEqual([true, false]);
  for (const one of [...many, small, tiny]) one.end();
});
