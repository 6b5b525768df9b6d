/**
 * How much an isolate holds at once of requests' bodies, and of pages of jobs. Each is in memory several times over until its
 * request is answered (bytes, text, values, a message to or from an object), and an isolate has 128 MB for all that it does.
 */
import { isNumbered, type Paging } from '../../across/paging';
import { unavailable } from '../../job/errors';
import { MAX_PAGE_BYTES } from '../../job/size';
import type { AppContext } from '../context';
import { Room } from './room';

/** Bytes at once, unless there is only one request. Values and texts of bodies take three times as many, those of pages more. */
const MAX_BODIES = 24 * 1024 * 1024;
const MAX_PAGES = 12 * 1024 * 1024;

/** How long a request waits for room, and between two looks, ms. */
const LONGEST_WAIT_MS = 5_000;
const LOOK_MS = 20;

const bodies = new Room(MAX_BODIES);
const pages = new Room(MAX_PAGES);

/** Answers whether this request may hold so many bytes (more) of its body. Those of a request count until it is answered. */
export function hold(c: AppContext, bytes: number): boolean {
  const mine = bodies.take(c.get('held'), bytes);
  if (mine) c.set('held', mine);
  return mine !== undefined;
}

/** As {@link hold}, but waits a while for room. Meanwhile the client holds what it has not sent yet. */
export function holdSoon(c: AppContext, bytes: number): Promise<boolean> {
  return soon(() => hold(c, bytes));
}

/** Waits for room for a page of jobs, however large they are. @throws {ApiError} 503 when none comes */
export async function holdPage(c: AppContext, paging: Paging): Promise<void> {
  // One by its number is given whole, however large it is.
  const bytes = isNumbered(paging) ? MAX_PAGES / 2 : MAX_PAGE_BYTES;
  const isHeld = await soon(() => {
    const mine = pages.take(undefined, bytes);
    if (mine) c.set('page', mine);
    return mine !== undefined;
  });
  if (!isHeld) throw noRoom();
}

async function soon(attempt: () => boolean): Promise<boolean> {
  const until = Date.now() + LONGEST_WAIT_MS;
  while (!attempt()) {
    if (Date.now() >= until) return false;
    await scheduler.wait(LOOK_MS);
  }
  return true;
}

/** The refusal of a request for which there is no room now. */
export function noRoom() {
  return unavailable('This server holds as many large requests as it can; send this one again in a moment.');
}

/** Lets go of what a request held, once it is answered. */
export function releaseRoom(c: AppContext): void {
  bodies.release(c.get('held'));
  pages.release(c.get('page'));
}
