/**
 * A job id is a UUIDv7 whose 74 free bits hold where the job lives, so no index of ids is needed:
 *
 *     48 bits  creation time, epoch ms
 *     12 bits  route, high part            (rand_a)
 *     20 bits  route, low part             (rand_b, first)
 *      1 bit   rank: 0 = started as an immediate job, 1 = started delayed, prioritised or pending
 *     41 bits  the queue's own sequence number; from 2^40 on: ids that clients choose
 *
 * The directory gives each queue its 32-bit route. Events use the same layout with a sequence of their own.
 */

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Sequence numbers are below this. */
export const MAX_SEQUENCE = 2 ** 41;

/** No queue mints sequence numbers from here on. */
export const FIRST_CHOSEN = 2 ** 40;

/** Added to the sequence number of a job that did not start in the line of immediate jobs. */
export const RANK_BIT = 2 ** 41;

/** Is this a UUIDv7 in lower case with hyphens? */
export const isUuidV7 = (text: string): boolean => UUID_V7.test(text);

export interface DecodedId {
  /** Epoch ms. */
  time: number;
  route: number;
  /** Sequence number plus rank bit: the row's key. */
  key: number;
}

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');

/** Builds an id. @param time epoch ms, below 2^48 @param route 0 … 2^32 − 1 @param key 0 … 2^42 − 1 */
export function mintId(time: number, route: number, key: number): string {
  const high = Math.floor(key / ENDS);
  if (time !== minted.time || route !== minted.route || high !== minted.high) {
    minted = { time, route, high, start: startOf(time, route) + hex((route % 2 ** 6) * 2 ** 30 + high, 9) };
  }
  return minted.start + endOf(key - high * ENDS);
}

/** How many keys in a row differ in the last three digits of their ids alone. */
const ENDS = 2 ** 12;

/** Cache of the last id's beginning: ids of a batch differ in their ends. */
let minted = { time: -1, route: -1, high: -1, start: '' };

const ends: string[] = [];

/** The last three digits of an id; written once. */
function endOf(low: number): string {
  ends[low] ??= hex(low, 3);
  return ends[low];
}

/** All of an id but its last group. rand_b: 14 bits beside the variant, 48 in that group; the route splits 14 + 6. */
function startOf(time: number, route: number): string {
  const timeHex = hex(time, 12);
  const routeHigh = Math.floor(route / 2 ** 20);
  const group4 = 0x8000 + Math.floor((route % 2 ** 20) / 2 ** 6);
  return `${timeHex.slice(0, 8)}-${timeHex.slice(8)}-7${hex(routeHigh, 3)}-${hex(group4, 4)}-`;
}

export function decodeId(id: string): DecodedId {
  if (!id.startsWith(decoded.start)) {
    const time = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
    const routeHigh = Number.parseInt(id.slice(15, 18), 16);
    const group4 = Number.parseInt(id.slice(19, 23), 16) & 0x3fff;
    decoded = { start: id.slice(0, START).padEnd(START), time, route: routeHigh * 2 ** 20 + group4 * 2 ** 6 };
  }
  const group5 = Number.parseInt(id.slice(24), 16);
  return { time: decoded.time, route: decoded.route + Math.floor(group5 / 2 ** 42), key: group5 % 2 ** 42 };
}

/** What the last id that was read began with: all but its last group. Those of a batch have it in common. */
const START = 24;
let decoded = { start: ' '.repeat(START), time: 0, route: 0 };

/** The route in an id that satisfies {@link isUuidV7}. */
export const routeOf = (id: string): number => decodeId(id).route;

/** The sequence number in a key, without the rank bit. */
export const sequenceOf = (key: number): number => (key >= RANK_BIT ? key - RANK_BIT : key);

/** Names one execution: new for each claim, the same after a restart. @param claim claims so far, this one included */
export const deliveryId = (jobId: string, claim: number): string => `del_${jobId}_${claim.toString(36)}`;

/** 32-bit FNV-1a of a queue's name: the route to try first. `probe` moves on when two names meet. */
export function routeCandidate(name: string, probe: number): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(probe === 0 ? name : `${name}\0${probe}`)) {
    hash = Math.imul(hash ^ byte, 0x01000193);
  }
  return hash >>> 0;
}
