/**
 * How much of requests' bodies an isolate holds at once. A body is in memory several times over until its request is
 * answered (bytes, text, values, a message to an object), and an isolate has 128 MB for all that it does.
 */
import { unavailable } from '../../job/errors';
import type { AppContext } from '../context';

/** Bytes of bodies at once, unless there is only one. Values and texts take three times as many. */
const MAX_HELD = 24 * 1024 * 1024;

/** How long a request waits for room before its body is read, and between two looks, ms. */
const LONGEST_WAIT_MS = 5_000;
const LOOK_MS = 20;

/**
 * A request that has held its body for so long, ms, was dropped by the runtime: when a client goes away, none of its code runs any
 * more, not even what was to let go of the body. Nor does it hold it then.
 */
const LONGEST_HOLD_MS = 120_000;

/** Bytes that a request holds, and since when. */
interface Hold {
  bytes: number;
  since: number;
}

const holds = new Set<Hold>();
let held = 0;

/** Answers whether this request may hold so many bytes (more). Those of a request count until it is answered. */
export function hold(c: AppContext, bytes: number): boolean {
  const own = c.get('held');
  const hasRoom = () => held <= (own?.bytes ?? 0) || held + bytes <= MAX_HELD;
  if (!hasRoom()) forgetDropped(Date.now());
  if (!hasRoom()) return false;
  const mine = own && holds.has(own) ? own : { bytes: 0, since: Date.now() };
  mine.bytes += bytes;
  held += bytes;
  holds.add(mine);
  c.set('held', mine);
  return true;
}

/** As {@link hold}, but waits a while for room. Meanwhile the client holds what it has not sent yet. */
export async function holdSoon(c: AppContext, bytes: number): Promise<boolean> {
  const until = Date.now() + LONGEST_WAIT_MS;
  while (!hold(c, bytes)) {
    if (Date.now() >= until) return false;
    await scheduler.wait(LOOK_MS);
  }
  return true;
}

function forgetDropped(now: number): void {
  for (const one of holds) if (now - one.since > LONGEST_HOLD_MS) release(one);
}

/** The refusal of a body for which there is no room now. */
export function noRoom() {
  return unavailable('This server holds as many large requests as it can; send this one again in a moment.');
}

/** Lets go of a request's body once it is answered. */
export function releaseBody(c: AppContext): void {
  const own = c.get('held');
  if (own) release(own);
}

function release(one: Hold): void {
  if (holds.delete(one)) held -= one.bytes;
}
