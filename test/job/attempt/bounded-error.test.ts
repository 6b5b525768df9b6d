import { describe, expect, it } from 'vitest';
import { boundedError } from '../../../src/job/attempt/bounded-error';

describe('a reported error', () => {
  it('is kept within bounds: code, type and classes 255 characters, the message 8 KiB', () => {
    const long = 'é'.repeat(1_000_000);
    const bounded = boundedError({ code: long, type: long, message: long, classes: Array(50).fill(long), details: 7 });
    expect(bounded.code).toHaveLength(255);
    expect(bounded.type).toHaveLength(255);
    expect(bounded.message).toHaveLength(8192);
    expect(bounded.classes?.map(({ length }) => length)).toEqual(Array(32).fill(255));
    expect(bounded.details).toBe(7);
  });

  it('says how long details were that are too long', () => {
    expect(boundedError({ details: { text: 'x'.repeat(20_000) } }).details).toEqual({
      truncated: true,
      original_length: 20_011,
    });
  });

  it('that is within them stays as it is', () => {
    const error = { code: 'E', type: 'T', message: 'm', classes: ['A'], retry_in: '5s', kill: true };
    expect(boundedError(error)).toEqual(error);
  });
});
