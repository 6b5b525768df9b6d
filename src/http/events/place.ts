/** Places in the feed, as clients name them. */
import { invalidRequest } from '../../job/errors';
import { isUuidV7 } from '../../job/ids';

const PREFIX = 'evt_';
/** An event may come as two items of a stream; this is the first of them. */
const FIRST_OF_TWO = '.0';
/** Ends the id of an event from the record of a job: before all that the feed had in its millisecond. */
const FROM_RECORD = /\.h\d+(\.0)?$/;

/**
 * A place in the feed, after which everything behind `id` comes.
 * @returns undefined when it is not the id of an event
 */
export function placeOf(asked: string): string | undefined {
  const id = asked.replace(FROM_RECORD, '');
  const isHalf = id.endsWith(FIRST_OF_TWO);
  const event = isHalf ? id.slice(0, -FIRST_OF_TWO.length) : id;
  if (!event.startsWith(PREFIX) || !isUuidV7(event.slice(PREFIX.length))) return undefined;
  return isHalf ? before(event) : event;
}

/** As {@link placeOf}. @throws {ApiError} 400 */
export function readPlace(id: string, field: string): string {
  const place = placeOf(id);
  if (place === undefined) throw invalidRequest(field, `${field} must be the id of an event.`);
  return place;
}

/** After every event before this one, in the order of their ids as texts. */
function before(id: string): string {
  const [start, last] = [id.slice(0, -1), Number.parseInt(id.slice(-1), 16)];
  return last === 0 ? start : `${start}${(last - 1).toString(16)}~`;
}
