/** Gives every request an id: the client's own when it is printable, else a new one. Shown in every answer. */
import type { Check } from '../route';

const ACCEPTED = /^[\x21-\x7e]{1,128}$/;

export const requestId: Check = (c) => {
  const own = c.req.header('X-Request-ID');
  const id = own !== undefined && ACCEPTED.test(own) ? own : `req_${uuidV7(Date.now())}`;
  c.set('requestId', id);
  c.get('headers')['X-Request-ID'] = id;
};

/** The random end of this isolate's ids, made on first use: a loading module may not ask for randomness. */
let end: string | undefined;
let counter = 0;

/**
 * A UUIDv7 of time, a counter of 12 bits and an end that the isolate keeps (RFC 9562, 6.2, method 1). An id must be
 * unique, but not secret; random bits for each cost as much as reading a small body.
 */
function uuidV7(now: number): string {
  end ??= crypto.randomUUID().slice(19);
  counter = (counter + 1) % 0x1000;
  const time = now.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter.toString(16).padStart(3, '0')}-${end}`;
}
