/** Gives every request an id: the client's own when it is printable, else a new one. Shown in every answer. */
import type { Check } from '../route';

const ACCEPTED = /^[\x21-\x7e]{1,128}$/;

export const requestId: Check = (c) => {
  const own = c.req.header('X-Request-ID');
  const id = own !== undefined && ACCEPTED.test(own) ? own : `req_${uuidV7(Date.now())}`;
  c.set('requestId', id);
  c.get('headers')['X-Request-ID'] = id;
};

/**
 * A UUIDv7 without the counter that orders those of one millisecond, which nobody needs here: the runtime makes the random bits
 * at a tenth of what a library takes.
 */
function uuidV7(now: number): string {
  const time = now.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${crypto.randomUUID().slice(15)}`;
}
