/**
 * Bounds the requests' bodies, and the pages of jobs, that an isolate holds at once. Each is in memory several times
 * until its request is answered: bytes, text, values, a message to or from an object. An isolate has 128 MB for all its
 * work.
 */
import { isNumbered, type Paging } from '../../across/paging';
import { unavailable } from '../../job/errors';
import { MAX_PAGE_BYTES } from '../../job/size';
import type { AppContext } from '../context';
import { type From, Room } from './room';

const MIB = 1024 * 1024;

/**
 * The rooms. A room is shared by callers of one kind, so they cannot take from others. Values and texts of bodies take
 * three times as many bytes, those of pages more.
 */
const ROOMS: Record<From, { bodies: Room; pages: Room }> = {
  keyless: { bodies: new Room(MIB / 4), pages: new Room(0) },
  keyed: { bodies: new Room(12 * MIB), pages: new Room(8 * MIB) },
  inside: { bodies: new Room(4 * MIB), pages: new Room(4 * MIB) },
};

/** The size of a numbered page, however large it is. */
const MAX_NUMBERED_BYTES = 6 * MIB;

/** How long a request waits for room, and the interval between checks, ms. */
const LONGEST_WAIT_MS = 5_000;
const LOOK_MS = 20;

const roomsOf = (c: AppContext) => ROOMS[c.get('from') ?? 'keyless'];

/** May this request hold these bytes (more) of its body? They count until it is answered. */
export function hold(c: AppContext, bytes: number): boolean {
  const mine = roomsOf(c).bodies.take(c.get('held'), bytes);
  if (mine) c.set('held', mine);
  return mine !== undefined;
}

/** As {@link hold}, but waits a while for room. Meanwhile the client keeps what it has not sent yet. */
export const holdSoon = (c: AppContext, bytes: number): Promise<boolean> => soon(() => hold(c, bytes));

export function dropBody(c: AppContext): void {
  roomsOf(c).bodies.release(c.get('held'));
}

/** Waits for room for a page of jobs, however large they are. @throws {ApiError} 503 without room */
export async function holdPage(c: AppContext, paging: Paging): Promise<void> {
  // A numbered page is given whole, however large it is.
  const bytes = isNumbered(paging) ? MAX_NUMBERED_BYTES : MAX_PAGE_BYTES;
  const isHeld = await soon(() => {
    const mine = roomsOf(c).pages.take(undefined, bytes);
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

export const noRoom = () =>
  unavailable('This server is busy with other large requests; send this one again in a moment.');

/** Releases what a request held, once it is answered. */
export function releaseRoom(c: AppContext): void {
  dropBody(c);
  roomsOf(c).pages.release(c.get('page'));
}
