/**
 * How much of requests' bodies an isolate holds at once. A body is in memory several times over until its request is
 * answered (bytes, text, values, a message to an object), and an isolate has 128 MB for all that it does.
 */
import { unavailable } from '../../job/errors';
import type { AppContext } from '../context';

/** Bytes of bodies at once, unless there is only one. */
const MAX_HELD = 48 * 1024 * 1024;

let held = 0;

/** Answers whether this request may hold so many bytes (more). Those of a request count until it is answered. */
export function hold(c: AppContext, bytes: number): boolean {
  const own = c.get('heldBytes') ?? 0;
  if (held > own && held + bytes > MAX_HELD) return false;
  held += bytes;
  c.set('heldBytes', own + bytes);
  return true;
}

/** The refusal of a body for which there is no room now. */
export function noRoom() {
  return unavailable('This server holds as many large requests as it can; send this one again in a moment.');
}

/** Lets go of a request's body once it is answered. */
export function releaseBody(c: AppContext): void {
  held -= c.get('heldBytes') ?? 0;
}
